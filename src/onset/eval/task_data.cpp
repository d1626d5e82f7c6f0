#include "onset/eval/task_data.h"

#include <algorithm>
#include <charconv>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/strings.h"
#include "onset/eval/csv.h"
#include "onset/tokenizer/unicode.h"

namespace onset {
namespace {

constexpr std::size_t most_bytes = std::size_t{4} << 30;

std::string read_data_file(const TaskData& data, const std::string& relative,
                           const std::filesystem::path& folder) {
  const auto path = folder / relative;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw input_error(
        str_cat("no data at ", path.string()),
        str_cat(data.source.empty() ? "" : str_cat("wanted is ", data.source, "; "), "put it at ",
                relative, " in a folder, and name the folder with --data"));
  }
  return read_file(path, most_bytes);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

OrderedJson object_at(OrderedJson value, const std::string& where) {
  require_input(value.is_object(), where, ": should be an object, is ", value.type_name());
  return value;
}

std::vector<TaskRow> read_jsonl(std::string_view text, const std::string& where) {
  std::vector<TaskRow> rows;
  std::size_t number = 0;
  for (const auto line : lines_of(text)) {
    ++number;
    if (trim(line).empty()) continue;
    const auto place = str_cat(where, ":", number);
    rows.push_back({object_at(parse_ordered_json(line, place), place), place});
  }
  return rows;
}

std::vector<TaskRow> read_list(std::string_view text, const std::string& where) {
  const auto list = parse_ordered_json(text, where);
  require_input(list.is_array(), where, ": should be a list of objects, is ", list.type_name());
  std::vector<TaskRow> rows;
  for (const auto& value : list) {
    const auto place = str_cat(where, ": entry ", rows.size());
    rows.push_back({object_at(value, place), place});
  }
  return rows;
}

OrderedJson integer_of(const std::string& text, const std::string& name, const std::string& where) {
  std::int64_t value = 0;
  const auto trimmed = trim(text);
  const auto* end = trimmed.data() + trimmed.size();
  const auto result = std::from_chars(trimmed.data(), end, value);
  require_input(result.ec == std::errc() && result.ptr == end, where, ": field ", quote(name),
                " should be an integer, is ", quote(text));
  return value;
}

// The fields of one record: as they are, but for those that become lists or integers. A list
// stands where its first field stood.
OrderedJson fields_of(const std::vector<std::string>& names, const CsvRecord& record,
                      const TaskData& data, const std::string& where) {
  OrderedJson fields = OrderedJson::object();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_integer =
        std::find(data.integers.begin(), data.integers.end(), names[i]) != data.integers.end();
    OrderedJson value =
        is_integer ? integer_of(record.fields[i], names[i], where) : OrderedJson(record.fields[i]);
    const auto list = std::find_if(data.lists.begin(), data.lists.end(), [&](const auto& entry) {
      return std::find(entry.second.begin(), entry.second.end(), names[i]) != entry.second.end();
    });
    if (list == data.lists.end()) {
      fields[names[i]] = std::move(value);
    } else {
      fields[list->first].push_back(std::move(value));
    }
  }
  return fields;
}

std::vector<TaskRow> read_table(std::string_view text, const TaskData& data,
                                const std::string& where, char separator) {
  const auto records = parse_csv(text, where, separator);
  require_input(!records.empty(), where, ": is empty");
  const auto& names = records.front().fields;
  for (const auto& [list, fields] : data.lists) {
    for (const auto& field : fields) {
      require_input(std::find(names.begin(), names.end(), field) != names.end(), where,
                    ": the first line names no field ", quote(field), "; it has ",
                    join(names, ", "));
    }
  }
  std::vector<TaskRow> rows;
  for (std::size_t i = 1; i < records.size(); ++i) {
    const auto place = str_cat(where, ":", records[i].line);
    for (const auto& field : records[i].fields) {
      require_input(is_valid_utf8(field), place, ": is not valid UTF-8");
    }
    rows.push_back({fields_of(names, records[i], data, place), place});
  }
  return rows;
}

void add_labels(std::vector<TaskRow>& rows, const TaskData& data,
                const std::filesystem::path& folder) {
  const std::string text = read_data_file(data, data.labels, folder);
  const auto lines = lines_of(text);
  const auto where = (folder / data.labels).string();
  require_input(lines.size() == rows.size(), where, ": ", lines.size(), " labels for ", rows.size(),
                " rows of ", (folder / data.file).string());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].fields[data.label_field] = std::string(trim(lines[i]));
    const bool is_integer = std::find(data.integers.begin(), data.integers.end(),
                                      data.label_field) != data.integers.end();
    if (is_integer) {
      rows[i].fields[data.label_field] =
          integer_of(std::string(lines[i]), data.label_field, str_cat(where, ":", i + 1));
    }
  }
}

}  // namespace

std::vector<TaskRow> read_rows(const TaskData& data, const std::filesystem::path& folder) {
  const std::string text = read_data_file(data, data.file, folder);
  const auto where = (folder / data.file).string();
  const auto ending = std::filesystem::path(data.file).extension();
  std::vector<TaskRow> rows;
  if (ending == ".jsonl") {
    rows = read_jsonl(text, where);
  } else if (ending == ".json") {
    rows = read_list(text, where);
  } else if (ending == ".csv" || ending == ".tsv") {
    rows = read_table(text, data, where, ending == ".csv" ? ',' : '\t');
  } else {
    require_input(is_valid_utf8(text), where, ": is not valid UTF-8");
    rows.push_back({OrderedJson{{"text", text}}, where});
  }
  require_input(!rows.empty(), where, ": holds no row");
  if (!data.labels.empty()) add_labels(rows, data, folder);
  return rows;
}

bool meets(const RowCondition& condition, const TaskRow& row) {
  if (condition.field.empty()) return true;
  const std::string value = condition.field.render(row.fields, row.where);
  return condition.contains ? value.find(condition.value) != std::string::npos
                            : value == condition.value;
}

}  // namespace onset
