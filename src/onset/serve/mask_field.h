// The request field "wemask": which mask a request is answered under. Torch-free.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "onset/base/json.h"
#include "onset/wemask/mask_spec.h"

namespace onset {

class Model;

// What a scan found, for masks that say no layer.
struct FoundMassive {
  std::optional<std::int64_t> me_layer;
  std::vector<std::int64_t> massive_dims;
};

struct ChosenMask {
  std::shared_ptr<const MaskSpec> spec;  // null: off
  // {"wemask": "off"}, or what the mask is; for the response.
  OrderedJson summary;
};

// What a mask is, without its dims and without what it was made for.
[[nodiscard]] OrderedJson mask_summary_json(const MaskSpec& spec);

// Safe for several threads.
class MaskChooser {
 public:
  // `given`: the server's own mask, checked against the model. `find_massive` scans the model; it
  // is called once, when the first mask needs it.
  MaskChooser(const Model& model, std::optional<MaskSpec> given,
              std::function<FoundMassive()> find_massive);

  // `field`: the field's value or null where it is missing. "off"; "on": the server's mask, else
  // the default one; an object: the content of a wemask.json, or the fields criterion, placement,
  // tokens, positions, gamma, k, rate, from_layer, to_layer, seed, dims and official_compat of a
  // mask to make. Missing: on where the server was given a mask. Throws an ApiError on param
  // "wemask".
  [[nodiscard]] ChosenMask choose(const Json* field);

 private:
  [[nodiscard]] std::shared_ptr<const MaskSpec> resolve(const Json& field);
  [[nodiscard]] MaskSpec make(const Json& field);
  [[nodiscard]] const FoundMassive& found();

  const Model& model_;
  std::shared_ptr<const MaskSpec> given_;
  std::function<FoundMassive()> find_massive_;
  std::mutex mutex_;
  std::optional<FoundMassive> found_;
  // Masks of earlier requests by what was asked: their dims are chosen once.
  std::map<std::string, std::shared_ptr<const MaskSpec>> made_;
};

}  // namespace onset
