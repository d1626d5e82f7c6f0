#include "onset/train/metrics.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/json.h"
#include "onset/train/append_file.h"
#include "onset/train/tensorboard.h"

namespace onset {
namespace {

constexpr const char* metrics_file = "metrics.jsonl";
constexpr const char* step_key = "step";

MetricsLine parse_line(std::string_view text, const std::string& where) {
  const OrderedJson json = parse_ordered_json(text, where);
  require_input(
      json.is_object() && json.contains(step_key) && json.at(step_key).is_number_integer(), where,
      ": is no line of metrics: it has no step");
  MetricsLine line{.step = json.at(step_key).get<std::int64_t>(), .metrics = {}};
  for (const auto& [key, value] : json.items()) {
    if (key != step_key && value.is_number()) line.metrics.emplace_back(key, value.get<double>());
  }
  return line;
}

// Calls visit(line, its text) for every whole line.
template <typename Visit>
void for_each_line(const std::filesystem::path& path, Visit&& visit) {
  const std::string text = read_file(path);
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) return;  // torn
    const std::string_view line(text.data() + begin, end - begin);
    ++number;
    begin = end + 1;
    if (line.empty()) continue;
    visit(parse_line(line, str_cat(path.string(), ", line ", number)), line);
  }
}

AppendFile open_metrics(const std::filesystem::path& path,
                        std::optional<std::int64_t> resumed_step) {
  if (!resumed_step || !std::filesystem::exists(path)) {
    return {path, AppendFile::Mode::truncate};
  }
  std::string kept;
  for_each_line(path, [&](const MetricsLine& line, std::string_view text) {
    if (line.step <= *resumed_step) kept.append(text) += '\n';
  });
  write_file_atomically(path, kept);
  return {path, AppendFile::Mode::append};
}

const std::filesystem::path& made(const std::filesystem::path& folder) {
  make_folder(folder);
  return folder;
}

}  // namespace

void MetricMeans::add(const std::string& name, double value, double weight) {
  const auto [found, is_new] = sums_.try_emplace(name);
  if (is_new) names_.push_back(name);
  if (std::isnan(value)) return;
  found->second.value += value * weight;
  found->second.weight += weight;
}

void MetricMeans::add(const Metrics& metrics) {
  for (const auto& [name, value] : metrics) add(name, value);
}

Metrics MetricMeans::take() {
  Metrics means;
  for (const std::string& name : names_) {
    const Sum& sum = sums_.at(name);
    if (sum.weight > 0) means.emplace_back(name, sum.value / sum.weight);
  }
  names_.clear();
  sums_.clear();
  return means;
}

Metrics completion_metrics(std::span<const std::int64_t> lengths, const std::vector<bool>& ended) {
  if (lengths.empty() || lengths.size() != ended.size()) return {};
  double sum = 0;
  double ended_sum = 0;
  double ended_count = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    sum += static_cast<double>(lengths[i]);
    if (!ended[i]) continue;
    ended_sum += static_cast<double>(lengths[i]);
    ++ended_count;
  }
  const auto count = static_cast<double>(lengths.size());
  const auto [shortest, longest] = std::minmax_element(lengths.begin(), lengths.end());
  return {{"completions/mean_length", sum / count},
          {"completions/min_length", static_cast<double>(*shortest)},
          {"completions/max_length", static_cast<double>(*longest)},
          {"completions/clipped_ratio", 1 - ended_count / count},
          {"completions/mean_terminated_length", ended_count > 0 ? ended_sum / ended_count : 0}};
}

struct MetricsWriter::Files {
  AppendFile lines;
  std::optional<EventFile> events;
};

MetricsWriter::MetricsWriter(const std::filesystem::path& folder,
                             std::optional<std::int64_t> resumed_step, bool events)
    : files_(new Files{open_metrics(made(folder) / metrics_file, resumed_step), std::nullopt}) {
  if (!events) return;
  files_->events.emplace(folder, resumed_step ? std::optional(*resumed_step + 1) : std::nullopt);
}

MetricsWriter::MetricsWriter(MetricsWriter&&) noexcept = default;
MetricsWriter& MetricsWriter::operator=(MetricsWriter&&) noexcept = default;
MetricsWriter::~MetricsWriter() = default;

void MetricsWriter::write(std::int64_t step, const Metrics& metrics) {
  OrderedJson line{{step_key, step}};
  for (const auto& [name, value] : metrics) line[name] = finite_or_null(value);
  files_->lines.write(line.dump() + "\n");
  if (!files_->events) return;
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  files_->events->write(step, std::chrono::duration<double>(since_1970).count(), metrics);
}

std::vector<MetricsLine> read_metrics(const std::filesystem::path& path) {
  const bool is_folder = std::filesystem::is_directory(path);
  std::vector<MetricsLine> lines;
  for_each_line(is_folder ? path / metrics_file : path,
                [&](MetricsLine line, std::string_view) { lines.push_back(std::move(line)); });
  return lines;
}

}  // namespace onset
