#include "onset/train/dpo_data.h"

#include <algorithm>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/train/records.h"
#include "onset/train/row_encoder.h"

namespace onset {
namespace {

constexpr std::string_view wanted =
    "prompt, chosen and rejected, or chosen and rejected, or prompt_ids, chosen_ids and "
    "rejected_ids";

struct Row {
  PreferencePair pair;
  bool joined = false;
};

// The end of what both begin with, as TRL's extract_prompt has it: without a space at its end, and
// where one is the beginning of the other without its last part, so that both go on.
template <typename Parts, typename Same, typename IsSpace>
std::size_t shared_beginning(const Parts& a, const Parts& b, Same&& same, IsSpace&& is_space) {
  const std::size_t shorter = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < shorter; ++i) {
    if (same(a[i], b[i])) continue;
    return i > 0 && is_space(a[i - 1]) ? i - 1 : i;
  }
  return shorter > 0 ? shorter - 1 : 0;
}

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

struct Split {
  Speech prompt;
  Speech chosen;
  Speech rejected;
};

Split split_texts(const std::string& chosen, const std::string& rejected) {
  std::size_t end = shared_beginning(
      chosen, rejected, [](char a, char b) { return a == b; }, [](char c) { return c == ' '; });
  while (end > 0 && (continues_character(chosen[end]) || continues_character(rejected[end]))) --end;
  return {{.text = chosen.substr(0, end)},
          {.text = chosen.substr(end)},
          {.text = rejected.substr(end)}};
}

Split split_messages(const OrderedJson& chosen, const OrderedJson& rejected) {
  const auto never = [](const OrderedJson&) { return false; };
  const auto end =
      static_cast<std::ptrdiff_t>(shared_beginning(chosen, rejected, std::equal_to<>(), never));
  const auto part = [](const OrderedJson& list, std::ptrdiff_t from, std::ptrdiff_t to) {
    Speech speech{.is_chat = true};
    for (auto i = from; i < to; ++i) {
      speech.messages.push_back(list[static_cast<std::size_t>(i)]);
    }
    return speech;
  };
  return {part(chosen, 0, end), part(chosen, end, static_cast<std::ptrdiff_t>(chosen.size())),
          part(rejected, end, static_cast<std::ptrdiff_t>(rejected.size()))};
}

class DpoReader {
 public:
  explicit DpoReader(const DpoDataOptions& options) : options_(options), encoder_(options.data) {}

  [[nodiscard]] Row read(const Record& record) const {
    Row row;
    if (record.has_all({"prompt_ids", "chosen_ids", "rejected_ids"})) {
      row.pair = {record.ids("prompt_ids"), record.ids("chosen_ids"), record.ids("rejected_ids")};
    } else if (record.has_all({"chosen", "rejected"})) {
      row = encoded(split(record), record);
    } else {
      throw record.no_columns(wanted);
    }
    require_input(!row.pair.prompt.empty(), record.where(), ": the prompt has no token");
    require_input(!row.pair.chosen.empty(), record.where(), ": the chosen completion has no token");
    require_input(!row.pair.rejected.empty(), record.where(),
                  ": the rejected completion has no token");
    return row;
  }

 private:
  [[nodiscard]] Split split(const Record& record) const {
    const auto& data = options_.data;
    const bool chats = record.is_messages("chosen");
    const bool is_explicit = record.has("prompt") && record.is_messages("prompt") == chats;
    if (is_explicit) {
      return {speech_of(record, "prompt", "user", data),
              speech_of(record, "chosen", "assistant", data),
              speech_of(record, "rejected", "assistant", data)};
    }
    // Whole conversations, which a user begins.
    const auto chosen = speech_of(record, "chosen", "user", data);
    const auto rejected = speech_of(record, "rejected", "user", data);
    require_input(chosen.is_chat == rejected.is_chat, record.where(),
                  ": chosen and rejected should both be text or both messages");
    if (chosen.messages == rejected.messages && chosen.text == rejected.text) {
      throw input_error(str_cat(record.where(), ": chosen and rejected are the same"),
                        "leave the row out, or give the prompt in a column of its own");
    }
    return chosen.is_chat ? split_messages(chosen.messages, rejected.messages)
                          : split_texts(chosen.text, rejected.text);
  }

  // The prompt is what it has in common with both, so that they are completions of one prompt.
  [[nodiscard]] Row encoded(const Split& split, const Record& record) const {
    const TokenIds alone = encoder_.prompt(split.prompt, record);
    const TokenIds chosen = encoder_.continued(split.prompt, split.chosen, record).ids;
    const TokenIds rejected = encoder_.continued(split.prompt, split.rejected, record).ids;
    const std::size_t begin =
        std::min(common_prefix(alone, chosen), common_prefix(alone, rejected));
    const auto from = static_cast<std::ptrdiff_t>(begin);
    Row row;
    row.pair.prompt.assign(alone.begin(), alone.begin() + from);
    row.pair.chosen.assign(chosen.begin() + from, chosen.end());
    row.pair.rejected.assign(rejected.begin() + from, rejected.end());
    row.joined = begin < alone.size();
    return row;
  }

  const DpoDataOptions& options_;
  RowEncoder encoder_;
};

std::int64_t size_of(const TokenIds& ids) { return static_cast<std::int64_t>(ids.size()); }

// Tokens that were cut, or nothing where no pair is left of it.
std::optional<std::int64_t> cut(PreferencePair& pair, const DpoDataOptions& options) {
  const std::int64_t longest = std::max(size_of(pair.chosen), size_of(pair.rejected));
  const std::int64_t excess = size_of(pair.prompt) + longest - options.max_length;
  if (options.max_length <= 0 || excess <= 0) return 0;
  if (options.truncation == TruncationMode::keep_end) {
    if (excess >= size_of(pair.prompt)) return std::nullopt;
    pair.prompt.erase(pair.prompt.begin(), pair.prompt.begin() + excess);
    return excess;
  }
  const std::int64_t room = options.max_length - size_of(pair.prompt);
  if (room <= 0) return std::nullopt;
  std::int64_t lost = 0;
  for (auto* completion : {&pair.chosen, &pair.rejected}) {
    lost += std::max<std::int64_t>(0, size_of(*completion) - room);
    if (size_of(*completion) > room) completion->resize(static_cast<std::size_t>(room));
  }
  return lost;
}

void keep(Row row, const DpoDataOptions& options, DpoData& data) {
  const auto lost = cut(row.pair, options);
  auto& report = data.report;
  if (!lost) {
    ++report.dropped;
    return;
  }
  const std::int64_t completions = size_of(row.pair.chosen) + size_of(row.pair.rejected);
  ++report.kept;
  report.cut += *lost > 0 ? 1 : 0;
  report.tokens_cut += *lost;
  report.equal += row.pair.chosen == row.pair.rejected ? 1 : 0;
  report.joined += row.joined ? 1 : 0;
  report.tokens += 2 * size_of(row.pair.prompt) + completions;
  report.trained += completions;
  report.longest =
      std::max(report.longest, size_of(row.pair.prompt) +
                                   std::max(size_of(row.pair.chosen), size_of(row.pair.rejected)));
  data.pairs.push_back(std::move(row.pair));
}

}  // namespace

DpoData read_dpo_data(const std::filesystem::path& path, const DpoDataOptions& options) {
  check_columns(options.data,
                {"prompt", "chosen", "rejected", "prompt_ids", "chosen_ids", "rejected_ids"});
  const DpoReader reader(options);
  DpoData data;
  data.report.where = path.string();
  for (const auto& row : read_records(path)) {
    if (options.data.limit > 0 && data.report.rows == options.data.limit) break;
    ++data.report.rows;
    const Record record(row, options.data);
    record.note_unread({"prompt", "chosen", "rejected", "prompt_ids", "chosen_ids", "rejected_ids",
                        "tools", "chat_template_kwargs"},
                       data.report);
    keep(reader.read(record), options, data);
  }
  if (data.pairs.empty()) {
    throw input_error(str_cat(path.string(), ": no pair is left of its rows"),
                      str_cat("max_length is ", options.max_length,
                              ", and prompts alone are longer: choose a longer one"));
  }
  return data;
}

}  // namespace onset
