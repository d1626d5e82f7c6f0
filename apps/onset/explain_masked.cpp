// What a mask changes in an explanation: the tables and the words.

#include <algorithm>
#include <cmath>

#include "explain_words_parts.h"
#include "masked.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"

namespace onset::app {
namespace {

constexpr std::size_t name_width = 26;  // beside two quantities

std::string short_name(std::string name) {
  if (name.size() > name_width) name.resize(name_width);
  return name;
}

std::string stage_name(const Stage& stage) {
  return str_cat("after layer ", stage.layer, " (", stage.kind == StageKind::rise ? "rise" : "fall",
                 "), dim ", stage.dim);
}

// The value of a token's dim after the stages of both runs; NaN where only one has the stage.
void add_stages(const std::vector<StageAttribution>& unmasked,
                const std::vector<StageAttribution>& masked, std::vector<MaskedNumber>& numbers) {
  const auto name = [](const StageAttribution& row) { return stage_name(row.stage); };
  for (const auto& row : unmasked) {
    const auto found = std::find_if(masked.begin(), masked.end(),
                                    [&](const auto& other) { return name(other) == name(row); });
    numbers.push_back({name(row), row.stage.resid_post(),
                       found == masked.end() ? std::nan("") : found->stage.resid_post(), compact});
  }
  for (const auto& row : masked) {
    const bool known = std::any_of(unmasked.begin(), unmasked.end(),
                                   [&](const auto& other) { return name(other) == name(row); });
    if (!known) {
      numbers.push_back({name(row), std::nan(""), row.stage.resid_post(), compact});
    }
  }
}

std::vector<MaskedNumber> single_numbers(const ExplainResult& unmasked,
                                         const ExplainResult& masked) {
  std::vector<MaskedNumber> numbers;
  const auto& target = unmasked.target;
  for (std::size_t d = 0; d < std::min(target.dims.size(), dims_told); ++d) {
    numbers.push_back({str_cat("after layer ", target.layer, ", dim ", target.dims[d]),
                       target.tokens[target.shown].values[d],
                       masked.target.tokens[target.shown].values[d], compact});
  }
  const auto norm_of = [](const ExplainResult& result) {
    return result.norm && result.norm->ffn_norm ? result.norm->ffn_norm->relative_amplification
                                                : std::nan("");
  };
  if (unmasked.norm && unmasked.norm->ffn_norm) {
    numbers.push_back(
        {"amplification by the norm, x others'", norm_of(unmasked), norm_of(masked), compact});
  }
  if (unmasked.ffn && masked.ffn) add_stages(unmasked.ffn->stages, masked.ffn->stages, numbers);
  if (unmasked.fall && masked.fall) {
    add_stages(unmasked.fall->stages, masked.fall->stages, numbers);
    numbers.push_back({"largest |x| after the last layer", unmasked.fall->last_largest,
                       masked.fall->last_largest, compact});
  }
  if (unmasked.vocabulary && masked.vocabulary) {
    const auto share = [](const VocabularyResult& found) {
      return static_cast<double>(found.massive) / static_cast<double>(found.tokens);
    };
    numbers.push_back({"share of the vocabulary that turns massive", share(*unmasked.vocabulary),
                       share(*masked.vocabulary)});
  }
  return numbers;
}

// Perplexity and the sinks of later layers, of measurements on the text in their order.
class TextColumns {
 public:
  explicit TextColumns(std::int64_t layer) : layer_(layer) {}

  void add(std::string name, const TextMeasure& unmasked, const TextMeasure& masked) {
    names_.push_back(short_name(std::move(name)));
    perplexity_.unmasked.push_back(unmasked.perplexity);
    perplexity_.masked.push_back(masked.perplexity);
    sinks_.unmasked.push_back(sinks_behind(unmasked.sinks, layer_));
    sinks_.masked.push_back(sinks_behind(masked.sinks, layer_));
  }
  [[nodiscard]] std::string text(const std::string& heading) const {
    if (names_.empty()) return {};
    return masked_rows_text(heading, names_, {perplexity_, sinks_});
  }

 private:
  std::int64_t layer_;
  std::vector<std::string> names_;
  MaskedColumn perplexity_{"perplexity", {}, {}, perplexity_text};
  MaskedColumn sinks_{"sinks later (share)", {}, {}, three_decimals};
};

std::string factorial_text(const ExplainResult& unmasked, const ExplainResult& masked) {
  if (!unmasked.factorial || !masked.factorial) return {};
  TextColumns columns(unmasked.factorial->layer);
  for (const auto& cell : unmasked.factorial->cells) {
    const auto* other = cell_of(*masked.factorial, cell.a, cell.ffn);
    if (other == nullptr || !cell.text || !other->text) continue;
    const std::string gain =
        cell.a == 1.0 ? "as is" : (cell.a == 0.0 ? "flat" : str_cat("a = ", cell.a));
    columns.add(gain + ", " + ffn_change_words(cell.ffn), *cell.text, *other->text);
  }
  return columns.text("norm's gain, FFN");
}

std::string dose_text(const ExplainResult& unmasked, const ExplainResult& masked) {
  if (!unmasked.dose || !masked.dose) return {};
  TextColumns columns(unmasked.dose->layer);
  for (const auto& condition : unmasked.dose->conditions) {
    const auto* other = condition_of(*masked.dose, condition.name, condition.dose);
    if (other == nullptr) continue;
    columns.add(condition_name(*unmasked.dose, condition), condition.text, other->text);
  }
  return columns.text("entries");
}

}  // namespace

ExplainParts masked_parts(const ExplainParts& parts, const ExplainTarget& target,
                          const MaskSpec& mask) {
  ExplainParts result = parts;
  result.vocabulary = parts.vocabulary && mask.from_layer <= target.layer;
  return result;
}

Explanation masked_explanation(const Explanation& explanation) {
  Explanation masked = explanation;
  masked.scan = *explanation.masked_scan;
  masked.result = *explanation.masked;
  masked.masked_scan.reset();
  masked.masked.reset();
  return masked;
}

std::vector<std::string> explain_masked_paragraphs(const Explanation& explanation) {
  const auto& target = explanation.result.target;
  const auto& mask = *explanation.mask;
  std::vector<std::string> paragraphs;
  if (mask.from_layer > target.layer) {
    paragraphs.push_back(str_cat(
        "The mask begins in layer ", mask.from_layer, ", after layer ", target.layer,
        " that is explained: what that layer reads and writes, its norm, its neurons and "
        "which tokens can carry it, cannot differ",
        explanation.result.vocabulary ? " (the vocabulary was not run again)" : "",
        ". What comes in later layers can: stages and falls, and on the text perplexity and "
        "sinks."));
  } else {
    paragraphs.push_back(str_cat("The mask begins in layer ", mask.from_layer, ", not after layer ",
                                 target.layer,
                                 " that is explained, so that all parts can differ. The same "
                                 "layer, token and dims are explained in both runs."));
  }
  const auto& unmasked = explanation.result;
  const auto& masked = *explanation.masked;
  if (unmasked.dose && masked.dose) {
    const auto* before = condition_of(*unmasked.dose, "dose", 1.0);
    const auto* after = condition_of(*masked.dose, "dose", 1.0);
    if (before != nullptr && after != nullptr) {
      paragraphs.push_back(str_cat(
          "With the entries as they are the text's perplexity is ",
          perplexity_text(before->text.perplexity), " without the mask and ",
          perplexity_text(after->text.perplexity), " with it, on ", before->text.scored_tokens,
          " tokens: a difference of this size on so short a text may be chance. The doses under "
          "the mask scale the entries that the masked run has."));
    }
  }
  paragraphs.push_back(masked_caution());
  return paragraphs;
}

std::string explain_masked_text(const Explanation& explanation) {
  std::string words;
  for (const auto& paragraph : explain_masked_paragraphs(explanation)) {
    words += wrap(paragraph, 80, 0) + "\n";
  }
  return masked_heading(*explanation.mask) +
         masked_numbers_text(single_numbers(explanation.result, *explanation.masked)) +
         factorial_text(explanation.result, *explanation.masked) +
         dose_text(explanation.result, *explanation.masked) + words;
}

}  // namespace onset::app
