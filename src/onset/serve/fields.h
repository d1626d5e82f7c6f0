// Reading the fields of a request's JSON: each by its type and range, and none left unread.
// Torch-free.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "onset/base/json.h"

namespace onset {

// An object whose fields are read one by one. A null counts as missing, as clients send it for what
// they do not set. Throws ApiErrors that name the field.
class Fields {
 public:
  // `path`: of the object within the request, "messages[2]"; empty for the request itself.
  Fields(const Json& object, std::string path);

  [[nodiscard]] const Json* find(const std::string& key);
  [[nodiscard]] std::optional<std::int64_t> integer(
      const std::string& key, std::int64_t min = std::numeric_limits<std::int64_t>::min(),
      std::int64_t max = std::numeric_limits<std::int64_t>::max());
  [[nodiscard]] std::optional<double> number(const std::string& key, double min, double max);
  [[nodiscard]] std::optional<bool> boolean(const std::string& key);
  [[nodiscard]] std::optional<std::string> text(const std::string& key);
  // Read by nobody here, and without effect on the answer.
  void ignore(const std::vector<std::string>& keys);
  // Throws for a field that was not asked for, with the nearest name that was.
  void refuse_others() const;

  // "messages[2].role"
  [[nodiscard]] std::string path_of(const std::string& key) const;

 private:
  const Json& object_;
  std::string path_;
  std::set<std::string> known_;
};

// "an integer": what a value is, for messages.
[[nodiscard]] std::string kind_of(const Json& value);

}  // namespace onset
