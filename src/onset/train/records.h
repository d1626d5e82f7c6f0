// Rows of training files, and their columns with errors that say which row and what to do.
// Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "onset/base/error.h"
#include "onset/eval/task_data.h"
#include "onset/train/data_options.h"
#include "onset/train/data_report.h"
#include "onset/train/examples.h"

namespace onset {

// By the ending of the file's name, as tasks' data are (eval/task_data.h); lists within the list of
// a .json file are taken as if they were one. Throws an input error: no such file, a row that
// cannot be read (with its line and byte), bytes that are not UTF-8, no row at all.
[[nodiscard]] std::vector<TaskRow> read_records(const std::filesystem::path& path);

// Throws what read_records() does where there is no such file, before anything else is done.
void require_records(const std::filesystem::path& path);

// The columns of one row under our names.
class Record {
 public:
  Record(const TaskRow& row, const DataOptions& options) : row_(row), options_(options) {}

  [[nodiscard]] const std::string& where() const { return row_.where; }
  [[nodiscard]] const OrderedJson& fields() const { return row_.fields; }
  // Null where the row has no such column, or null in it.
  [[nodiscard]] const OrderedJson* find(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const { return find(name) != nullptr; }
  [[nodiscard]] bool has_all(std::initializer_list<const char*> names) const;

  // "data.jsonl:7: column "prompt"", for messages.
  [[nodiscard]] std::string place(const std::string& name) const;
  // The column must be there. Input errors: another type, text that is not UTF-8, an id that the
  // model does not have.
  [[nodiscard]] const OrderedJson& at(const std::string& name) const;
  [[nodiscard]] std::string text(const std::string& name) const;
  [[nodiscard]] TokenIds ids(const std::string& name) const;
  [[nodiscard]] std::vector<TokenIds> id_lists(const std::string& name) const;
  // A list of numbers; null becomes NaN.
  [[nodiscard]] std::vector<double> numbers(const std::string& name) const;
  [[nodiscard]] bool is_messages(const std::string& name) const;

  // Names of columns that are not among `read`.
  void note_unread(std::initializer_list<const char*> read, DataReport& report) const;
  // An input error that lists the columns there are and those that would do.
  [[nodiscard]] Error no_columns(std::string_view wanted) const;

 private:
  [[nodiscard]] const std::string& column(const std::string& name) const;
  [[nodiscard]] TokenIds ids_of(const OrderedJson& value, const std::string& where) const;

  const TaskRow& row_;
  const DataOptions& options_;
};

// Throws a usage error for a column's name that no reader of `known` knows.
void check_columns(const DataOptions& options, const std::vector<std::string>& known);

}  // namespace onset
