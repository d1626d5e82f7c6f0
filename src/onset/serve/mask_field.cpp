#include "onset/serve/mask_field.h"

#include <array>
#include <charconv>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/serve/api_error.h"
#include "onset/serve/fields.h"
#include "onset/wemask/mask.h"
#include "onset/wemask/mask_json.h"

namespace onset {
namespace {

constexpr const char* param = "wemask";
constexpr std::size_t most_masks = 256;

template <typename Enum, std::size_t Count>
void read_name(Fields& fields, const std::string& key, const std::array<Enum, Count>& values,
               Enum& into) {
  const auto given = fields.text(key);
  if (!given) return;
  std::vector<std::string> names;
  for (const Enum value : values) {
    if (name_of(value) == *given) {
      into = value;
      return;
    }
    names.emplace_back(name_of(value));
  }
  throw bad_field(fields.path_of(key), str_cat(fields.path_of(key), ": ", quote(*given),
                                               " is none of ", join(names, ", ")));
}

std::vector<std::int64_t> integers_of(const Json& value, const std::string& path) {
  if (!value.is_array()) {
    throw bad_field(path, str_cat(path, ": should be an array of integers, is ", kind_of(value)));
  }
  std::vector<std::int64_t> result;
  for (const auto& item : value) {
    if (!item.is_number_integer()) {
      throw bad_field(path, str_cat(path, ": holds ", kind_of(item), " beside integers"));
    }
    result.push_back(item.get<std::int64_t>());
  }
  return result;
}

std::map<std::int64_t, std::vector<std::int64_t>> dims_of(const Json& value,
                                                          const std::string& path) {
  if (!value.is_object()) {
    throw bad_field(path, str_cat(path, ": should be an object of layers, is ", kind_of(value)));
  }
  std::map<std::int64_t, std::vector<std::int64_t>> result;
  for (const auto& [key, dims] : value.items()) {
    std::int64_t layer = -1;
    const char* end = key.data() + key.size();
    const auto parsed = std::from_chars(key.data(), end, layer);
    if (parsed.ec != std::errc() || parsed.ptr != end || layer < 0 ||
        std::to_string(layer) != key) {
      throw bad_field(path, str_cat(path, ": ", quote(key), " is no layer"));
    }
    result[layer] = integers_of(dims, str_cat(path, ".", key));
  }
  return result;
}

// What would be read and then left aside.
void refuse_without_effect(Fields& fields, const MaskOptions& options) {
  const auto refuse = [&](const char* key, const std::string& why) {
    throw bad_field(fields.path_of(key), str_cat(fields.path_of(key), ": ", why));
  };
  if (fields.find("dims") != nullptr && options.criterion != MaskCriterion::given) {
    refuse("dims", R"(is read with criterion "given" alone)");
  }
  if (fields.find("positions") != nullptr && options.tokens != MaskTokens::positions) {
    refuse("positions", R"(is read with tokens "positions" alone)");
  }
  if (!options.official_compat) return;
  if (fields.find("criterion") != nullptr && options.criterion != MaskCriterion::activation) {
    refuse("criterion", str_cat("official_compat masks by the activation, not by ",
                                quote(name_of(options.criterion))));
  }
  if (options.placement != MaskPlacement::post_norm) {
    refuse("placement", "official_compat masks the norm's output");
  }
  if (options.tokens != MaskTokens::first) {
    refuse("tokens", "official_compat masks the first token of every chunk");
  }
}

MaskOptions read_options(const Json& field) {
  Fields fields(field, param);
  MaskOptions options;
  read_name(fields, "criterion",
            std::array{MaskCriterion::weight, MaskCriterion::activation, MaskCriterion::magnitude,
                       MaskCriterion::random, MaskCriterion::lowest, MaskCriterion::given},
            options.criterion);
  read_name(fields, "placement", std::array{MaskPlacement::post_norm, MaskPlacement::pre_norm},
            options.placement);
  read_name(fields, "tokens",
            std::array{MaskTokens::first, MaskTokens::massive, MaskTokens::positions},
            options.tokens);
  if (const Json* positions = fields.find("positions")) {
    options.positions = integers_of(*positions, fields.path_of("positions"));
  }
  if (const Json* dims = fields.find("dims")) {
    options.given = dims_of(*dims, fields.path_of("dims"));
  }
  options.gamma = fields.number("gamma", 0, 1).value_or(options.gamma);
  if (options.gamma == 0) {
    throw bad_field(
        fields.path_of("gamma"),
        str_cat(fields.path_of("gamma"), R"(: 0 masks nothing; "wemask": "off" says the same)"));
  }
  options.k = fields.integer("k");
  options.rate = fields.number("rate", 0, 1);
  options.from_layer = fields.integer("from_layer");
  options.to_layer = fields.integer("to_layer");
  options.seed = static_cast<std::uint64_t>(fields.integer("seed", 0).value_or(0));
  options.official_compat = fields.boolean("official_compat").value_or(false);
  fields.refuse_others();
  refuse_without_effect(fields, options);
  return options;
}

}  // namespace

OrderedJson mask_summary_json(const MaskSpec& spec) {
  OrderedJson json{{"criterion", name_of(spec.criterion)},
                   {"k", spec.k},
                   {"from_layer", spec.from_layer},
                   {"to_layer", spec.to_layer},
                   {"placement", name_of(spec.placement)},
                   {"tokens", name_of(spec.tokens)},
                   {"gamma", spec.gamma}};
  if (spec.rate) json["rate"] = *spec.rate;
  if (spec.tokens == MaskTokens::positions) json["positions"] = spec.positions;
  if (spec.criterion == MaskCriterion::random) json["seed"] = spec.seed;
  if (spec.official_compat) json["official_compat"] = true;
  return json;
}

MaskChooser::MaskChooser(const Model& model, std::optional<MaskSpec> given,
                         std::function<FoundMassive()> find_massive)
    : model_(model), find_massive_(std::move(find_massive)) {
  if (given) given_ = std::make_shared<const MaskSpec>(std::move(*given));
}

ChosenMask MaskChooser::choose(const Json* field) {
  std::shared_ptr<const MaskSpec> spec;
  if (field == nullptr) {
    spec = given_;
  } else if (*field != "off") {
    try {
      spec = resolve(*field);
    } catch (...) {
      throw current_api_error(param);
    }
  }
  return {spec, spec == nullptr ? OrderedJson("off") : mask_summary_json(*spec)};
}

std::shared_ptr<const MaskSpec> MaskChooser::resolve(const Json& field) {
  const bool on = field == "on";
  if (!on && !field.is_object()) {
    throw bad_field(
        param, str_cat(R"(wemask: should be "off", "on" or an object, is )",
                       field.is_string() ? quote(field.get<std::string>(), 40) : kind_of(field)));
  }
  const std::lock_guard lock(mutex_);
  if (on && given_ != nullptr) return given_;
  const std::string key = on ? "{}" : field.dump();
  if (const auto made = made_.find(key); made != made_.end()) return made->second;
  if (made_.size() >= most_masks) made_.clear();
  auto spec = std::make_shared<const MaskSpec>(make(on ? Json::object() : field));
  made_[key] = spec;
  return spec;
}

MaskSpec MaskChooser::make(const Json& field) {
  if (field.contains("format")) {
    MaskSpec spec = parse_mask(field, param);
    static_cast<void>(check_mask(spec, model_));
    return spec;
  }
  MaskOptions options = read_options(field);
  if (!options.from_layer || options.tokens == MaskTokens::massive) {
    options.me_layer = found().me_layer;
    options.massive_dims = found().massive_dims;
  }
  return make_mask(model_, options);
}

const FoundMassive& MaskChooser::found() {
  if (!found_) found_ = find_massive_();
  return *found_;
}

}  // namespace onset
