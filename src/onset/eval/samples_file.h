// samples_*.jsonl: one line for each document and filter of a task, in the layout of
// lm-evaluation-harness 0.4, written by it or by onset. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "onset/base/file.h"
#include "onset/base/json.h"

namespace onset {

// Of one metric. Perplexities come as pairs [log-likelihood, units]: sum and weight of a mean.
struct SampleScore {
  double value = 0;  // NaN where the file has no number
  double weight = 1;
  bool is_pair = false;
};

struct Sample {
  std::int64_t doc = 0;  // doc_id
  std::string filter;    // "none" where the line has none
  std::string doc_hash;  // empty where the line has none; so the next
  std::string prompt_hash;
  std::map<std::string, SampleScore> scores;  // by metric
  // Negative log-likelihoods of the windows of a text (`nll_per_window`, which onset writes).
  std::vector<double> windows;
  std::int64_t line = 0;   // from 1
  std::size_t offset = 0;  // of the line in the file
  std::size_t length = 0;
};

struct SamplesFile {
  std::filesystem::path path;
  std::string task;
  std::vector<Sample> samples;       // in the order of the file
  std::vector<std::string> metrics;  // in order of appearance
  MappedFile file;
};

// Only what a comparison needs is kept; the lines stay in the mapped file. Metrics are the names in
// a line's "metrics" or, without it, all members that are numbers and no part of the layout. Scores
// are numbers, booleans, or pairs; metrics that are something else are left out.
// Throws an input error naming file and line: not JSON, no doc_id, a document twice with one
// filter. "NaN" and "Infinity", which Python writes, are no numbers here. Empty lines are passed
// over.
[[nodiscard]] SamplesFile read_samples(const std::filesystem::path& path, const std::string& task);

// The whole of one line again.
[[nodiscard]] Json sample_line(const SamplesFile& file, const Sample& sample);

// JSON in which NaN, Infinity and -Infinity, where they are no part of a string, count as null.
[[nodiscard]] Json parse_python_json(std::string_view text, const std::string& where);

}  // namespace onset
