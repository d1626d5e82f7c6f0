// A task: data, prompt, choices or generation, filters and metrics, as a file describes it
// (docs/tasks.md). Torch-free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onset/base/json.h"
#include "onset/eval/answer_filter.h"
#include "onset/eval/exact_match.h"
#include "onset/eval/item.h"
#include "onset/eval/prompt_template.h"
#include "onset/eval/refusal.h"

namespace onset {

// Where rows come from. Paths are relative to the data folder.
struct TaskData {
  std::string file;
  // A file with one label a line, which become the field `label_field` of the rows; empty: none.
  std::string labels;
  std::string label_field;
  // Fields of a CSV file that become one list, and those that become integers.
  std::vector<std::pair<std::string, std::vector<std::string>>> lists;
  std::vector<std::string> integers;
  std::string source;  // the public data set and file, for the message where it is missing
};

// Rows that count: those whose field has, or contains, that text. Without a field all do.
struct RowCondition {
  PromptTemplate field;
  std::string value;
  bool contains = false;
};

enum class FewshotSampler {
  random,   // lm-eval's: Python's random.sample from one seed, document after document
  first_n,  // the first of the rows
};

struct FewshotSource {
  std::optional<TaskData> data;   // none: the rows of the task itself
  std::vector<OrderedJson> rows;  // examples in the task's file, in place of data
  FewshotSampler sampler = FewshotSampler::random;
  std::int64_t count = 0;  // unless the user asks for another
};

struct TaskPrompt {
  PromptTemplate description;  // goes before everything; names only
  PromptTemplate question;
  PromptTemplate chat_question;            // in a chat; empty: as elsewhere
  PromptTemplate target;                   // the answer of a few-shot example, and the gold one
  std::string target_delimiter = " ";      // between question and answer
  std::string fewshot_delimiter = "\n\n";  // behind each example
};

struct TaskChoices {
  std::vector<PromptTemplate> texts;  // one that is a list of the row, or one for each choice
  PromptTemplate gold;
  // What gold is one of; without labels it is the index. As texts: a list of the row or templates.
  std::vector<PromptTemplate> labels;
};

struct TaskGeneration {
  std::vector<std::string> stop;
  std::int64_t max_new_tokens = 256;
};

// How a text is cut (kind text); the user may ask for others.
struct TaskWindows {
  PromptTemplate text;
  std::int64_t window = 512;
  std::int64_t stride = 0;
};

// What is measured of an answer: of a choice, of generation, of a text.
enum class Measure {
  acc,        // the most likely choice is the right one
  acc_norm,   // log-likelihood by characters (Unicode code points) of the choice's text
  acc_bytes,  // by bytes
  exact_match,
  numeric_match,  // number_answer.h
  math_equal,     // same_answer.h
  full_refusal,   // refusal.h, of the answer before filters; so the next three
  partial_refusal,
  any_refusal,
  compliance,
  released_math,     // released_grader.h, of prompt and answer before filters
  token_perplexity,  // exp(nll / scored tokens)
  word_perplexity,   // exp(nll / words)
  byte_perplexity,
  bits_per_byte,
};
[[nodiscard]] std::string_view name_of(Measure measure);

struct TaskMetric {
  std::string name;  // in results
  Measure measure = Measure::acc;
  bool higher_is_better = true;
  std::vector<std::string> filters;  // by which filters; empty: all of the task
  ExactMatchOptions exact_match;
  RefusalOptions refusal;
};

// One set of documents with a score of its own: a task file without parts, or one part of it.
struct Task {
  std::string name;     // "mmlu_anatomy"
  std::string alias;    // "anatomy", for tables
  std::string version;  // of the file
  std::string summary;
  std::string file;  // where it was described, for messages and results
  ItemKind kind = ItemKind::choice;
  TemplateNames names;  // "part"
  TaskData data;
  RowCondition condition;
  FewshotSource fewshot;
  TaskPrompt prompt;
  TaskChoices choices;
  TaskGeneration generation;
  TaskWindows windows;
  std::vector<AnswerFilter> filters;  // of generation; without any the text as it is ("none")
  std::vector<TaskMetric> metrics;
};

// Tasks that are averaged: each document counts the same (lm-eval's weight_by_size).
struct TaskGroup {
  std::string name;
  std::string alias;
  std::vector<std::string> members;  // tasks and groups, by name
};

// All that one file describes.
struct TaskFile {
  std::string name;
  std::string summary;
  std::string where;              // the file
  std::vector<Task> tasks;        // at least one
  std::vector<TaskGroup> groups;  // members before the group that holds them
};

}  // namespace onset
