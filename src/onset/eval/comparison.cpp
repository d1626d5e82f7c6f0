#include "onset/eval/comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/eval/holm.h"

namespace onset {
namespace {

using Groups = std::map<std::string, std::vector<std::string>>;

// What is paired of one task, filter and metric.
struct Pairs {
  std::vector<ScorePair> scores;
  std::int64_t without_score = 0;
  bool is_nll = false;
  bool by_windows = false;
  std::vector<ChangedItem> changed;
};
struct RowKey {
  std::string filter;
  std::string metric;
  [[nodiscard]] bool operator<(const RowKey& other) const {
    return std::tie(filter, metric) < std::tie(other.filter, other.metric);
  }
};

std::vector<std::string> task_names(const EvaluationRun& run) {
  std::vector<std::string> names;
  for (const auto& samples : run.files.samples) names.push_back(samples.task);
  return names;
}

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// The tasks that `names` stand for; all where there are none.
std::set<std::string> wanted_tasks(const EvaluationRun& a, const EvaluationRun& b,
                                   const Groups& groups, const std::vector<std::string>& names) {
  std::set<std::string> known;
  for (const auto& name : task_names(a)) known.insert(name);
  for (const auto& name : task_names(b)) known.insert(name);
  if (names.empty()) return known;
  std::set<std::string> wanted;
  for (const std::string& name : names) {
    const auto group = groups.find(name);
    if (known.count(name) > 0) {
      wanted.insert(name);
    } else if (group != groups.end()) {
      wanted.insert(group->second.begin(), group->second.end());
    } else {
      std::vector<std::string> all(known.begin(), known.end());
      for (const auto& [other, members] : groups) all.push_back(other);
      const std::string hint = did_you_mean(nearest(name, all));
      throw usage_error(str_cat("neither run has a task ", quote(name)),
                        hint.empty() ? "they have: " + join(all, ", ") : hint);
    }
  }
  return wanted;
}

// The pair of a text cut into its windows, each with an equal share of the units: a text is one
// sequence of hundreds of them, and as a single item it would say nothing. Nothing where a run has
// no windows, another number of them, or ones that do not add up to the text's log-likelihood.
std::vector<ScorePair> window_pairs(const Sample& a, const Sample& b, const ScorePair& whole) {
  const std::size_t count = a.windows.size();
  if (count < 2 || b.windows.size() != count) return {};
  const auto adds_up = [](const std::vector<double>& windows, double sum) {
    const double added = std::accumulate(windows.begin(), windows.end(), 0.0);
    return std::abs(added - sum) <= 1e-6 * std::abs(sum);
  };
  if (!adds_up(a.windows, whole.a) || !adds_up(b.windows, whole.b)) return {};
  std::vector<ScorePair> pairs;
  for (std::size_t w = 0; w < count; ++w) {
    pairs.push_back({.a = a.windows[w],
                     .b = b.windows[w],
                     .weight = whole.weight / static_cast<double>(count)});
  }
  return pairs;
}

class TaskPairer {
 public:
  TaskPairer(const SamplesFile& a, const SamplesFile& b, const ComparisonOptions& options,
             std::vector<std::string>& notes)
      : a_(a), b_(b), options_(options), notes_(notes) {}

  // Matches the lines of both files by document and filter.
  TaskPairing match() {
    TaskPairing pairing{.task = a_.task};
    std::map<std::pair<std::string, std::int64_t>, const Sample*> in_b;
    std::set<std::int64_t> docs_a;
    std::set<std::int64_t> docs_b;
    for (const Sample& sample : b_.samples) {
      in_b[{sample.filter, sample.doc}] = &sample;
      docs_b.insert(sample.doc);
    }
    std::set<std::int64_t> paired;
    const Sample* other_document = nullptr;
    for (const Sample& sample : a_.samples) {
      docs_a.insert(sample.doc);
      const auto found = in_b.find({sample.filter, sample.doc});
      if (found == in_b.end()) continue;
      matches_.emplace_back(&sample, found->second);
      if (!paired.insert(sample.doc).second) continue;
      const Sample& other = *found->second;
      if (sample.doc_hash.empty() || other.doc_hash.empty()) {
        pairing.hashed = false;
      } else if (sample.doc_hash != other.doc_hash) {
        ++pairing.other_documents;
        if (other_document == nullptr) other_document = &sample;
      }
      const bool both = !sample.prompt_hash.empty() && !other.prompt_hash.empty();
      if (both && sample.prompt_hash != other.prompt_hash) ++pairing.other_prompts;
    }
    pairing.items = static_cast<std::int64_t>(paired.size());
    pairing.only_a = static_cast<std::int64_t>(docs_a.size()) - pairing.items;
    pairing.only_b = static_cast<std::int64_t>(docs_b.size()) - pairing.items;
    if (other_document != nullptr && !options_.by_number) refuse(*other_document, pairing);
    std::stable_sort(matches_.begin(), matches_.end(), [](const auto& one, const auto& two) {
      return one.first->doc < two.first->doc;
    });
    return pairing;
  }

  // By filter and metric in the order of the file; call it after match().
  std::vector<std::pair<RowKey, Pairs>> pairs() {
    std::vector<std::pair<RowKey, Pairs>> rows;
    std::vector<std::string> filters;
    for (const auto& [sample, other] : matches_) {
      if (!contains(filters, sample->filter)) filters.push_back(sample->filter);
    }
    for (const std::string& filter : filters) {
      for (const std::string& metric : a_.metrics) {
        const bool wanted = options_.metrics.empty() || contains(options_.metrics, metric);
        if (!wanted || !contains(b_.metrics, metric)) continue;
        auto row = row_of(filter, metric);
        if (row) rows.emplace_back(RowKey{filter, metric}, std::move(*row));
      }
    }
    return rows;
  }

 private:
  [[noreturn]] void refuse(const Sample& sample, const TaskPairing& pairing) const {
    throw input_error(
        str_cat("task ", a_.task, ": document ", sample.doc, " is not the same in both runs (its ",
                "doc_hash differs; so with ", pairing.other_documents, " of ", pairing.items,
                " documents): ", a_.path.string(), ", line ", sample.line, ", and ",
                b_.path.string()),
        "compare runs over the same data; --by-number pairs documents by their number all the "
        "same, for data that were only written down differently");
  }

  [[nodiscard]] std::string name_of(const std::string& filter, const std::string& metric) const {
    return filter == "none" || filter.empty() ? str_cat(a_.task, ", ", metric)
                                              : str_cat(a_.task, ", ", filter, ", ", metric);
  }

  // Nothing where no item has this metric in both, or where the units of pairs differ.
  std::optional<Pairs> row_of(const std::string& filter, const std::string& metric) {
    Pairs row;
    std::int64_t without_a = 0;
    std::int64_t without_b = 0;
    const auto is_finite = [&](const Sample& sample) {
      const auto found = sample.scores.find(metric);
      return found != sample.scores.end() && std::isfinite(found->second.value);
    };
    for (const auto& [in_a, in_b] : matches_) {
      if (in_a->filter != filter) continue;
      const auto a = in_a->scores.find(metric);
      const auto b = in_b->scores.find(metric);
      const bool in_one = a != in_a->scores.end() || b != in_b->scores.end();
      const bool in_both = a != in_a->scores.end() && b != in_b->scores.end();
      if (!in_both || !std::isfinite(a->second.value) || !std::isfinite(b->second.value)) {
        if (!in_one) continue;
        ++row.without_score;
        if (!is_finite(*in_a)) ++without_a;
        if (!is_finite(*in_b)) ++without_b;
        continue;
      }
      if (a->second.is_pair != b->second.is_pair || a->second.weight != b->second.weight ||
          !(a->second.weight > 0)) {
        notes_.push_back(str_cat(name_of(filter, metric), ": document ", in_a->doc, " counts ",
                                 a->second.weight, " units in A and ", b->second.weight,
                                 " in B, so that the means are of different things: left out"));
        return std::nullopt;
      }
      row.is_nll = a->second.is_pair;
      const double sign = row.is_nll ? -1 : 1;
      const ScorePair pair{
          .a = sign * a->second.value, .b = sign * b->second.value, .weight = a->second.weight};
      const auto windows = row.is_nll ? window_pairs(*in_a, *in_b, pair) : std::vector<ScorePair>();
      row.by_windows = row.by_windows || !windows.empty();
      row.scores.insert(row.scores.end(), windows.begin(), windows.end());
      if (windows.empty()) row.scores.push_back(pair);
      if (pair.a != pair.b) row.changed.push_back({in_a->doc, pair.a, pair.b, in_a, in_b});
    }
    if (row.scores.empty()) {
      if (row.without_score > 0) {
        notes_.push_back(
            str_cat(name_of(filter, metric), ": no item has a finite score in both runs"));
      }
      return std::nullopt;
    }
    if (row.without_score > 0) {
      notes_.push_back(str_cat(name_of(filter, metric), ": ", row.without_score,
                               row.without_score == 1 ? " item" : " items",
                               " left out, without a finite score in A (", without_a, ") or B (",
                               without_b, ")"));
    }
    return row;
  }

  const SamplesFile& a_;
  const SamplesFile& b_;
  const ComparisonOptions& options_;
  std::vector<std::string>& notes_;
  std::vector<std::pair<const Sample*, const Sample*>> matches_;
};

struct ComparedTask {
  std::string name;
  std::vector<std::pair<RowKey, Pairs>> rows;
};

std::optional<bool> direction(const EvaluationRun& a, const EvaluationRun& b,
                              const std::string& task, const std::string& metric, bool is_nll) {
  if (is_nll) return false;
  const auto in_a = higher_is_better(a.results, task, metric);
  return in_a ? in_a : higher_is_better(b.results, task, metric);
}

// The rows of a group: the items of its tasks together, for each filter and metric that the first
// of them has.
std::vector<ComparisonRow> group_rows(const std::string& name,
                                      const std::vector<const ComparedTask*>& tasks,
                                      const EvaluationRun& a, const EvaluationRun& b,
                                      const PairedOptions& options) {
  std::vector<ComparisonRow> rows;
  for (const auto& first : tasks.front()->rows) {
    const RowKey& key = first.first;
    ComparisonRow row{.task = name, .filter = key.filter, .metric = key.metric};
    row.is_nll = first.second.is_nll;
    row.by_windows = first.second.by_windows;
    row.higher_is_better = direction(a, b, tasks.front()->name, key.metric, row.is_nll);
    std::vector<ScorePair> scores;
    for (const ComparedTask* task : tasks) {
      const auto found = std::find_if(task->rows.begin(), task->rows.end(), [&](const auto& other) {
        return other.first.filter == key.filter && other.first.metric == key.metric;
      });
      if (found == task->rows.end()) continue;
      const auto& pairs = found->second;
      scores.insert(scores.end(), pairs.scores.begin(), pairs.scores.end());
      row.without_score += pairs.without_score;
      row.group_tasks.push_back(task->name);
      if (direction(a, b, task->name, key.metric, pairs.is_nll) != row.higher_is_better) {
        row.higher_is_better = std::nullopt;
      }
    }
    row.result = compare_paired(scores, options);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<ComparisonRow> task_rows(ComparedTask& task, const EvaluationRun& a,
                                     const EvaluationRun& b, const PairedOptions& options) {
  std::vector<ComparisonRow> rows;
  for (auto& [key, pairs] : task.rows) {
    ComparisonRow row{.task = task.name, .filter = key.filter, .metric = key.metric};
    row.is_nll = pairs.is_nll;
    row.by_windows = pairs.by_windows;
    row.higher_is_better = direction(a, b, task.name, key.metric, pairs.is_nll);
    row.without_score = pairs.without_score;
    row.changed = std::move(pairs.changed);
    row.result = compare_paired(pairs.scores, options);
    rows.push_back(std::move(row));
  }
  return rows;
}

// A group or task with the tasks it is made of.
struct Entry {
  std::string name;
  std::vector<const ComparedTask*> tasks;
  bool group = false;
  std::string parent = {};
};

bool holds(const Entry& outer, const Entry& inner) {
  return outer.group && outer.tasks.size() > inner.tasks.size() &&
         std::all_of(inner.tasks.begin(), inner.tasks.end(), [&](const ComparedTask* task) {
           return std::find(outer.tasks.begin(), outer.tasks.end(), task) != outer.tasks.end();
         });
}

// Groups that were asked for (all, where nothing was) and that have two compared tasks at least,
// and the tasks; an entry comes behind the smallest one that holds it.
std::vector<Entry> ordered_entries(const std::vector<ComparedTask>& tasks, const Groups& groups,
                                   const std::vector<std::string>& asked) {
  std::vector<Entry> entries;
  for (const auto& [name, members] : groups) {
    if (!asked.empty() && !contains(asked, name)) continue;
    Entry entry{.name = name, .tasks = {}, .group = true};
    for (const ComparedTask& task : tasks) {
      if (contains(members, task.name) && task.name != name) entry.tasks.push_back(&task);
    }
    if (entry.tasks.size() > 1) entries.push_back(std::move(entry));
  }
  for (const ComparedTask& task : tasks) entries.push_back({.name = task.name, .tasks = {&task}});
  for (Entry& entry : entries) {
    const Entry* smallest = nullptr;
    for (const Entry& other : entries) {
      if (!holds(other, entry)) continue;
      if (smallest == nullptr || other.tasks.size() < smallest->tasks.size()) smallest = &other;
    }
    if (smallest != nullptr) entry.parent = smallest->name;
  }
  std::vector<Entry> ordered;
  const std::function<void(const std::string&)> add = [&](const std::string& parent) {
    for (const Entry& entry : entries) {
      if (entry.parent != parent) continue;
      ordered.push_back(entry);
      if (entry.group) add(entry.name);
    }
  };
  add("");
  return ordered;
}

void correct(std::vector<ComparisonRow>& rows) {
  for (const bool members : {false, true}) {
    std::vector<double> p;
    for (const auto& row : rows) {
      if (row.member_of.empty() != members) p.push_back(row.result.p);
    }
    const auto adjusted = holm_adjusted(p);
    std::size_t next = 0;
    for (auto& row : rows) {
      if (row.member_of.empty() == members) continue;
      row.holm_p = adjusted[next++];
      row.family = static_cast<std::int64_t>(p.size());
    }
  }
}

void check_metrics(const EvaluationRun& a, const EvaluationRun& b,
                   const std::vector<std::string>& wanted) {
  std::vector<std::string> known;
  for (const EvaluationRun* run : {&a, &b}) {
    for (const SamplesFile& file : run->tasks) {
      for (const auto& metric : file.metrics) {
        if (!contains(known, metric)) known.push_back(metric);
      }
    }
  }
  for (const std::string& metric : wanted) {
    if (contains(known, metric)) continue;
    throw usage_error(str_cat("neither run has a metric ", quote(metric)),
                      "they have: " + join(known, ", "));
  }
}

Groups all_groups(const EvaluationRun& a, const EvaluationRun& b) {
  Groups groups = groups_of(a.results);
  for (auto& [name, members] : groups_of(b.results)) groups.emplace(name, members);
  return groups;
}

}  // namespace

Comparison compare_runs(EvaluationRun& a, EvaluationRun& b, const ComparisonOptions& options) {
  const Groups groups = all_groups(a, b);
  const std::set<std::string> wanted = wanted_tasks(a, b, groups, options.tasks);
  const std::vector<std::string> names_a = task_names(a);
  const std::vector<std::string> names_b = task_names(b);
  const auto in_both = [&](const std::string& name) {
    return wanted.count(name) > 0 && contains(names_a, name) && contains(names_b, name);
  };
  Comparison comparison;
  for (const std::string& name : wanted) {
    if (!contains(names_b, name) && contains(names_a, name)) comparison.only_a.push_back(name);
    if (!contains(names_a, name) && contains(names_b, name)) comparison.only_b.push_back(name);
  }
  read_tasks(a, in_both);
  read_tasks(b, in_both);
  if (a.tasks.empty()) {
    throw input_error("no task is in both runs",
                      str_cat(a.files.given, " has ", join(names_a, ", "), "; ", b.files.given,
                              " has ", join(names_b, ", ")));
  }
  check_metrics(a, b, options.metrics);
  std::vector<ComparedTask> tasks;
  for (const SamplesFile& file : a.tasks) {
    const SamplesFile* other = b.find_task(file.task);
    TaskPairer pairer(file, *other, options, comparison.notes);
    comparison.pairings.push_back(pairer.match());
    ComparedTask task{.name = file.task, .rows = pairer.pairs()};
    if (task.rows.empty()) {
      comparison.notes.push_back(str_cat(file.task, ": the runs share no item with a metric"));
    } else {
      tasks.push_back(std::move(task));
    }
  }
  for (const Entry& entry : ordered_entries(tasks, groups, options.tasks)) {
    auto own = std::find_if(tasks.begin(), tasks.end(),
                            [&](const ComparedTask& task) { return task.name == entry.name; });
    auto rows = entry.group ? group_rows(entry.name, entry.tasks, a, b, options.paired)
                            : task_rows(*own, a, b, options.paired);
    for (auto& row : rows) {
      row.member_of = entry.parent;
      comparison.rows.push_back(std::move(row));
    }
  }
  require_input(!comparison.rows.empty(), "the runs share no item with a score in both");
  correct(comparison.rows);
  // Of a run without results nothing is known, which is no difference.
  if (!a.results.is_null() && !b.results.is_null()) {
    comparison.settings = setting_differences(a.results, b.results);
  }
  return comparison;
}

}  // namespace onset
