#include "onset/train/leaks.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/eval/letter_case.h"
#include "onset/eval/task_data.h"
#include "onset/eval/task_library.h"
#include "onset/train/records.h"

namespace onset {
namespace {

constexpr std::size_t window = 8;  // words

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_word_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80;
}

// In lower case, with one space where there was white space.
std::string compared_form(std::string_view text) {
  std::string form;
  for (const char c : lower_case(valid_utf8(text))) {
    if (!is_space(c)) {
      form += c;
    } else if (!form.empty() && form.back() != ' ') {
      form += ' ';
    }
  }
  if (form.ends_with(' ')) form.pop_back();
  return form;
}

// The words of such a form, without what stands between them, so that a quotation mark before a
// question does not hide where it begins.
std::vector<std::string_view> words_of(std::string_view form) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < form.size();) {
    std::size_t end = i;
    while (end < form.size() && is_word_char(form[end])) ++end;
    if (end > i) words.push_back(form.substr(i, end - i));
    i = std::max(end, i + 1);
  }
  return words;
}

std::size_t hash_of(std::string_view text) { return std::hash<std::string_view>()(text); }

std::size_t hash_of(std::span<const std::string_view> words) {
  std::string joined_words;
  for (const std::string_view word : words) {
    joined_words += word;
    joined_words += ' ';
  }
  return hash_of(joined_words);
}

// Calls take with every text in it.
template <typename Take>
void for_each_text(const OrderedJson& value, const Take& take) {
  if (value.is_string()) {
    take(value.get_ref<const std::string&>());
  } else if (value.is_structured()) {
    for (const OrderedJson& inner : value) for_each_text(inner, take);
  }
}

}  // namespace

LeakIndex::LeakIndex(std::span<const Task> tasks, const std::filesystem::path& data) {
  for (const Task& task : tasks) {
    if (task.kind == ItemKind::text) continue;
    try {
      std::int64_t item = 0;
      for (const TaskRow& row : read_rows(task.data, data)) {
        const std::int64_t number = item++;
        if (!meets(task.condition, row)) continue;
        std::string text = task.prompt.question.render_first(row.fields, row.where, task.names);
        std::string form = compared_form(text);
        if (form.empty()) continue;
        ++compared_[task.name];
        add({.task = task.name, .item = number, .text = std::move(text), .form = std::move(form)});
      }
    } catch (const Error&) {
      skipped_.push_back(task.name);
    }
  }
}

void LeakIndex::add(Question question) {
  const std::size_t index = questions_.size();
  whole_.emplace(hash_of(question.form), index);
  const auto words = words_of(question.form);
  if (words.size() >= window) beginning_.emplace(hash_of(std::span(words).first(window)), index);
  questions_.push_back(std::move(question));
}

void LeakIndex::find_in(std::string_view text, std::vector<std::size_t>& found) const {
  const std::string form = compared_form(text);
  const auto [first, last] = whole_.equal_range(hash_of(form));
  for (auto place = first; place != last; ++place) {
    if (questions_[place->second].form == form) found.push_back(place->second);
  }
  const auto words = words_of(form);
  for (std::size_t i = 0; i + window <= words.size(); ++i) {
    const auto [begin, end] = beginning_.equal_range(hash_of(std::span(words).subspan(i, window)));
    for (auto place = begin; place != end; ++place) {
      if (form.find(questions_[place->second].form) != std::string::npos) {
        found.push_back(place->second);
      }
    }
  }
}

void LeakIndex::check(const OrderedJson& row, LeakReport& report) const {
  std::vector<std::size_t> found;
  for_each_text(row, [&](const std::string& text) { find_in(text, found); });
  const std::int64_t number = report.rows++;
  if (found.empty()) return;
  ++report.leaking;
  for (const std::size_t index : found) {
    const Question& question = questions_[index];
    const bool is_known =
        std::any_of(report.items.begin(), report.items.end(), [&](const LeakedItem& item) {
          return item.item == question.item && item.task == question.task;
        });
    if (is_known) continue;
    report.items.push_back(
        {.task = question.task, .item = question.item, .row = number, .question = question.text});
  }
}

LeakReport LeakIndex::report() const {
  LeakReport report;
  report.compared = compared_;
  report.skipped = skipped_;
  return report;
}

namespace {

// "mmlu (57 parts)" in place of the parts' names.
std::string names_of(const std::vector<std::string>& tasks) {
  std::map<std::string, std::int64_t> parts;
  std::vector<std::string> names;
  for (const std::string& task : tasks) {
    const std::string group = task.substr(0, task.find('_'));
    if (parts[group]++ == 0) names.push_back(group);
  }
  for (std::string& name : names) {
    const std::int64_t count = parts.at(name);
    if (count > 1) {
      name += str_cat(" (", count, " parts)");
    } else {
      name = *std::find_if(tasks.begin(), tasks.end(),
                           [&name](const std::string& task) { return task.starts_with(name); });
    }
  }
  return join(names, ", ");
}

}  // namespace

std::string LeakReport::text() const {
  std::vector<std::string> sentences;
  if (leaking > 0) {
    std::map<std::string, std::int64_t> by_task;
    for (const LeakedItem& item : items) ++by_task[item.task];
    std::vector<std::string> counts;
    counts.reserve(by_task.size());
    for (const auto& [task, count] : by_task) {
      counts.push_back(str_cat(count, " of ", compared.at(task), " of ", task));
    }
    constexpr std::size_t shown = 100;
    sentences.push_back(str_cat(
        leaking, " of ", rows, " rows hold items of tasks that onset eval asks: ",
        join(counts, ", "), ". A model that is trained on them cannot be judged by them. Row ",
        items.front().row + 1, " has ", quote(items.front().question, shown), "."));
  }
  if (leaking == 0 && !compared.empty()) {
    sentences.push_back(str_cat("None of ", counted(rows, "row"), " holds an item of the ",
                                counted(static_cast<std::int64_t>(compared.size()), "task"),
                                " that were compared."));
  }
  if (!skipped.empty()) {
    sentences.push_back(str_cat("Not compared, since their data are not at hand: ",
                                names_of(skipped), "; task_data names the folder that has them."));
  }
  return join(sentences, " ");
}

LeakReport find_leaks(const std::filesystem::path& file, std::int64_t limit,
                      const std::filesystem::path& task_data) {
  std::vector<Task> tasks;
  const TaskLibrary library;
  for (const TaskFile& task_file : library.files()) {
    tasks.insert(tasks.end(), task_file.tasks.begin(), task_file.tasks.end());
  }
  const LeakIndex index(tasks, task_data);
  LeakReport report = index.report();
  for (const TaskRow& row : read_records(file)) {
    if (limit > 0 && report.rows == limit) break;
    index.check(row.fields, report);
  }
  return report;
}

}  // namespace onset
