#include "onset/train/sft_data.h"

#include <algorithm>

#include "onset/base/error.h"
#include "onset/train/records.h"
#include "onset/train/row_encoder.h"

namespace onset {
namespace {

constexpr std::int64_t no_label = -100;
constexpr std::string_view wanted =
    "input_ids and labels, or prompt and completion, or messages, or text";

struct Row {
  SftExample example;
  bool partly = false;  // only a part of it was to be trained
  std::int64_t straddling = 0;
  bool joined = false;
};

SftExample all_trained(TokenIds ids) {
  SftExample example;
  example.trained.assign(ids.size(), 1);
  example.ids = std::move(ids);
  return example;
}

class SftReader {
 public:
  explicit SftReader(const SftDataOptions& options) : options_(options), encoder_(options.data) {}

  [[nodiscard]] Row read(const Record& record) const {
    if (record.has("input_ids")) return labelled(record);
    const bool continues = record.has_all({"prompt", "completion"});
    if (options_.completion_only_loss.value_or(false) && !continues) {
      throw input_error(str_cat(record.where(), ": has no prompt and completion"),
                        "completion_only_loss is for rows with both; leave it out");
    }
    if (continues) return continued(record);
    if (record.has("messages")) return conversation(record);
    if (!record.has("text")) throw record.no_columns(wanted);
    Row row;
    row.example = all_trained(encoder_.document(record.text("text"), record));
    return row;
  }

 private:
  [[nodiscard]] static Row labelled(const Record& record) {
    Row row;
    row.example = all_trained(record.ids("input_ids"));
    const auto* labels = record.find("labels");
    if (labels == nullptr) return row;
    const auto& ids = row.example.ids;
    if (!labels->is_array() || labels->size() != ids.size()) {
      throw input_error(
          str_cat(record.place("labels"), " should be a list of ", ids.size(),
                  " labels, one for each of input_ids, and ",
                  labels->is_array() ? str_cat("has ", labels->size())
                                     : std::string("is a ") + labels->type_name()),
          "give a JSON array of the ids themselves, with -100 in the place of those that are not "
          "trained");
    }
    for (std::size_t t = 0; t < ids.size(); ++t) {
      const auto& label = (*labels)[t];
      const bool known = label.is_number_integer() && (label == no_label || label == ids[t]);
      require_input(known, record.place("labels"), ": entry ", t, " is ", label.dump(),
                    "; a label is the id at its place (", ids[t], ") or ", no_label);
      row.example.trained[t] = label == no_label ? 0 : 1;
    }
    return row;
  }

  [[nodiscard]] Row continued(const Record& record) const {
    const auto prompt = speech_of(record, "prompt", "user", options_.data);
    const auto completion = speech_of(record, "completion", "assistant", options_.data);
    const auto whole = encoder_.continued(prompt, completion, record);
    Row row = of(whole, record);
    row.joined = whole.joined;
    if (options_.completion_only_loss.value_or(true)) {
      std::fill_n(row.example.trained.begin(), whole.begin, 0);
      row.partly = true;
    }
    return row;
  }

  [[nodiscard]] Row conversation(const Record& record) const {
    return of(encoder_.conversation(speech_of(record, "messages", "user", options_.data), record),
              record);
  }

  [[nodiscard]] Row of(const Continuation& whole, const Record& record) const {
    Row row;
    row.example = all_trained(whole.ids);
    if (whole.replies.empty() || !options_.assistant_only_loss) return row;
    if (std::find(whole.replies.begin(), whole.replies.end(), 1) == whole.replies.end()) {
      throw input_error(str_cat(record.where(), ": the assistant says nothing in it"),
                        "leave the row out, or train on all of it (assistant_only_loss = false)");
    }
    row.example.trained = whole.replies;
    row.straddling = whole.straddling;
    row.partly = true;
    return row;
  }

  const SftDataOptions& options_;
  RowEncoder encoder_;
};

// Returns how many tokens it lost.
std::int64_t cut(SftExample& example, const SftDataOptions& options) {
  const auto length = static_cast<std::int64_t>(example.ids.size());
  if (options.max_length <= 0 || length <= options.max_length) return 0;
  const std::int64_t lost = length - options.max_length;
  if (options.truncation == TruncationMode::keep_start) {
    example.ids.resize(static_cast<std::size_t>(options.max_length));
    example.trained.resize(example.ids.size());
  } else {
    example.ids.erase(example.ids.begin(), example.ids.begin() + lost);
    example.trained.erase(example.trained.begin(), example.trained.begin() + lost);
  }
  return lost;
}

// Whether the row was too long; one of which nothing to train is left is counted and left out.
bool keep(Row row, const SftDataOptions& options, SftData& data) {
  const std::int64_t lost = cut(row.example, options);
  auto& report = data.report;
  auto& trained = row.example.trained;
  if (!trained.empty()) trained.front() = 0;
  const auto count = std::count(trained.begin(), trained.end(), 1);
  if (count == 0) {
    ++report.dropped;
    return lost > 0;
  }
  const auto length = static_cast<std::int64_t>(trained.size());
  ++report.kept;
  report.cut += lost > 0 ? 1 : 0;
  report.tokens_cut += lost;
  report.joined += row.joined ? 1 : 0;
  report.straddling += row.straddling;
  report.tokens += length;
  report.trained += count;
  report.longest = std::max(report.longest, length);
  data.examples.push_back(std::move(row.example));
  return lost > 0;
}

}  // namespace

SftData read_sft_data(const std::filesystem::path& path, const SftDataOptions& options) {
  check_columns(options.data, {"input_ids", "labels", "prompt", "completion", "messages", "text"});
  const SftReader reader(options);
  SftData data;
  data.report.where = path.string();
  std::int64_t partly = 0;
  std::int64_t wholly = 0;
  bool too_long = false;
  for (const auto& row : read_records(path)) {
    if (options.data.limit > 0 && data.report.rows == options.data.limit) break;
    ++data.report.rows;
    const Record record(row, options.data);
    record.note_unread({"input_ids", "labels", "prompt", "completion", "messages", "text", "tools",
                        "chat_template_kwargs"},
                       data.report);
    Row read = reader.read(record);
    const auto& trained = read.example.trained;
    partly += read.partly ? 1 : 0;
    wholly += read.partly && std::find(trained.begin(), trained.end(), 0) == trained.end() ? 1 : 0;
    too_long |= keep(std::move(read), options, data);
  }
  if (partly > 0 && wholly == partly) {
    throw input_error(
        str_cat(path.string(), ": every token would be trained, those of prompts too"),
        "the prompts are empty, or the chat format marks no part as the assistant's");
  }
  if (data.examples.empty()) {
    throw input_error(str_cat(path.string(), ": no row has a token to train"),
                      too_long ? str_cat("max_length is ", options.max_length,
                                         ": a longer one, or truncation_mode keep_end, leaves more")
                               : "every label is -100, or the rows have less than two tokens");
  }
  return data;
}

}  // namespace onset
