// Pieces of the words of `onset explain`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "explain_report.h"

namespace onset::app {

// "layer 11 (block 12 of 30)".
[[nodiscard]] std::string layer_words(const Explanation& explanation, std::int64_t layer);
// "token 0 ("My") of prompt 0".
[[nodiscard]] std::string token_words(const Explanation& explanation, const TargetToken& token,
                                      const TextStyle& style);
// "built-in sample, 512 tokens of it; perplexity in windows of 512 without BOS, sinks in ..".
[[nodiscard]] std::string text_words(const TextUsed& used, const TextStyle& style);
// What a text shorter than a sample of 64 tokens cannot say; "" for a longer one.
[[nodiscard]] std::string short_text_words(const TextUsed& used);
// "massive " where the explained entry is massive, else nothing: "the massive token", "the token".
[[nodiscard]] std::string massive_word(const Explanation& explanation);
// "12 to 15, 20" of ascending numbers.
[[nodiscard]] std::string ranges(const std::vector<std::int64_t>& numbers);
// As compact(), but whole from 10 on.
[[nodiscard]] std::string about(double value);
// As compact(), but "8.08e6" from 100,000 on.
[[nodiscard]] std::string perplexity_text(double value);
// "neuron 3" or, in a mixture, "experts.1 3".
[[nodiscard]] std::string neuron_name(const NeuronPart& neuron);
// Of more than this many explained dims the rest is left to the JSON.
inline constexpr std::size_t dims_told = 3;
// "and 4 more (--json)".
[[nodiscard]] std::string more_words(std::size_t count);
// The layers after the edited one, by how much their sink rate differs between doses, the largest
// difference first.
[[nodiscard]] std::vector<std::size_t> layers_by_change(const DoseResult& dose);
[[nodiscard]] std::string condition_name(const DoseResult& dose, const DoseCondition& condition);

// As ffn_change_name, for reading: "as is".
[[nodiscard]] std::string ffn_change_words(FfnChange change);

[[nodiscard]] std::vector<std::string> factorial_words(const Explanation& explanation);
[[nodiscard]] std::vector<std::string> vocabulary_words(const Explanation& explanation,
                                                        const TextStyle& style);
[[nodiscard]] std::vector<std::string> dose_words(const Explanation& explanation);

// Rows of part 3, 5 and 6.
[[nodiscard]] std::string factorial_rows(const FactorialResult& factorial);
[[nodiscard]] std::string vocabulary_rows(const VocabularyResult& vocabulary);
[[nodiscard]] std::string dose_rows(const DoseResult& dose);

// What flattening the gain and the change of the FFN do alone and together; empty where one of them
// was not run or M is 0.
[[nodiscard]] std::string interaction_words(const FactorialResult& factorial, FfnChange change);
// How the sinks of later layers respond, beside the controls: the rates, then the conclusion.
[[nodiscard]] std::string dose_verdict(const DoseResult& dose);
// "the controls change the sink rate by at most 1.2 percentage points: most of ..".
[[nodiscard]] std::string dose_conclusion(const DoseResult& dose);
// Where sinks and perplexity part, in words: what takes more of the sinks costs far less. Else "".
[[nodiscard]] std::string perplexity_apart(const DoseResult& dose);

// Of a fall: the neuron that writes most against the entry, with what its gate reads; nothing where
// that is not known.
[[nodiscard]] const NeuronPart* main_opponent(const EntryAttribution& entry);
// Whether a good part of the neuron's gate comes from the attributed dim, and drives it.
[[nodiscard]] bool reads_the_dim(const NeuronPart& neuron);

}  // namespace onset::app
