#include "onset/wemask/mask_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset {
namespace {

constexpr std::string_view mask_format = "onset.wemask.1";

const std::vector<std::string> mask_keys{
    "format", "model",      "criterion",       "placement",
    "tokens", "positions",  "massive_dims",    "massive_threshold",
    "gamma",  "from_layer", "to_layer",        "k",
    "rate",   "seed",       "official_compat", "dims"};
const std::vector<std::string> model_keys{"architecture", "layers",   "hidden", "heads",
                                          "kv_heads",     "head_dim", "gains"};

std::string hex(std::uint64_t value) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  const std::string text(digits.data(), end);
  return std::string(digits.size() - text.size(), '0') + text;
}

// An object of the file; `inside` says which, for messages.
class Fields {
 public:
  Fields(const Json& object, std::string where, const std::vector<std::string>& known)
      : object_(object), where_(std::move(where)) {
    require_input(object.is_object(), where_, ": should be an object, is ", object.type_name());
    for (const auto& [key, value] : object.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      throw input_error(str_cat(where_, ": key ", quote(key), " is not known"),
                        did_you_mean(nearest(key, known)));
    }
  }

  [[nodiscard]] std::int64_t integer(const std::string& key) const {
    const auto value = find_int(object_, key, where_);
    require_input(value.has_value(), where_, ": key ", quote(key), " is missing");
    return *value;
  }
  [[nodiscard]] double number(const std::string& key) const {
    const auto value = find_number(object_, key, where_);
    require_input(value.has_value(), where_, ": key ", quote(key), " is missing");
    return *value;
  }
  [[nodiscard]] std::optional<double> optional_number(const std::string& key) const {
    return find_number(object_, key, where_);
  }
  [[nodiscard]] bool boolean(const std::string& key) const {
    return find_bool(object_, key, where_).value_or(false);
  }
  [[nodiscard]] std::string text(const std::string& key) const {
    const auto value = find_string(object_, key, where_);
    require_input(value.has_value(), where_, ": key ", quote(key), " is missing");
    return *value;
  }
  // Integers in [0, bound); an absent list is empty.
  [[nodiscard]] std::vector<std::int64_t> integers(const std::string& key,
                                                   std::int64_t bound) const {
    const auto found = object_.find(key);
    if (found == object_.end() || found->is_null()) return {};
    return read_integers(*found, str_cat(where_, ": ", key), bound);
  }
  [[nodiscard]] const Json& child(const std::string& key) const {
    const auto found = object_.find(key);
    require_input(found != object_.end(), where_, ": key ", quote(key), " is missing");
    return *found;
  }
  // The value of an enumeration by its name.
  template <typename Enum>
  [[nodiscard]] Enum choice(const std::string& key, std::initializer_list<Enum> values) const {
    const std::string given = text(key);
    std::vector<std::string> names;
    for (const Enum value : values) {
      if (given == name_of(value)) return value;
      names.emplace_back(name_of(value));
    }
    throw input_error(str_cat(where_, ": ", key, " ", quote(given), " is not known; known are ",
                              join(names, ", ")));
  }

  static std::vector<std::int64_t> read_integers(const Json& list, const std::string& where,
                                                 std::int64_t bound) {
    require_input(list.is_array(), where, " should be a list of integers");
    std::vector<std::int64_t> values;
    for (const Json& value : list) {
      require_input(value.is_number_integer(), where, " should be a list of integers");
      values.push_back(value.get<std::int64_t>());
      require_input(values.back() >= 0 && values.back() < bound, where, " holds ", values.back(),
                    ", expected 0 to ", bound - 1);
    }
    return values;
  }

 private:
  const Json& object_;
  std::string where_;
};

ModelFingerprint parse_fingerprint(const Json& json, const std::string& where) {
  const Fields fields(json, where, model_keys);
  ModelFingerprint print{.architecture = fields.text("architecture"),
                         .layers = fields.integer("layers"),
                         .hidden = fields.integer("hidden"),
                         .heads = fields.integer("heads"),
                         .kv_heads = fields.integer("kv_heads"),
                         .head_dim = fields.integer("head_dim"),
                         .gains = {}};
  constexpr std::int64_t most = std::int64_t{1} << 26;
  for (const std::int64_t size : {print.layers, print.hidden}) {
    require_input(size >= 1 && size <= most, where, ": a size of the model is ", size);
  }
  const Json& gains = fields.child("gains");
  require_input(gains.is_array() && static_cast<std::int64_t>(gains.size()) == print.layers, where,
                ": gains should be a list of ", print.layers, " hashes");
  for (const Json& text : gains) {
    require_input(text.is_string(), where, ": gains should be a list of hashes");
    const auto digits = text.get<std::string>();
    std::uint64_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, value, 16);
    require_input(!digits.empty() && result.ec == std::errc() && result.ptr == end, where,
                  ": gains hold ", quote(digits), ", expected a hexadecimal number");
    print.gains.push_back(value);
  }
  return print;
}

void parse_dims(const Json& json, const std::string& where, MaskSpec& spec) {
  require_input(json.is_object(), where, ": dims should be an object of lists");
  for (const auto& [key, list] : json.items()) {
    std::int64_t layer = -1;
    const char* end = key.data() + key.size();
    const auto result = std::from_chars(key.data(), end, layer);
    require_input(result.ec == std::errc() && result.ptr == end && std::to_string(layer) == key &&
                      spec.masks_layer(layer),
                  where, ": dims are listed for ", quote(key), ", expected layers ",
                  spec.from_layer, " to ", spec.to_layer);
    auto dims =
        Fields::read_integers(list, str_cat(where, ": dims of layer ", key), spec.model.hidden);
    require_input(static_cast<std::int64_t>(dims.size()) == spec.k, where, ": layer ", key,
                  " lists ", dims.size(), " dims, expected k = ", spec.k);
    require_input(std::set(dims.begin(), dims.end()).size() == dims.size(), where,
                  ": dims of layer ", key, " hold one of them twice");
    spec.dims[layer] = std::move(dims);
  }
  const std::int64_t needed = spec.is_chosen_by_token() ? 0 : spec.to_layer - spec.from_layer + 1;
  require_input(static_cast<std::int64_t>(spec.dims.size()) == needed, where,
                ": dims are listed for ", spec.dims.size(), " layers, expected ", needed);
}

void check_ranges(const MaskSpec& spec, const std::string& where) {
  require_input(
      spec.from_layer >= 0 && spec.from_layer <= spec.to_layer && spec.to_layer < spec.model.layers,
      where, ": the mask is for layers ", spec.from_layer, " to ", spec.to_layer,
      ", expected within 0 to ", spec.model.layers - 1);
  require_input(spec.k >= 1 && spec.k <= spec.model.hidden, where, ": k is ", spec.k,
                ", expected 1 to ", spec.model.hidden);
  require_input(spec.gamma >= 0 && spec.gamma <= 1, where, ": gamma is ", spec.gamma,
                ", expected 0 to 1");
  require_input(std::isfinite(spec.massive_threshold) && spec.massive_threshold > 0, where,
                ": massive_threshold is ", spec.massive_threshold, ", expected above 0");
  if (spec.rate) {
    require_input(*spec.rate > 0 && *spec.rate <= 1, where, ": rate is ", *spec.rate,
                  ", expected above 0, up to 1");
    const auto k = static_cast<std::int64_t>(*spec.rate * static_cast<double>(spec.model.hidden));
    require_input(k == spec.k, where, ": rate ", *spec.rate, " of ", spec.model.hidden, " dims is ",
                  k, ", but k is ", spec.k, "; rate is null where k was given");
  }
  require_input(spec.tokens != MaskTokens::massive || !spec.massive_dims.empty(), where,
                ": tokens \"massive\" need massive_dims");
  require_input((spec.tokens == MaskTokens::positions) == !spec.positions.empty(), where,
                ": positions are listed with tokens \"positions\", and with no others");
}

}  // namespace

OrderedJson fingerprint_json(const ModelFingerprint& print) {
  OrderedJson gains = OrderedJson::array();
  for (const std::uint64_t hash : print.gains) gains.push_back(hex(hash));
  return {{"architecture", print.architecture},
          {"layers", print.layers},
          {"hidden", print.hidden},
          {"heads", print.heads},
          {"kv_heads", print.kv_heads},
          {"head_dim", print.head_dim},
          {"gains", gains}};
}

OrderedJson mask_json(const MaskSpec& spec) {
  OrderedJson dims = OrderedJson::object();
  for (const auto& [layer, list] : spec.dims) dims[std::to_string(layer)] = list;
  return {{"format", mask_format},
          {"model", fingerprint_json(spec.model)},
          {"criterion", name_of(spec.criterion)},
          {"placement", name_of(spec.placement)},
          {"tokens", name_of(spec.tokens)},
          {"positions", spec.positions},
          {"massive_dims", spec.massive_dims},
          {"massive_threshold", spec.massive_threshold},
          {"gamma", spec.gamma},
          {"from_layer", spec.from_layer},
          {"to_layer", spec.to_layer},
          {"k", spec.k},
          {"rate", spec.rate ? OrderedJson(*spec.rate) : OrderedJson(nullptr)},
          {"seed", spec.seed},
          {"official_compat", spec.official_compat},
          {"dims", dims}};
}

MaskSpec parse_mask(const Json& json, const std::string& where) {
  const Fields fields(json, where, mask_keys);
  const std::string format = fields.text("format");
  require_input(format == mask_format, where, ": format is ", quote(format), ", expected ",
                mask_format);
  MaskSpec spec;
  spec.model = parse_fingerprint(fields.child("model"), where + ": model");
  spec.criterion = fields.choice(
      "criterion", {MaskCriterion::weight, MaskCriterion::activation, MaskCriterion::magnitude,
                    MaskCriterion::random, MaskCriterion::lowest, MaskCriterion::given});
  spec.placement = fields.choice("placement", {MaskPlacement::post_norm, MaskPlacement::pre_norm});
  spec.tokens =
      fields.choice("tokens", {MaskTokens::first, MaskTokens::massive, MaskTokens::positions});
  spec.positions = fields.integers("positions", std::int64_t{1} << 40);
  spec.massive_dims = fields.integers("massive_dims", spec.model.hidden);
  spec.massive_threshold = fields.optional_number("massive_threshold").value_or(100.0);
  spec.gamma = fields.number("gamma");
  spec.from_layer = fields.integer("from_layer");
  spec.to_layer = fields.integer("to_layer");
  spec.k = fields.integer("k");
  spec.rate = fields.optional_number("rate");
  const Json& seed = fields.child("seed");
  require_input(seed.is_number_unsigned(), where, ": seed should be an integer from 0 on");
  spec.seed = seed.get<std::uint64_t>();
  spec.official_compat = fields.boolean("official_compat");
  check_ranges(spec, where);
  parse_dims(fields.child("dims"), where, spec);
  return spec;
}

MaskSpec read_mask(const std::filesystem::path& path) {
  return parse_mask(read_json(path), path.string());
}

}  // namespace onset
