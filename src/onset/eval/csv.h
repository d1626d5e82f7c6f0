// CSV as RFC 4180 has it: quoted fields may hold commas, doubled quotes and line breaks.
// Torch-free.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onset {

struct CsvRecord {
  std::int64_t line = 0;  // where it begins, from 1
  std::vector<std::string> fields;
};

// All records, the header among them. Lines end in \n or \r\n; empty lines are left out, a byte
// order mark at the beginning too. Throws an input error "WHERE:LINE: .." for a quote that does not
// end, text behind a closing quote, a quote inside an unquoted field, and a record with another
// number of fields than the first.
[[nodiscard]] std::vector<CsvRecord> parse_csv(std::string_view text, const std::string& where,
                                               char separator = ',');

}  // namespace onset
