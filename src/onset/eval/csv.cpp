#include "onset/eval/csv.h"

#include <algorithm>

#include "onset/base/error.h"

namespace onset {
namespace {

class Reader {
 public:
  Reader(std::string_view text, const std::string& where, char separator)
      : text_(text), where_(where), separator_(separator) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  std::vector<CsvRecord> read() {
    std::vector<CsvRecord> records;
    while (at_ < text_.size()) {
      if (line_break_length() > 0) {
        take_line_break();
        continue;
      }
      CsvRecord record{.line = line_, .fields = {}};
      record.fields.push_back(field());
      while (at_ < text_.size() && text_[at_] == separator_) {
        ++at_;
        record.fields.push_back(field());
      }
      take_line_break();
      require_input(records.empty() || record.fields.size() == records.front().fields.size(),
                    where_, ":", record.line, ": ", record.fields.size(), " fields, expected ",
                    records.empty() ? 0 : records.front().fields.size(), " as in the first line");
      records.push_back(std::move(record));
    }
    return records;
  }

 private:
  [[nodiscard]] std::size_t line_break_length() const {
    if (text_[at_] == '\n') return 1;
    return text_.substr(at_).starts_with("\r\n") ? 2 : 0;
  }
  void take_line_break() {
    if (at_ >= text_.size()) return;
    at_ += line_break_length();
    ++line_;
  }

  std::string field() {
    if (at_ >= text_.size() || text_[at_] != '"') return plain_field();
    return quoted_field();
  }

  std::string plain_field() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != separator_ && line_break_length() == 0) {
      require_input(text_[at_] != '"', where_, ":", line_,
                    ": a quote inside a field that does not begin with one");
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted_field() {
    const std::int64_t first_line = line_;
    std::string field;
    for (++at_;; ++at_) {
      require_input(at_ < text_.size(), where_, ":", first_line,
                    ": a quoted field begins here and does not end");
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c != '"') {
        field += c;
        continue;
      }
      if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        field += '"';
        ++at_;
        continue;
      }
      ++at_;
      break;
    }
    require_input(at_ >= text_.size() || text_[at_] == separator_ || line_break_length() > 0,
                  where_, ":", line_, ": text behind the closing quote of a field");
    return field;
  }

  std::string_view text_;
  const std::string& where_;
  char separator_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

}  // namespace

std::vector<CsvRecord> parse_csv(std::string_view text, const std::string& where, char separator) {
  return Reader(text, where, separator).read();
}

}  // namespace onset
