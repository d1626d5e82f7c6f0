// Conversations as they are trained on: which tokens are the model's own words.
#include "onset/tokenizer/chat.h"

namespace onset {

TrainedTokens trained_tokens(const ChatFormat& format, const Tokenizer& tokenizer,
                             const OrderedJson& messages, const ChatOptions& options,
                             bool literal) {
  ChatOptions whole = options;
  whole.add_generation_prompt = false;
  const ChatText chat = render_chat_text(format, messages, whole);
  const LiteralText quoted = literal ? LiteralText{chat.contents, format.markers} : LiteralText{};
  CoveredTokens covered = tokenizer.encode_with_coverage(chat.text, chat.replies, {}, quoted);
  TrainedTokens result;
  result.ids = std::move(covered.ids);
  result.mask.reserve(result.ids.size());
  for (std::size_t i = 0; i < result.ids.size(); ++i) {
    const auto coverage = covered.coverage[i];
    result.mask.push_back(coverage == CoveredTokens::Coverage::none ? 0 : 1);
    if (coverage == CoveredTokens::Coverage::part) result.straddle.push_back(i);
  }
  return result;
}

}  // namespace onset
