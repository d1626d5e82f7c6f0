#include "inspect_report.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "inspect_config.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/tokenizer/chat.h"
#include "text.h"

namespace onset::app {
namespace {

std::optional<std::string> chat_name(const Tokenizer& tokenizer) {
  const auto& source = tokenizer.chat_template();
  const auto format = source ? recognise_chat_format(*source) : std::nullopt;
  return format ? std::optional<std::string>(format->name) : std::nullopt;
}

std::vector<TokenId> special_tokens(const Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (tokenizer.is_special(id)) ids.push_back(id);
  }
  return ids;
}

std::vector<TensorInfo> tensors_of(const InspectReport& report) {
  return report.checkpoint ? report.checkpoint->tensors() : std::vector<TensorInfo>();
}

OrderedJson token_json(const Tokenizer& tokenizer, TokenId id) {
  return {{"id", id}, {"piece", valid_utf8(tokenizer.piece(id))}};
}

OrderedJson tokenizer_json(const InspectReport& report) {
  if (!report.tokenizer) return nullptr;
  const auto& tokenizer = *report.tokenizer;
  const auto& special = tokenizer.special();
  OrderedJson eos = OrderedJson::array();
  for (const auto id : special.eos) eos.push_back(token_json(tokenizer, id));
  OrderedJson result{{"description", valid_utf8(tokenizer.description())},
                     {"vocabulary", tokenizer.vocabulary_size()},
                     {"special_tokens", special_tokens(tokenizer).size()},
                     {"bos", special.bos ? token_json(tokenizer, *special.bos) : nullptr},
                     {"add_bos", special.add_bos},
                     {"eos", eos},
                     {"add_eos", special.add_eos},
                     {"has_chat_template", tokenizer.chat_template().has_value()}};
  const auto chat = chat_name(tokenizer);
  result["chat_format"] = chat ? OrderedJson(*chat) : OrderedJson(nullptr);
  return result;
}

// A whole number as long as a double holds one exactly.
OrderedJson bytes_json(double bytes) {
  constexpr double exact = 9007199254740992.0;  // 2^53
  return bytes < exact ? OrderedJson(static_cast<std::int64_t>(bytes)) : finite_or_null(bytes);
}

OrderedJson known(double bytes) { return bytes > 0 ? bytes_json(bytes) : OrderedJson(nullptr); }

void add_check(OrderedJson& row, const TensorCheck& check) {
  row["nan"] = check.nan;
  row["infinite"] = check.infinite;
  row["first_bad"] = check.bad() ? OrderedJson(check.first_bad) : OrderedJson(nullptr);
  row["min"] = check.judged && check.min <= check.max ? float_or_null(check.min) : nullptr;
  row["max"] = check.judged && check.min <= check.max ? float_or_null(check.max) : nullptr;
}

OrderedJson tensor_rows(const InspectReport& report) {
  OrderedJson rows = OrderedJson::array();
  const auto tensors = tensors_of(report);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    OrderedJson row{{"name", valid_utf8(tensors[i].name)},
                    {"dtype", dtype_info(tensors[i].dtype).name},
                    {"shape", tensors[i].shape},
                    {"bytes", tensors[i].bytes}};
    if (report.verification) add_check(row, report.verification->tensors[i]);
    rows.push_back(std::move(row));
  }
  return rows;
}

OrderedJson verify_json(const InspectReport& report) {
  OrderedJson problems = OrderedJson::array();
  std::int64_t judged = 0;
  const auto tensors = tensors_of(report);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& check = report.verification->tensors[i];
    judged += check.judged ? 1 : 0;
    if (!check.bad()) continue;
    OrderedJson row{{"name", valid_utf8(tensors[i].name)}};
    add_check(row, check);
    problems.push_back(std::move(row));
  }
  return {{"sound", !report.verification->bad()},
          {"bytes", report.verification->bytes},
          {"tensors", tensors.size()},
          {"tensors_judged", judged},
          {"problems", problems}};
}

// "name          text", the text wrapped beside the name.
std::string entry(const std::string& name, const std::string& text) {
  constexpr std::size_t column = 14;
  return pad_right(name, column) + wrap(text, 80, column) + "\n";
}

std::string architecture_text(const InspectReport& report) {
  if (!report.config) {
    auto name = fit(printable(report.architecture, true), 100, true);
    if (!report.weights_problem.empty()) return name;
    return message_text(str_cat(name, ", which onset cannot compute: ", report.config_problem));
  }
  const auto& config = *report.config;
  std::string text =
      str_cat(config.architecture, ": ", config.layer_count(), " layers, hidden ", config.hidden,
              ", ", config.heads, " heads and ", config.kv_heads, " KV heads of ", config.head_dim,
              ", FFN ", config.ffn, ", vocabulary ", grouped(config.vocabulary));
  if (config.context > 0) text += str_cat(", context ", grouped(config.context));
  return text;
}

std::string token_text(const Tokenizer& tokenizer, TokenId id) {
  return str_cat(id, " ", message_text(quote(tokenizer.piece(id))));
}

std::string tokenizer_text(const InspectReport& report) {
  if (!report.tokenizer)
    return entry("tokenizer", "none: " + message_text(report.tokenizer_problem));
  const auto& tokenizer = *report.tokenizer;
  const auto& special = tokenizer.special();
  std::string eos;
  for (const auto id : special.eos) {
    eos += str_cat(eos.empty() ? "" : ", ", token_text(tokenizer, id));
  }
  std::string bos = "none";
  if (special.bos) {
    bos = str_cat(token_text(tokenizer, *special.bos),
                  special.add_bos ? ", put before a text" : ", not put before a text");
  }
  std::string chat = "none";
  if (tokenizer.chat_template()) {
    chat = chat_name(tokenizer).value_or("a template that onset does not know");
  }
  constexpr std::size_t most_named = 6;
  const auto ids = special_tokens(tokenizer);
  std::string specials = str_cat(ids.size());
  for (std::size_t i = 0; i < std::min(ids.size(), most_named); ++i) {
    specials += (i == 0 ? ": " : ", ") + token_text(tokenizer, ids[i]);
  }
  if (ids.size() > most_named) specials += ", ..";
  return entry("tokenizer", printable(tokenizer.description(), utf8_locale())) +
         entry("vocabulary", grouped(tokenizer.vocabulary_size()) + " ids") +
         entry("special", specials) + entry("BOS", bos) + entry("EOS", eos.empty() ? "none" : eos) +
         entry("chat format", chat);
}

std::string memory_text(const MemoryNeed& memory) {
  std::string text = str_cat(human_bytes(memory.stored), " stored, ", human_bytes(memory.float32),
                             " with every weight as float32");
  if (memory.activations_per_1k > 0) {
    text += str_cat("\nscan, capture: about ", human_bytes(memory.activations_per_1k),
                    " of activations for 1,000 tokens");
    if (memory.largest_layer > 0) {
      text += str_cat(", and pages of the file for a layer at a time, at most ",
                      human_bytes(memory.largest_layer_stored),
                      "; f32 products expand no weight, bf16 and f64 one matrix at a time (",
                      human_bytes(memory.largest_matrix), " as float32)");
    }
  }
  if (memory.kv_cache_per_1k > 0) {
    text += str_cat("\nKV cache: ", human_bytes(memory.kv_cache_per_1k),
                    " for 1,000 tokens in float32");
  }
  return text;
}

std::string tensors_text(const InspectReport& report) {
  const auto tensors = tensors_of(report);
  std::string text = "\n" + pad_right("tensor", 46) + " " + pad_right("type", 7) +
                     pad_right("shape", 15) + pad_left("bytes", 10) + "\n";
  for (const auto& tensor : tensors) {
    // Long names push the row: a name is never cut.
    text += pad_right(printable(tensor.name, utf8_locale()), 46) + " " +
            pad_right(std::string(dtype_info(tensor.dtype).name), 7) +
            pad_right(describe_shape(tensor.shape), 15) +
            pad_left(human_bytes(static_cast<double>(tensor.bytes)), 10) + "\n";
  }
  return text;
}

std::string verify_text(const InspectReport& report) {
  const auto& verification = *report.verification;
  const auto tensors = tensors_of(report);
  float low = std::numeric_limits<float>::infinity();
  float high = -low;
  std::size_t bad = 0;
  std::string rows;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& check = verification.tensors[i];
    low = std::min(low, check.judged ? check.min : low);
    high = std::max(high, check.judged ? check.max : high);
    if (!check.bad()) continue;
    ++bad;
    rows += str_cat("  ", printable(tensors[i].name, utf8_locale()), ": ", grouped(check.nan),
                    " NaN, ", grouped(check.infinite), " infinite, the first at element ",
                    grouped(check.first_bad), "\n");
  }
  const auto bytes = static_cast<double>(verification.bytes);
  const auto count = static_cast<std::int64_t>(tensors.size());
  std::string text = str_cat(counted(count, "tensor"), ", ", human_bytes(bytes), " read in ",
                             human_seconds(verification.seconds), " (",
                             human_bytes(bytes / std::max(verification.seconds, 1e-9)), "/s)");
  if (low <= high) text += str_cat("; values from ", compact(low), " to ", compact(high));
  text += bad == 0 ? "; no NaN, no infinity"
                   : str_cat("; ", counted(static_cast<std::int64_t>(bad), "tensor"),
                             bad == 1 ? " is" : " are", " not sound:");
  return entry("verified", text) + rows;
}

OrderedJson described_model(const InspectReport& report) {
  if (report.config) {
    auto model = model_json(*report.config, *report.checkpoint);
    add_config(model, *report.config, *report.checkpoint);
    return model;
  }
  if (!report.checkpoint) return {{"architecture", nullptr}, {"format", nullptr}};
  return {{"architecture", valid_utf8(report.architecture)},
          {"format", format_name(*report.checkpoint)}};
}

std::string weights_text(const InspectReport& report) {
  return str_cat("none: ", message_text(report.weights_problem),
                 report.tokenizer ? "; onset tokenize works with the tokenizer, " : "; ",
                 "scan and capture need the weights with their configuration");
}

}  // namespace

std::string layers_problem(const InspectReport& report) {
  if (!report.config || !report.layers_in_files) return "";
  const auto behind = *report.layers_in_files - report.config->layer_count();
  // Layers that predict further tokens stand behind the others, and are left alone.
  if (behind >= 0 && behind <= report.config->extra_layers) return "";
  return str_cat("the configuration says ", report.config->layer_count(),
                 " layers, the tensors are those of ", *report.layers_in_files,
                 ": onset will not run this model");
}

OrderedJson inspect_json(const InspectReport& report, OrderedJson run) {
  OrderedJson types = OrderedJson::array();
  for (const auto& row : report.types) {
    types.push_back({{"dtype", row.name},
                     {"tensors", row.tensors},
                     {"elements", row.elements},
                     {"bytes", row.bytes}});
  }
  OrderedJson model = described_model(report);
  model["supported"] = report.config.has_value();
  const auto& problem = report.checkpoint ? report.config_problem : report.weights_problem;
  model["problem"] = report.config ? OrderedJson(nullptr) : OrderedJson(valid_utf8(problem));
  model["parameters"] = report.parameters;
  model["layers_in_files"] =
      report.layers_in_files ? OrderedJson(*report.layers_in_files) : OrderedJson(nullptr);
  const auto& memory = report.memory;
  OrderedJson result{{"run", std::move(run)}, {"model", std::move(model)}, {"types", types}};
  result["weights_problem"] = report.weights_problem.empty()
                                  ? OrderedJson(nullptr)
                                  : OrderedJson(valid_utf8(report.weights_problem));
  result["tokenizer"] = tokenizer_json(report);
  result["tokenizer_problem"] =
      report.tokenizer ? OrderedJson(nullptr) : OrderedJson(valid_utf8(report.tokenizer_problem));
  result["memory"] = {{"stored", bytes_json(memory.stored)},
                      {"float32", bytes_json(memory.float32)},
                      {"largest_layer_stored", known(memory.largest_layer_stored)},
                      {"largest_layer_float32", known(memory.largest_layer)},
                      {"largest_matrix_float32", known(memory.largest_matrix)},
                      {"activations_per_1k_tokens", known(memory.activations_per_1k)},
                      {"kv_cache_per_1k_tokens", known(memory.kv_cache_per_1k)}};
  if (report.list_tensors) result["tensors"] = tensor_rows(report);
  if (report.verification) {
    result["verify"] = verify_json(report);
    result["run"]["verify_seconds"] = report.verification->seconds;
  }
  return result;
}

std::string inspect_text(const InspectReport& report, const std::string& model) {
  std::string types;
  for (const auto& row : report.types) {
    types += pad_right(types.empty() ? "types" : "", 14) + pad_right(row.name, 8) +
             pad_left(grouped(row.tensors), 6) +
             pad_right(row.tensors == 1 ? " tensor" : " tensors", 8) +
             pad_left(human_bytes(static_cast<double>(row.bytes)), 10) + "\n";
  }
  const auto kind = report.checkpoint ? format_name(*report.checkpoint) : "a tokenizer alone";
  std::string text = entry("model", str_cat(printable(model, utf8_locale()), " (", kind, ")"));
  if (report.checkpoint) text += entry("architecture", architecture_text(report));
  if (!report.weights_problem.empty()) {
    return text + entry("weights", weights_text(report)) + tokenizer_text(report);
  }
  if (report.config) {
    for (const auto& [name, said] : config_rows(*report.config, *report.checkpoint)) {
      text += entry(name, said);
    }
  }
  text += entry("parameters", grouped(report.parameters));
  text += types;
  text += tokenizer_text(report);
  text += entry("memory", memory_text(report.memory));
  if (report.verification) text += verify_text(report);
  if (report.list_tensors) text += tensors_text(report);
  return text;
}

}  // namespace onset::app
