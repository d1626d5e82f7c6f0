// The two spellings of a configuration. Inside the model room; others call read_config().
#pragma once

#include <string>

#include "onset/base/error.h"
#include "onset/base/json.h"
#include "onset/model/config.h"
#include "onset/model/families.h"

namespace onset {

// `where` is the file to name in errors.
[[nodiscard]] ModelConfig read_hf_config(const Checkpoint& checkpoint, const std::string& where);
[[nodiscard]] ModelConfig read_gguf_config(const Checkpoint& checkpoint, const std::string& where);

// config.json, or an object inside it, with errors that name the file and the key.
class ConfigReader {
 public:
  ConfigReader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  [[nodiscard]] std::int64_t integer(const std::string& key) const {
    const auto value = find_int(object_, key, where_);
    require_input(value.has_value(), where_, ": key \"", key, "\" is missing");
    return *value;
  }
  [[nodiscard]] std::int64_t integer(const std::string& key, std::int64_t fallback) const {
    return find_int(object_, key, where_).value_or(fallback);
  }
  [[nodiscard]] double number(const std::string& key, double fallback) const {
    return find_number(object_, key, where_).value_or(fallback);
  }
  [[nodiscard]] bool boolean(const std::string& key, bool fallback) const {
    return find_bool(object_, key, where_).value_or(fallback);
  }
  [[nodiscard]] std::optional<std::string> text(const std::string& key) const {
    return find_string(object_, key, where_);
  }
  [[nodiscard]] const Json* child(const std::string& key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  const Json& object_;
  std::string where_;
};

// GGUF metadata whose keys begin with the architecture's name.
class GgufMetadata {
 public:
  GgufMetadata(const Json& values, std::string architecture, std::string where)
      : values_(values), prefix_(std::move(architecture) + "."), where_(std::move(where)) {}

  [[nodiscard]] std::int64_t integer(const std::string& key) const {
    const auto value = find_int(values_, prefix_ + key, where_);
    require_input(value.has_value(), where_, ": key \"", prefix_, key, "\" is missing");
    return *value;
  }
  [[nodiscard]] std::int64_t integer(const std::string& key, std::int64_t fallback) const {
    return find_int(values_, prefix_ + key, where_).value_or(fallback);
  }
  [[nodiscard]] double number(const std::string& key, double fallback) const {
    return find_number(values_, prefix_ + key, where_).value_or(fallback);
  }
  [[nodiscard]] bool boolean(const std::string& key, bool fallback) const {
    return find_bool(values_, prefix_ + key, where_).value_or(fallback);
  }
  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] std::optional<double> optional_number(const std::string& key) const {
    return find_number(values_, prefix_ + key, where_);
  }
  [[nodiscard]] std::optional<std::string> text(const std::string& key) const {
    return find_string(values_, prefix_ + key, where_);
  }

 private:
  const Json& values_;
  std::string prefix_;
  std::string where_;
};

// Mixtures: sizes, routing, and which layers are. The configuration has its layers.
void read_hf_mixture(const ConfigReader& reader, const Family& family, ModelConfig& config);
void read_gguf_mixture(const GgufMetadata& metadata, const Checkpoint& checkpoint,
                       const Family& family, ModelConfig& config);
// Latent attention: ranks and head sizes.
void read_hf_latent(const ConfigReader& reader, ModelConfig& config);
void read_gguf_latent(const GgufMetadata& metadata, ModelConfig& config);
// With latent attention yarn stretches the scores too: times m(mscale_all_dim)^2 (see RopeConfig).
// The configuration has its RoPE.
void apply_latent_scale(ModelConfig& config);

}  // namespace onset
