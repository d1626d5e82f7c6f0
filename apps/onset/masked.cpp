#include "masked.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "onset/base/error.h"
#include "onset/wemask/mask_json.h"
#include "text.h"

namespace onset::app {
namespace {

constexpr std::size_t number_width = 9;

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Layers at the beginning whose numbers are equal in both runs.
std::size_t equal_layers(const std::vector<MaskedColumn>& columns) {
  const std::size_t layers = columns.front().unmasked.size();
  for (std::size_t l = 0; l < layers; ++l) {
    const bool equal = std::all_of(columns.begin(), columns.end(), [l](const MaskedColumn& column) {
      return same(column.unmasked[l], column.masked[l]);
    });
    if (!equal) return l;
  }
  return layers;
}

std::string triple(double unmasked, double masked, NumberText text) {
  return column(text(unmasked), number_width) + column(text(masked), number_width) +
         column(difference_text(unmasked, masked, text), number_width);
}

std::string triple_heading() {
  return column("unmasked", number_width) + column("masked", number_width) +
         column("change", number_width);
}

std::string two_digits(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 std::chars_format::scientific, 1);
  return {digits.data(), end.ptr};
}

}  // namespace

std::optional<MaskSpec> mask_for_model(const MaskFileOptions& options, const Model& model,
                                       const std::string& path, const Log& log) {
  try {
    return mask_for(options, model, log);
  } catch (const Error& error) {
    throw Error(error.kind(), str_cat(path, ": ", error.what()), error.hint());
  }
}

std::string three_decimals(double value) { return fixed(value, 3); }

std::string difference_text(double unmasked, double masked, NumberText text) {
  if (same(unmasked, masked)) return std::isnan(masked) ? "-" : "0";
  const double difference = masked - unmasked;
  if (!std::isfinite(difference)) return "-";
  // What is left of rounding gets two digits, so that the column stays narrow.
  const bool tiny = text == compact && std::fabs(difference) < 0.001;
  return (difference > 0 ? "+" : "") + (tiny ? two_digits(difference) : text(difference));
}

std::string masked_layers_text(const std::vector<MaskedColumn>& columns,
                               const std::vector<std::string>& notes,
                               const std::string& note_name) {
  std::string names(6, ' ');
  std::string heading = " layer";
  for (const auto& of : columns) {
    names += pad_left(of.name, 3 * number_width);
    heading += triple_heading();
  }
  std::string text = names + "\n" + heading + (note_name.empty() ? "" : "  " + note_name) + "\n";
  const std::size_t layers = columns.front().unmasked.size();
  const std::size_t equal = equal_layers(columns);
  if (equal == 1) text += "     0  equal in both runs\n";
  if (equal > 1) text += pad_left(str_cat("0-", equal - 1), 6) + "  equal in both runs\n";
  for (std::size_t l = equal; l < layers; ++l) {
    text += pad_left(str_cat(l), 6);
    for (const auto& of : columns) text += triple(of.unmasked[l], of.masked[l], of.text);
    text += (notes.empty() ? "" : "  " + notes[l]) + "\n";
  }
  return text + "\n";
}

std::string masked_rows_text(const std::string& heading, const std::vector<std::string>& names,
                             const std::vector<MaskedColumn>& columns) {
  std::size_t width = display_width(heading);
  for (const auto& name : names) width = std::max(width, display_width(name));
  std::string quantities(width, ' ');
  std::string text = pad_right(heading, width);
  for (const auto& of : columns) {
    quantities += pad_left(of.name, 3 * number_width);
    text += triple_heading();
  }
  text = quantities + "\n" + text + "\n";
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += pad_right(names[i], width);
    for (const auto& of : columns) text += triple(of.unmasked[i], of.masked[i], of.text);
    text += "\n";
  }
  return text + "\n";
}

std::string masked_numbers_text(const std::vector<MaskedNumber>& numbers) {
  std::size_t width = 0;
  for (const auto& number : numbers) width = std::max(width, display_width(number.name));
  std::string text = std::string(width, ' ') + triple_heading() + "\n";
  for (const auto& number : numbers) {
    text +=
        pad_right(number.name, width) + triple(number.unmasked, number.masked, number.text) + "\n";
  }
  return text + "\n";
}

std::string mask_words(const MaskSpec& spec) {
  std::string text =
      str_cat(spec.k, " of ", spec.model.hidden, " dims by ", name_of(spec.criterion),
              " in layers ", spec.from_layer, " to ", spec.to_layer, ", ", name_of(spec.placement),
              ", gamma ", shortest(spec.gamma), ", token ", name_of(spec.tokens));
  if (spec.rate) text += str_cat(" (rate ", shortest(*spec.rate), ")");
  if (spec.official_compat) text += ", as the released code";
  return text;
}

std::string masked_heading(const MaskSpec& spec) {
  return "mask    " + wrap(mask_words(spec), 80, 8) + "\n\n";
}

std::string masked_caution() {
  return "This is what the mask changes inside the model. Whether it helps the model or harms it, "
         "such numbers do not show: that takes a measurement on tasks, beside random masks of the "
         "same size.";
}

OrderedJson wemask_json(const std::optional<MaskSpec>& spec) {
  return spec ? mask_json(*spec) : OrderedJson(nullptr);
}

void add_mask_path(OrderedJson& run, const std::string& path) {
  run["paths"]["wemask"] = path.empty() ? OrderedJson(nullptr) : OrderedJson(valid_utf8(path));
}

}  // namespace onset::app
