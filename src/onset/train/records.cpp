#include "onset/train/records.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/strings.h"

namespace onset {
namespace {

void append_rows(OrderedJson& list, const std::string& where, std::vector<TaskRow>& rows) {
  for (auto& value : list) {
    if (value.is_array()) {
      append_rows(value, where, rows);
      continue;
    }
    const auto place = str_cat(where, ": entry ", rows.size());
    require_input(value.is_object(), place, ": should be an object, is ", value.type_name());
    rows.push_back({std::move(value), place});
  }
}

std::vector<TaskRow> read_list(const std::filesystem::path& path) {
  const auto where = path.string();
  auto list = parse_ordered_json(read_file(path), where);
  require_input(list.is_array(), where, ": should be a list of objects, is ", list.type_name());
  std::vector<TaskRow> rows;
  append_rows(list, where, rows);
  require_input(!rows.empty(), where, ": holds no row");
  return rows;
}

void require_list(const OrderedJson& value, const std::string& where, const char* of,
                  const char* example) {
  if (value.is_array()) return;
  throw input_error(
      str_cat(where, " should be a list of ", of, ", is ", value.type_name()),
      str_cat("give a JSON array, as in ", example,
              ", in a .jsonl file; the columns of a .csv or .tsv file hold texts alone"));
}

}  // namespace

void require_records(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    throw input_error(str_cat(path.string(), ": there is no such file"),
                      "name a .jsonl file with one example a line");
  }
  const std::string kind = path.extension().string();
  for (const char* unread : {".parquet", ".arrow", ".gz", ".zst", ".xz", ".bz2", ".zip"}) {
    if (kind != unread) continue;
    throw input_error(str_cat(path.string(), ": ", kind, " files are not read"),
                      "write its rows as JSON lines (datasets: to_json), or unpack it");
  }
}

std::vector<TaskRow> read_records(const std::filesystem::path& path) {
  require_records(path);
  if (path.extension() == ".json") return read_list(path);
  TaskData data;
  data.file = path.filename().string();
  return read_rows(data, path.has_parent_path() ? path.parent_path() : ".");
}

const std::string& Record::column(const std::string& name) const {
  const auto found = options_.columns.find(name);
  return found == options_.columns.end() ? name : found->second;
}

const OrderedJson* Record::find(const std::string& name) const {
  const auto found = row_.fields.find(column(name));
  return found == row_.fields.end() || found->is_null() ? nullptr : &*found;
}

bool Record::has_all(std::initializer_list<const char*> names) const {
  return std::all_of(names.begin(), names.end(), [&](const char* name) { return has(name); });
}

std::string Record::place(const std::string& name) const {
  return str_cat(where(), ": column ", quote(column(name)));
}

const OrderedJson& Record::at(const std::string& name) const {
  const auto* value = find(name);
  require_input(value != nullptr, place(name), " is missing");
  return *value;
}

std::string Record::text(const std::string& name) const {
  const auto& value = at(name);
  require_input(value.is_string(), place(name), " should be a text, is ", value.type_name());
  return value.get<std::string>();
}

TokenIds Record::ids_of(const OrderedJson& value, const std::string& where) const {
  require_list(value, where, "token ids", "[1, 5, 9]");
  const std::int64_t size = options_.vocabulary > 0         ? options_.vocabulary
                            : options_.tokenizer != nullptr ? options_.tokenizer->vocabulary_size()
                                                            : std::numeric_limits<int>::max();
  TokenIds ids;
  ids.reserve(value.size());
  for (const auto& id : value) {
    require_input(id.is_number_integer(), where, ": entry ", ids.size(),
                  " should be a token id, is ", id.is_number() ? id.dump() : id.type_name());
    const bool fits = id.is_number_unsigned()
                          ? id.get<std::uint64_t>() < static_cast<std::uint64_t>(size)
                          : id.get<std::int64_t>() >= 0 && id.get<std::int64_t>() < size;
    require_input(fits, where, ": entry ", ids.size(), " is ", id.dump(),
                  "; the model has the ids 0 to ", size - 1);
    ids.push_back(id.get<std::int64_t>());
  }
  return ids;
}

TokenIds Record::ids(const std::string& name) const { return ids_of(at(name), place(name)); }

std::vector<TokenIds> Record::id_lists(const std::string& name) const {
  const auto& value = at(name);
  require_list(value, place(name), "lists of token ids", "[[1, 5], [9]]");
  std::vector<TokenIds> lists;
  for (const auto& list : value) {
    lists.push_back(ids_of(list, str_cat(place(name), ": list ", lists.size())));
  }
  return lists;
}

std::vector<double> Record::numbers(const std::string& name) const {
  const auto& value = at(name);
  require_list(value, place(name), "numbers", "[0.5, 1]");
  std::vector<double> numbers;
  for (const auto& number : value) {
    require_input(number.is_number() || number.is_null(), place(name), ": entry ", numbers.size(),
                  " should be a number or null, is ", number.type_name());
    numbers.push_back(number.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                       : number.get<double>());
    require_input(!std::isinf(numbers.back()), place(name), ": entry ", numbers.size() - 1,
                  " is not finite");
  }
  return numbers;
}

bool Record::is_messages(const std::string& name) const {
  const auto* value = find(name);
  return value != nullptr && value->is_array();
}

void Record::note_unread(std::initializer_list<const char*> read, DataReport& report) const {
  for (const auto& [name, value] : row_.fields.items()) {
    const bool known = std::any_of(read.begin(), read.end(), [&, &key = name](const char* ours) {
      return column(ours) == key;
    });
    if (!known) report.unread.insert(valid_utf8(name));
  }
}

Error Record::no_columns(std::string_view wanted) const {
  std::vector<std::string> names;
  for (const auto& [name, value] : row_.fields.items()) names.push_back(quote(name));
  return input_error(
      str_cat(where(), ": has ", names.empty() ? "no columns" : "the columns " + join(names, ", "),
              "; wanted are ", wanted),
      "rename them, or say which column is which (columns)");
}

void check_columns(const DataOptions& options, const std::vector<std::string>& known) {
  for (const auto& [name, theirs] : options.columns) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw usage_error(
        str_cat("column ", quote(name), " is none that is read; those are ", join(known, ", ")),
        did_you_mean(nearest(name, known)));
  }
}

}  // namespace onset
