// TOML files: parsed whole, read table by table, with errors that name file, line and key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "onset/base/error.h"
#include "onset/base/json.h"

namespace onset {

// A table whose keys are read one by one. Throws input errors "FILE:LINE: key "choice.gold" ..":
// for a value of another type, for a key that is missing and, by refuse_others(), for one that
// nobody asked for. Copies share the file.
class TomlTable {
 public:
  // The whole file. Throws an input error that begins with `where` for what is not TOML, and for
  // what JSON does not know: dates, times, numbers that are not finite.
  static TomlTable parse(std::string_view text, const std::string& where);
  static TomlTable read(const std::filesystem::path& path);

  [[nodiscard]] bool has(const std::string& key);
  // A missing key gives nothing, or an empty list.
  [[nodiscard]] std::optional<std::string> find_text(const std::string& key);
  [[nodiscard]] std::optional<std::int64_t> find_integer(const std::string& key, std::int64_t min,
                                                         std::int64_t max);
  [[nodiscard]] std::optional<bool> find_boolean(const std::string& key);
  [[nodiscard]] std::optional<TomlTable> find_table(const std::string& key);
  [[nodiscard]] std::vector<std::string> texts(const std::string& key);
  [[nodiscard]] std::vector<TomlTable> tables(const std::string& key);
  // The value as it is, null where there is none.
  [[nodiscard]] Json value(const std::string& key);
  // Keys of this table, sorted; they count as asked for.
  [[nodiscard]] std::vector<std::string> keys();
  // The key must be there.
  [[nodiscard]] std::string text(const std::string& key);
  [[nodiscard]] TomlTable table(const std::string& key);

  // "FILE:LINE: key "choice.gold"", for messages of others.
  [[nodiscard]] std::string place(const std::string& key) const;
  // An input error about a key, or about the table itself where the key is empty.
  [[nodiscard]] Error error(const std::string& key, const std::string& message,
                            std::string hint = {}) const;
  // Throws for keys that were not asked for, with the nearest name that was.
  void refuse_others() const;

 private:
  struct File;
  TomlTable(std::shared_ptr<const File> file, std::string pointer);
  [[nodiscard]] const Json& object() const;
  [[nodiscard]] const Json* find(const std::string& key);
  [[nodiscard]] Error wrong_type(const std::string& key, std::string_view expected) const;

  std::shared_ptr<const File> file_;
  std::string pointer_;  // of this table in the file, as a JSON pointer
  std::set<std::string> known_;
};

}  // namespace onset
