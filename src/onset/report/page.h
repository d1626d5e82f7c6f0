// One self-contained HTML page: words, figures drawn by plotly.js, tables. What is in it is up to
// the caller; scan_page.h fills one. Torch-free.
#pragma once

#include <string>
#include <vector>

#include "onset/base/json.h"

namespace onset {

// A name with its value, and a remark in small print that may be empty. Plain text.
struct Fact {
  std::string name;
  std::string value;
  std::string remark = {};
};

// A picture. All fields but `data` and `details` are plain text.
struct Figure {
  std::string id;    // of the element: letters, digits and dashes
  std::string kind;  // the function of page.js that draws it
  std::string see;   // the caption: what to see,
  std::string read;  // and how to read it
  std::string alt;   // in place of the picture, for those who cannot see it
  OrderedJson data;
  std::string details = {};  // HTML: the same as a table, folded away; may be empty
};

struct Section {
  std::string id;
  std::string title;
  std::string html = {};  // before the figures
  std::vector<Figure> figures = {};
};

struct Page {
  std::string kind;               // above the heading: what made the page
  std::string heading;            // also the document's title, with `kind`
  std::vector<std::string> lead;  // paragraphs: the answer in words
  std::vector<Fact> highlights;   // the answer in numbers
  std::vector<Section> sections;
  OrderedJson shared;  // what all figures may use: tokens
};

// Escapes everything that is plain text.
[[nodiscard]] std::string render_page(const Page& page);

// HTML of a table; cells are plain text. Columns in `numeric` are aligned at the right.
struct Table {
  std::string caption;
  std::vector<std::string> header;
  std::vector<bool> numeric;
  std::vector<std::vector<std::string>> rows;
};
[[nodiscard]] std::string table_html(const Table& table);

// HTML of names and values.
[[nodiscard]] std::string facts_html(const std::vector<Fact>& facts);

}  // namespace onset
