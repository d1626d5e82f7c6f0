#include "onset/eval/task_file.h"

#include <gtest/gtest.h>

#include "onset/eval/task_library.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::error_of;

// A small task; `more` is put at the end, `without` is taken out.
std::string task_text(const std::string& more = "", const std::string& without = "",
                      const std::string& instead = "") {
  std::string text =
      "format = 'onset.task.1'\nname = 'toy'\nversion = '1'\nsummary = 's'\nkind = 'choice'\n"
      "[data]\nfile = 'toy.jsonl'\n[prompt]\nquestion = '{q}'\n"
      "[choice]\ntexts = ['{a}', '{b}']\ngold = '{g}'\n[[metrics]]\nmeasure = 'acc'\n";
  if (!without.empty()) text.replace(text.find(without), without.size(), instead);
  return text + more;
}

TEST(TaskFile, EveryTaskOfTheProgramIsRead) {
  const TaskLibrary library;
  ASSERT_EQ(library.files().size(), embedded_tasks().size());
  for (const auto& file : library.files()) {
    EXPECT_FALSE(file.tasks.empty()) << file.name;
    for (const auto& task : file.tasks) {
      EXPECT_FALSE(task.data.source.empty())
          << task.name << " does not say where its data are from";
      EXPECT_FALSE(task.metrics.empty()) << task.name;
    }
  }
}

TEST(TaskFile, PartsAndGroupsBecomeTasksWithTheirNames) {
  const auto file =
      parse_task_file(task_text("[[groups]]\nname = 'all'\nalias = 'All'\nparts = ['x_y', 'z']\n"
                                "[[parts]]\nname = 'x_y'\nwhere = { field = '{g}', equals = '1' }\n"
                                "[[parts]]\nname = 'z'\n[[parts]]\nname = 'alone'\n"),
                      "toy.toml");
  ASSERT_EQ(file.tasks.size(), 3U);
  EXPECT_EQ(file.tasks[0].name, "toy_x_y");
  EXPECT_EQ(file.tasks[0].condition.value, "1");
  EXPECT_EQ(file.tasks[1].name, "toy_z");
  EXPECT_TRUE(file.tasks[1].condition.field.empty());
  ASSERT_EQ(file.groups.size(), 2U);
  EXPECT_EQ(file.groups[0].name, "toy_all");
  EXPECT_EQ(file.groups[0].members, (std::vector<std::string>{"toy_x_y", "toy_z"}));
  EXPECT_EQ(file.groups[1].name, "toy");
  EXPECT_EQ(file.groups[1].members, (std::vector<std::string>{"toy_all", "toy_alone"}))
      << "a part in no group counts in the whole too";
}

TEST(TaskFile, APartWithoutATableHasAFileOfItsOwn) {
  const std::string group = "[[groups]]\nname = 'all'\nparts = ['x', 'y']\n";
  const auto file =
      parse_task_file(task_text(group, "'toy.jsonl'", "'{part}/toy.jsonl'"), "toy.toml");
  ASSERT_EQ(file.tasks.size(), 2U);
  EXPECT_EQ(file.tasks[1].data.file, "y/toy.jsonl");
  EXPECT_EQ(error_of([&] {
              return parse_task_file(task_text(group + "[[parts]]\nname = 'xx'\n"), "toy.toml");
            }),
            "toy.toml:17: key \"groups[0].parts\" name the part \"x\", which no [[parts]] "
            "describes, and data.file has no {part} that would be its file\ndid you mean \"xx\"?");
}

TEST(TaskFile, NamesThatAreThereTwiceAreRefused) {
  const auto error = [](const std::string& more) {
    return error_of([&] { return parse_task_file(task_text(more), "toy.toml"); });
  };
  EXPECT_EQ(error("[[metrics]]\nmeasure = 'acc'\n"),
            "toy.toml:13: key \"metrics\" have two of the name \"acc\"\ntake one out, or give it a "
            "name of its own: name = \"..\"");
  EXPECT_NE(error("[[metrics]]\nmeasure = 'acc_norm'\nname = 'acc'\n").find("two of the name"),
            std::string::npos);
  EXPECT_NO_THROW(static_cast<void>(
      parse_task_file(task_text("[[metrics]]\nmeasure = 'acc'\nname = 'acc2'\n"), "toy.toml")));
  const std::string parts = "[[parts]]\nname = 'x'\n[[parts]]\nname = 'y'\n";
  // The same name in different parts is that of one metric.
  EXPECT_NO_THROW(static_cast<void>(parse_task_file(
      task_text(parts + "[[metrics]]\nmeasure = 'acc_norm'\nname = 'n'\nparts = ['x']\n"
                        "[[metrics]]\nmeasure = 'acc_bytes'\nname = 'n'\nparts = ['y']\n"),
      "toy.toml")));
  EXPECT_NE(error(parts + "[[parts]]\nname = 'x'\n").find("\"x\" is there twice"),
            std::string::npos);
  EXPECT_NE(error(parts + "[[groups]]\nname = 'g'\nparts = ['x', 'y', 'x']\n").find("\"x\" twice"),
            std::string::npos);
  EXPECT_NE(error(parts + "[[groups]]\nname = 'x'\nparts = ['x']\n").find("as a part has"),
            std::string::npos);
  EXPECT_NE(error("[[parts]]\nname = '../x'\n").find("letters, digits, _ and - alone"),
            std::string::npos);
}

TEST(TaskFile, FiltersAndTheirMetricsHaveNamesOfTheirOwn) {
  const std::string text =
      "format = 'onset.task.1'\nname = 'toy'\nversion = '1'\nsummary = 's'\n"
      "kind = 'generation'\n[data]\nfile = 'toy.jsonl'\n[prompt]\nquestion = '{q}'\n"
      "target = '{a}'\n[[filters]]\nname = 'x'\n[[filters]]\nname = 'y'\n";
  const auto error = [&](const std::string& more) {
    return error_of([&] { return parse_task_file(text + more, "toy.toml"); });
  };
  const std::string match = "[[metrics]]\nmeasure = 'exact_match'\n";
  EXPECT_NO_THROW(static_cast<void>(parse_task_file(
      text + match + "filters = ['x']\n" + match + "filters = ['y']\nignore_case = true\n",
      "toy.toml")));
  EXPECT_NE(
      error(match + match + "filters = ['y']\n").find("\"exact_match\" under the filter \"y\""),
      std::string::npos);
  EXPECT_NE(error(match + "[generation]\nstop = ['.', '']\n").find("holds an empty text"),
            std::string::npos);
  EXPECT_NE(error(match + "[[filters]]\nname = 'x'\n").find("\"x\" is there twice"),
            std::string::npos);
}

TEST(TaskFile, ErrorsNameLineAndKey) {
  const auto error = [](const std::string& text) {
    return error_of([&] { return parse_task_file(text, "toy.toml"); });
  };
  EXPECT_EQ(error(task_text("", "gold", "golden")), "toy.toml:10: key \"choice.gold\" is missing");
  EXPECT_EQ(error(task_text("", "'acc'", "'acc_nrm'")),
            "toy.toml:14: key \"metrics[0].measure\" \"acc_nrm\" is not a measure of this kind of "
            "task; it has acc, acc_norm, acc_bytes\ndid you mean \"acc_norm\"?");
  EXPECT_EQ(error(task_text("[generation]\nstop = []\n")),
            "toy.toml:15: key \"generation\" is not known");
  EXPECT_EQ(error(task_text("", "'{q}'", "'{q'")).substr(0, 36),
            "toy.toml:9: key \"prompt.question\": \"");
  EXPECT_NE(error(task_text("", "onset.task.1", "onset.task.9")).find("this program reads"),
            std::string::npos);
  EXPECT_NE(error(task_text("", "toy.jsonl", "../toy.jsonl")).find("within the data folder"),
            std::string::npos);
  EXPECT_NE(error(task_text("filters = ['x']\n")).find("the filter \"x\", which is not there"),
            std::string::npos);
}

TEST(TaskLibrary, TasksAndGroupsAreSelectedByName) {
  const TaskLibrary library;
  const auto one = library.select({"mmlu_anatomy", "piqa", "piqa"});
  ASSERT_EQ(one.tasks.size(), 2U);
  EXPECT_TRUE(one.groups.empty());
  const auto all = library.select({"mmlu"});
  EXPECT_EQ(all.tasks.size(), 57U);
  ASSERT_EQ(all.groups.size(), 5U);
  EXPECT_EQ(all.groups.back().name, "mmlu");
  EXPECT_EQ(library.select({"mmlu_stem"}).tasks.size(), 19U);
  EXPECT_EQ(error_of([&] { return library.select({"piqqa"}); }),
            "no task is called \"piqqa\"\ndid you mean \"piqa\"?");
}

TEST(TaskLibrary, AFileOfTheUserAddsATaskOrTakesThePlaceOfOne) {
  const testing::TemporaryFolder folder;
  const auto own = folder.write("toy.toml", task_text());
  EXPECT_EQ(TaskLibrary({own}).select({"toy"}).tasks.at(0).name, "toy");
  const auto piqa = folder.write("piqa.toml", task_text("", "'toy'", "'piqa'"));
  EXPECT_EQ(TaskLibrary({piqa}).select({"piqa"}).tasks.at(0).data.file, "toy.jsonl");
  EXPECT_EQ(error_of([&] {
              return TaskLibrary({own, own});
            }),
            "the task file " + own.string() + " is given twice");
  const auto other = folder.write("other.toml", task_text());
  EXPECT_NE(error_of([&] {
              return TaskLibrary({own, other});
            }).find("two task files describe"),
            std::string::npos);
}

}  // namespace
}  // namespace onset
