#include "onset/eval/task_items.h"

#include <algorithm>
#include <charconv>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/eval/fewshot.h"
#include "onset/eval/task_data.h"

namespace onset {
namespace {

// A question with its answer, as text.
struct Turn {
  std::string question;
  std::string answer;
};

bool ends_in_space(const std::string& text) {
  return !text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\t');
}
bool begins_with_space(const std::string& text) {
  return !text.empty() && (text.front() == ' ' || text.front() == '\n' || text.front() == '\t');
}

// Both, and the delimiter between them unless there is white space already.
std::string joined(const std::string& before, const std::string& after,
                   const std::string& delimiter) {
  if (before.empty() || after.empty()) return before + after;
  const bool is_apart = ends_in_space(before) || begins_with_space(after);
  return before + (is_apart ? "" : delimiter) + after;
}

std::vector<std::string> render_all(const std::vector<PromptTemplate>& templates,
                                    const TaskRow& row, const TemplateNames& names) {
  if (templates.size() == 1 && templates.front().is_one_place()) {
    return templates.front().render_list(row.fields, row.where);
  }
  std::vector<std::string> texts;
  texts.reserve(templates.size());
  for (const auto& one : templates) texts.push_back(one.render(row.fields, row.where, names));
  return texts;
}

class Builder {
 public:
  Builder(const Task& task, const ItemOptions& options) : task_(task), options_(options) {}

  TaskItems build() {
    TaskItems result;
    std::vector<TaskRow> rows = read_rows(task_.data, options_.data);
    std::erase_if(rows, [&](const TaskRow& row) { return !meets(task_.condition, row); });
    require_input(!rows.empty(), (options_.data / task_.data.file).string(),
                  ": no row meets the condition of task ", task_.name);
    result.documents = static_cast<std::int64_t>(rows.size());
    if (task_.kind == ItemKind::text) {
      check_text();
    } else {
      result.fewshot = options_.fewshot.value_or(task_.fewshot.count);
      read_examples(rows, result.fewshot);
    }
    const auto chosen = choose(rows.size());
    FewshotPicker picker(task_.fewshot.sampler, examples_.size(), own_examples_, options_.seed);
    for (std::size_t i = 0, next = 0; i < rows.size() && next < chosen.size(); ++i) {
      const auto examples = pick(picker, rows[i], i, static_cast<std::size_t>(result.fewshot));
      if (chosen[next] != i) continue;
      ++next;
      EvalItem item = task_.kind == ItemKind::text ? text_item(rows[i]) : asked(rows[i], examples);
      item.doc = static_cast<std::int64_t>(i);
      const auto part = task_.names.find("part");
      if (part != task_.names.end()) item.subject = part->second;
      item.document = std::move(rows[i].fields);
      result.items.push_back(std::move(item));
    }
    return result;
  }

 private:
  void check_text() const {
    if (options_.chat || !options_.system.empty()) {
      throw usage_error(str_cat("task ", task_.name,
                                " scores a text: it takes no chat format and no system text"));
    }
  }

  // Indices of the documents that are asked, ascending.
  [[nodiscard]] std::vector<std::size_t> choose(std::size_t documents) const {
    std::vector<std::size_t> chosen;
    if (options_.sample && static_cast<std::size_t>(*options_.sample) < documents) {
      PythonRandom random(options_.seed);
      chosen = random.sample(documents, static_cast<std::size_t>(*options_.sample));
      std::sort(chosen.begin(), chosen.end());
    } else {
      for (std::size_t i = 0; i < documents; ++i) chosen.push_back(i);
    }
    if (options_.limit && static_cast<std::size_t>(*options_.limit) < chosen.size()) {
      chosen.resize(static_cast<std::size_t>(*options_.limit));
    }
    return chosen;
  }

  void read_examples(const std::vector<TaskRow>& rows, std::int64_t count) {
    if (count == 0) return;
    const auto& source = task_.fewshot;
    if (!source.rows.empty()) {
      for (std::size_t i = 0; i < source.rows.size(); ++i) {
        examples_.push_back(
            {source.rows[i], str_cat(task_.file, ": key \"fewshot.rows[", i, "]\"")});
      }
    } else if (source.data) {
      examples_ = read_rows(*source.data, options_.data);
    } else {
      examples_ = rows;
      own_examples_ = true;
    }
  }

  std::vector<std::size_t> pick(FewshotPicker& picker, const TaskRow& row, std::size_t index,
                                std::size_t count) const {
    if (count == 0) return {};
    const std::string question = question_of(row);
    const std::string answer = answer_of(row);
    return picker.pick(
        count,
        [&](std::size_t i) {
          // A row that asks the same and has the same answer is the document, wherever it stands.
          return (own_examples_ && i == index) ||
                 (question_of(examples_[i]) == question && answer_of(examples_[i]) == answer);
        },
        str_cat("task ", task_.name, ", ", row.where));
  }

  [[nodiscard]] std::string question_of(const TaskRow& row) const {
    const TaskPrompt& prompt = task_.prompt;
    const bool has_other = options_.chat && !prompt.chat_question.empty();
    return (has_other ? prompt.chat_question : prompt.question)
        .render(row.fields, row.where, task_.names);
  }

  [[nodiscard]] std::size_t gold_of(const TaskRow& row, std::size_t choices) const {
    const std::string gold = task_.choices.gold.render(row.fields, row.where, task_.names);
    if (!task_.choices.labels.empty()) {
      const auto labels = render_all(task_.choices.labels, row, task_.names);
      require_input(labels.size() == choices, row.where, ": ", labels.size(), " labels for ",
                    choices, " choices");
      const auto found = std::find(labels.begin(), labels.end(), gold);
      require_input(found != labels.end(), row.where, ": the right answer ", quote(gold),
                    " is none of ", join(labels, ", "));
      return static_cast<std::size_t>(found - labels.begin());
    }
    std::size_t index = 0;
    const auto result = std::from_chars(gold.data(), gold.data() + gold.size(), index);
    require_input(
        result.ec == std::errc() && result.ptr == gold.data() + gold.size() && index < choices,
        row.where, ": the right answer ", quote(gold), " is no index of ", choices,
        " choices (they count from 0)");
    return index;
  }

  [[nodiscard]] std::string answer_of(const TaskRow& row) const {
    if (task_.kind == ItemKind::generation) {
      return task_.prompt.target.render(row.fields, row.where, task_.names);
    }
    const auto texts = render_all(task_.choices.texts, row, task_.names);
    return texts[gold_of(row, texts.size())];
  }

  [[nodiscard]] EvalItem text_item(const TaskRow& row) const {
    EvalItem item;
    item.kind = ItemKind::text;
    item.context = task_.windows.text.render(row.fields, row.where, task_.names);
    return item;
  }

  [[nodiscard]] EvalItem asked(const TaskRow& row, const std::vector<std::size_t>& examples) const {
    EvalItem item;
    item.kind = task_.kind;
    std::vector<Turn> turns;
    turns.reserve(examples.size());
    for (const std::size_t i : examples) {
      turns.push_back({question_of(examples_[i]), answer_of(examples_[i])});
    }
    const std::string question = question_of(row);
    if (options_.chat) {
      ChatText chat = chat_context(turns, question);
      item.chat = true;
      item.context = std::move(chat.text);
      item.said = std::move(chat.contents);
      item.markers = options_.chat->markers;
    } else {
      item.context = plain_context(turns, question);
    }
    if (task_.kind == ItemKind::generation) {
      item.target = answer_of(row);
      item.stop = task_.generation.stop;
      item.max_new_tokens = task_.generation.max_new_tokens;
      return item;
    }
    // The turn of the assistant begins without a space.
    const std::string delimiter = item.chat ? "" : task_.prompt.target_delimiter;
    for (auto& text : render_all(task_.choices.texts, row, task_.names)) {
      require_input(!text.empty(), row.where, ": choice ", item.choices.size() + 1, " is empty");
      item.choices.push_back({delimiter + text, text});
    }
    const std::size_t gold = gold_of(row, item.choices.size());
    require_input(item.choices.size() > 1, row.where,
                  ": has one choice alone, which would always be right");
    item.gold = static_cast<std::int64_t>(gold);
    item.target = std::to_string(gold);
    return item;
  }

  [[nodiscard]] std::string system_text() const {
    static const OrderedJson no_fields = OrderedJson::object();
    return joined(options_.system,
                  task_.prompt.description.render(no_fields, task_.file, task_.names),
                  task_.prompt.fewshot_delimiter);
  }

  // Examples and question as one text, without what goes before.
  [[nodiscard]] std::string in_one_text(const std::vector<Turn>& turns,
                                        const std::string& question) const {
    std::string text;
    for (const auto& turn : turns) {
      text += turn.question + task_.prompt.target_delimiter + turn.answer +
              task_.prompt.fewshot_delimiter;
    }
    return text + question;
  }

  [[nodiscard]] std::string plain_context(const std::vector<Turn>& turns,
                                          const std::string& question) const {
    return system_text() + in_one_text(turns, question);
  }

  [[nodiscard]] ChatText chat_context(const std::vector<Turn>& turns,
                                      const std::string& question) const {
    OrderedJson messages = OrderedJson::array();
    const auto say = [&](std::string_view role, const std::string& content) {
      messages.push_back({{"role", role}, {"content", valid_utf8(content)}});
    };
    const auto& roles = options_.chat->roles;
    const bool has_system = std::find(roles.begin(), roles.end(), "system") != roles.end();
    const std::string system = system_text();
    // A format without a system turn has it at the beginning of the first question.
    std::string before;
    if (!system.empty() && has_system) say("system", system);
    if (!has_system) before = system;
    const auto first = [&](const std::string& text) {
      std::string whole = joined(before, text, task_.prompt.fewshot_delimiter);
      before.clear();
      return whole;
    };
    if (options_.fewshot_as_turns) {
      for (const auto& turn : turns) {
        say("user", first(turn.question));
        say("assistant", turn.answer);
      }
      say("user", first(question));
    } else {
      say("user", first(in_one_text(turns, question)));
    }
    ChatOptions chat;
    chat.enable_thinking = options_.enable_thinking;
    return render_chat_text(*options_.chat, messages, chat);
  }

  const Task& task_;
  const ItemOptions& options_;
  std::vector<TaskRow> examples_;
  bool own_examples_ = false;
};

}  // namespace

TaskItems make_items(const Task& task, const ItemOptions& options) {
  return Builder(task, options).build();
}

}  // namespace onset
