// docs/train-settings.md lists what the table of settings holds.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/strings.h"
#include "onset/train/settings_table.h"
#include "onset/train/settings_toml.h"
#include "support/support.h"

namespace onset {
namespace {

// One row of the page, of all methods that have the setting.
struct Row {
  std::string name;
  std::string group;
  std::string help;
  std::vector<std::string> methods;
  std::vector<std::string> defaults;  // beside methods
};

std::string shown(const OrderedJson& value) {
  if (value.is_null() || value == "" || value == OrderedJson::array()) return "";
  if (value.is_array()) return shown(value.at(0));
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::vector<Row> rows() {
  std::vector<Row> all;
  for (const TrainMethod method :
       {TrainMethod::sft, TrainMethod::dpo, TrainMethod::grpo, TrainMethod::pretrain}) {
    TrainSettings settings = default_settings(method);
    const OrderedJson defaults = settings_json(settings);
    for (const Setting& setting : settings_table(settings)) {
      const auto found = std::find_if(all.begin(), all.end(), [&](const Row& row) {
        return row.name == setting.name && row.group == setting.group;
      });
      Row& row = found != all.end() ? *found
                                    : all.emplace_back(Row{.name = setting.name,
                                                           .group = setting.group,
                                                           .help = setting.help,
                                                           .methods = {},
                                                           .defaults = {}});
      row.methods.emplace_back(name_of(method));
      const OrderedJson& value = defaults.at(setting.name);
      row.defaults.push_back(value.is_object() ? "" : shown(value));
    }
  }
  return all;
}

// "2e-05; dpo, grpo 1e-06; pretrain 0.0006"
std::string default_words(const Row& row) {
  std::vector<std::string> parts;
  std::vector<std::string> seen;
  for (const std::string& value : row.defaults) {
    if (std::find(seen.begin(), seen.end(), value) != seen.end()) continue;
    std::vector<std::string> methods;
    for (std::size_t i = 0; i < row.defaults.size(); ++i) {
      if (row.defaults[i] == value) methods.push_back(row.methods[i]);
    }
    const std::string code = value.empty() ? "" : str_cat("`", value, "`");
    parts.push_back(seen.empty() ? code : str_cat(join(methods, ", "), " ", code));
    seen.push_back(value);
  }
  return join(parts, "; ");
}

std::string table() {
  const std::vector<Row> all = rows();
  std::vector<std::string> groups;
  for (const Row& row : all) {
    if (std::find(groups.begin(), groups.end(), row.group) == groups.end()) {
      groups.push_back(row.group);
    }
  }
  std::string text;
  for (const std::string& group : groups) {
    text += str_cat("### ", group, "\n| setting | default | |\n| --- | --- | --- |\n");
    for (const Row& row : all) {
      if (row.group != group) continue;
      const bool is_shared = group == "Data" || group == "WeMask";
      const std::string of =
          !is_shared || row.methods.size() == 4 ? "" : str_cat(" (", join(row.methods, ", "), ")");
      text += str_cat("| `", row.name, "` | ", default_words(row), " | ", row.help, of, " |\n");
    }
    text += "\n";
  }
  return text;
}

TEST(SettingsPage, ListsEverySettingWithItsDefaults) {
  const std::string page = read_file(testing::data("../../docs/train-settings.md"));
  const std::string begin = "<!-- the table, as tests/train/settings_page_test.cpp has it -->\n";
  const std::size_t at = page.find(begin);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(page.substr(at + begin.size()), table());
}

}  // namespace
}  // namespace onset
