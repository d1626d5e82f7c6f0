// A conversation with a model: its turns, its mask, and what generates the answers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onset/base/json.h"
#include "onset/base/processor_share.h"
#include "onset/generate/generator.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "onset/tokenizer/chat.h"
#include "onset/wemask/mask_spec.h"
#include "sampling_option.h"

namespace onset::app {

// One answer, or the part of it that was given before it was stopped.
struct ChatAnswer {
  std::string text;
  std::int64_t tokens = 0;
  FinishReason finish = FinishReason::stop;
  bool masked = false;
  bool kept = false;          // the conversation goes on with it
  bool context_full = false;  // why it was cut
};

class ChatSession {
 public:
  struct Settings {
    SamplingVerbOptions sampling;
    std::int64_t seed = 0;
    std::int64_t context = 0;  // 0: not known
  };
  // New text of the answer with this number, 0 or 1 with both.
  using OnText = std::function<void(std::size_t answer, std::string_view text)>;

  // Everything must outlive it.
  ChatSession(const Tokenizer& tokenizer, ChatFormat format, Generator& generator,
              Settings settings);

  // Adds what the user says, and the answers: one, or with `both` the unmasked and the masked one.
  // `stopped` is asked between tokens. The conversation goes on with the answer of `mask_on()`; one
  // that was stopped is part of it as far as it came. Throws a usage error, and forgets what was
  // said, where the context has no room for it.
  [[nodiscard]] std::vector<ChatAnswer> answer(const std::string& said, bool both,
                                               const OnText& on_text,
                                               const std::function<bool()>& stopped);
  // The conversation goes on with the other answer of the last turn; whether that is the masked
  // one, or nothing where there is no other.
  [[nodiscard]] std::optional<bool> take_other_answer();

  void reset();
  // An empty text takes the system's turn away. Throws a usage error where the format has none.
  void set_system(const std::string& text);
  void set_mask(std::shared_ptr<const MaskSpec> mask) { mask_ = std::move(mask); }
  [[nodiscard]] const std::shared_ptr<const MaskSpec>& mask() const { return mask_; }
  void turn_mask(bool on) { mask_on_ = on; }
  [[nodiscard]] bool mask_on() const { return mask_on_; }

  [[nodiscard]] const OrderedJson& messages() const { return messages_; }
  // Whether each of the assistant's messages was given under the mask.
  [[nodiscard]] const std::vector<bool>& masked_answers() const { return masked_answers_; }
  [[nodiscard]] std::int64_t turns() const { return turns_; }  // of the user
  // Tokens of the conversation so far, as the next answer would see it.
  [[nodiscard]] std::int64_t tokens() const;
  [[nodiscard]] std::int64_t context() const { return settings_.context; }

 private:
  [[nodiscard]] bool step();
  [[nodiscard]] std::vector<std::int64_t> prompt_ids() const;
  [[nodiscard]] GenerationRequest request(const std::vector<std::int64_t>& ids, bool masked) const;

  const Tokenizer& tokenizer_;
  ChatFormat format_;
  Generator& generator_;
  Settings settings_;
  OrderedJson messages_ = OrderedJson::array();
  std::vector<bool> masked_answers_;
  std::optional<std::string> other_answer_;
  bool other_is_masked_ = false;
  std::shared_ptr<const MaskSpec> mask_;
  bool mask_on_ = false;
  std::int64_t turns_ = 0;
  ProcessorShare share_{threads()};
  bool spins_ = true;
};

}  // namespace onset::app
