#include "onset/train/train_state.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <array>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include "onset/base/content_hash.h"
#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/checkpoint/safetensors.h"
#include "onset/train/checkpoint_files.h"
#include "onset/train/checkpoint_folders.h"

namespace onset {
namespace {

constexpr const char* state_file = "trainer_state.json";
constexpr const char* optimizer_file = "optimizer.safetensors";
constexpr const char* state_format = "onset-training";
constexpr const char* optimizer_format = "onset-adamw";
constexpr std::int64_t state_version = 1;

DType dtype_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return DType::f32;
    case at::kDouble:
      return DType::f64;
    case at::kBFloat16:
      return DType::bf16;
    default:
      break;
  }
  throw usage_error(
      str_cat("trained tensors of type ", at::toString(tensor.scalar_type()), " cannot be saved"));
}

// The tensors of one parameter under their names in the file.
std::array<std::pair<std::string, at::Tensor>, 4> named(const Parameter& parameter,
                                                        const AdamWMoments& moments) {
  return {{{"weight." + parameter.name, parameter.value.detach()},
           {"first." + parameter.name, moments.first},
           {"second." + parameter.name, moments.second},
           {"steps." + parameter.name, moments.steps}}};
}

void write_optimizer(const std::filesystem::path& path, const AdamW& optimizer) {
  SafetensorsWriter writer(path);
  writer.set_metadata("format", optimizer_format);
  const auto moments = optimizer.moments();
  for (std::size_t i = 0; i < moments.size(); ++i) {
    for (const auto& [name, tensor] : named(optimizer.parameters()[i], moments[i])) {
      const at::Tensor stored = tensor.cpu().contiguous();
      writer.add(name, dtype_of(stored), stored.sizes(),
                 {static_cast<const std::byte*>(stored.const_data_ptr()), stored.nbytes()});
    }
  }
  writer.commit();
}

OrderedJson state_json(const TrainState& state) {
  OrderedJson json{{"format", state_format},     {"version", state_version},
                   {"step", state.step},         {"best", nullptr},
                   {"identity", state.identity}, {"progress", state.progress}};
  if (state.best) {
    json["best"] = {{"step", state.best->step},
                    {"metric", state.best->metric},
                    {"value", finite_or_null(state.best->value)}};
  }
  return json;
}

// Changes with any value in the object.
std::string hash_of(const OrderedJson& json) { return ContentHash().add(json.dump()).hex(); }

// The state with what the files beside it hold, and a hash of all of this.
OrderedJson sealed(OrderedJson json, OrderedJson files) {
  json["files"] = std::move(files);
  json["content"] = hash_of(json);
  return json;
}

// States that were saved without a hash are taken as they are.
void check_seal(const OrderedJson& json, const std::filesystem::path& checkpoint,
                const std::string& where) {
  if (!json.contains("content")) return;
  OrderedJson rest = json;
  rest.erase("content");
  if (json.at("content") == hash_of(rest)) return;
  throw input_error(str_cat(where, ": is not what was saved: the file was changed or damaged"),
                    earlier_checkpoint_hint(checkpoint));
}

// "model.hidden" and both values of the first difference; empty where there is none.
std::string first_difference(const OrderedJson& saved, const OrderedJson& now,
                             const std::string& name) {
  if (!saved.is_object() || !now.is_object()) {
    if (saved == now) return {};
    return str_cat(name, " was ", saved.dump(), " and is ", now.dump());
  }
  const auto inside = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
  for (const auto& [key, value] : saved.items()) {
    if (!now.contains(key)) return str_cat(inside(key), " was ", value.dump(), " and is not set");
    const std::string found = first_difference(value, now.at(key), inside(key));
    if (!found.empty()) return found;
  }
  for (const auto& [key, value] : now.items()) {
    if (!saved.contains(key)) return str_cat(inside(key), " was not set and is ", value.dump());
  }
  return {};
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return Json(std::vector<std::int64_t>(shape.begin(), shape.end())).dump();
}

void check_tensor(const TensorInfo& info, const at::Tensor& tensor, const std::string& where) {
  const bool same_shape = tensor.sizes() == at::IntArrayRef(info.shape);
  require_input(same_shape, where, ": ", info.name, " has shape ", shape_text(info.shape),
                " there and ", shape_text(tensor.sizes()), " here: this is not the run's model");
  require_input(info.dtype == dtype_of(tensor), where, ": ", info.name, " has type ",
                dtype_info(info.dtype).name, " there and ", dtype_info(dtype_of(tensor)).name,
                " here");
}

OrderedJson parsed_state(const std::filesystem::path& checkpoint, const std::string& where) {
  std::error_code ignored;
  if (!std::filesystem::exists(where, ignored) &&
      std::filesystem::is_directory(checkpoint, ignored)) {
    throw input_error(str_cat(where, ": is missing, and was saved with the checkpoint"),
                      earlier_checkpoint_hint(checkpoint));
  }
  const std::string text = read_file(where);
  try {
    return parse_ordered_json(text, where);
  } catch (const Error& error) {
    throw input_error(error.what(), earlier_checkpoint_hint(checkpoint));
  }
}

OrderedJson read_state_json(const std::filesystem::path& checkpoint) {
  const std::string where = (checkpoint / state_file).string();
  OrderedJson json = parsed_state(checkpoint, where);
  require_input(json.is_object() && json.value("format", OrderedJson()) == state_format, where,
                ": is not the state of an onset run");
  require_input(json.value("version", OrderedJson()) == state_version, where, ": has version ",
                json.value("version", OrderedJson()).dump(), ", this onset reads ", state_version);
  check_seal(json, checkpoint, where);
  return json;
}

}  // namespace

std::filesystem::path save_checkpoint(
    const std::filesystem::path& output, const TrainState& state, const AdamW& optimizer,
    const std::function<void(const std::filesystem::path& folder)>& write_model,
    CheckpointRetention retention) {
  const auto path = checkpoint_path(output, state.step);
  write_folder_atomically(path, [&](const std::filesystem::path& folder) {
    write_model(folder);
    write_optimizer(folder / optimizer_file, optimizer);
    const OrderedJson json = sealed(state_json(state), describe_files(folder));
    write_file_atomically(folder / state_file, json.dump(1) + "\n");
  });
  if (retention.keep > 0) {
    prune_checkpoints(output, retention.keep,
                      state.best ? std::optional(state.best->step) : std::nullopt);
  }
  return path;
}

TrainState read_train_state(const std::filesystem::path& checkpoint) {
  const std::string where = (checkpoint / state_file).string();
  const OrderedJson json = read_state_json(checkpoint);
  const Json plain = json;
  TrainState state;
  const auto step = find_int(plain, "step", where);
  require_input(step && *step >= 0, where, ": has no step");
  state.step = *step;
  for (const char* key : {"identity", "progress"}) {
    require_input(json.contains(key) && json.at(key).is_object(), where, ": has no object \"", key,
                  "\"");
  }
  state.identity = json.at("identity");
  state.progress = json.at("progress");
  if (json.contains("best") && json.at("best").is_object()) {
    const Json& best = plain.at("best");
    state.best = {.step = find_int(best, "step", where).value_or(0),
                  .metric = find_string(best, "metric", where).value_or(""),
                  .value = find_number(best, "value", where).value_or(0)};
  }
  return state;
}

void check_checkpoint(const std::filesystem::path& checkpoint) {
  const OrderedJson json = read_state_json(checkpoint);
  if (json.contains("files")) check_files(checkpoint, json.at("files"));
}

void check_same_run(const TrainState& saved, const OrderedJson& identity,
                    const std::filesystem::path& checkpoint) {
  // Numbers compare as they read back: 1 and 1.0 are one value, and so are they here.
  const std::string difference = first_difference(saved.identity, identity, "");
  if (difference.empty()) return;
  // Of the rows there is a hash alone, which says nothing to anybody.
  if (difference.starts_with("data was ")) {
    throw input_error(
        str_cat(checkpoint.string(), ": the run cannot go on from here: its data have changed"),
        "bring back the rows and the tokenizer that it began with, or begin a new one in another "
        "folder");
  }
  if (difference.starts_with("ranks was ")) {
    throw input_error(
        str_cat(checkpoint.string(), ": the run cannot go on from here: ", difference),
        str_cat("start it on as many ranks as before: mpirun -n ",
                saved.identity.value("ranks", OrderedJson()).dump()));
  }
  throw input_error(str_cat(checkpoint.string(), ": the run cannot go on from here: ", difference),
                    "use the settings of that run, or begin a new one in another folder");
}

void read_optimizer(const std::filesystem::path& checkpoint, AdamW& optimizer) {
  const c10::NoGradGuard no_grad;
  const auto path = checkpoint / optimizer_file;
  const std::string where = path.string();
  const SafetensorsFile file = read_safetensors(path);
  const auto format = file.metadata.find("format");
  require_input(format != file.metadata.end() && format->second == optimizer_format, where,
                ": is not the state of onset's AdamW");
  std::map<std::string, const TensorInfo*> stored;
  for (const TensorInfo& info : file.tensors) stored[info.name] = &info;

  std::vector<std::pair<const TensorInfo*, at::Tensor>> copies;
  const auto moments = optimizer.moments();
  for (std::size_t i = 0; i < moments.size(); ++i) {
    for (const auto& [name, tensor] : named(optimizer.parameters()[i], moments[i])) {
      const auto found = stored.find(name);
      require_input(found != stored.end(), where, ": has no ", name,
                    ": other tensors were trained in that run");
      check_tensor(*found->second, tensor, where);
      copies.emplace_back(found->second, tensor);
      stored.erase(found);
    }
  }
  require_input(stored.empty(), where, ": has ", stored.empty() ? "" : stored.begin()->first,
                ", which this run does not train");
  for (const auto& [info, tensor] : copies) {
    const auto bytes = file.file.bytes().subspan(info->offset, info->bytes);
    const at::Tensor read = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
    std::memcpy(read.mutable_data_ptr(), bytes.data(), bytes.size());
    tensor.copy_(read);
  }
}

}  // namespace onset
