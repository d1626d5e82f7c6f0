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

// Cells are plain text. Columns in `numeric` are aligned at the right.
struct Table {
  std::string caption;
  std::vector<std::string> header;
  std::vector<bool> numeric;
  std::vector<std::vector<std::string>> rows;
};

// A picture. All texts are plain.
struct Figure {
  std::string id;    // of the element: letters, digits and dashes
  std::string kind;  // the function that draws it, in page.js or beside it
  std::string see;   // the caption: what to see,
  std::string read;  // and how to read it
  std::string alt;   // in place of the picture, for those who cannot see it
  OrderedJson data;
  std::vector<Table> tables = {};  // the same, folded away
};

struct Section {
  std::string id;
  std::string title;
  std::vector<std::string> text = {};  // paragraphs before everything else
  std::vector<Fact> answers = {};      // questions with their answers
  std::vector<Fact> highlights = {};   // the answer in numbers
  std::string html = {};               // then
  std::vector<Table> tables = {};
  std::vector<Figure> figures = {};
  std::vector<Fact> facts = {};  // at the end
  std::string remark = {};       // the last, in small print
  bool chapter = false;          // begins a model of several; the others are listed below it
  std::size_t scope = 0;         // whose tokens its figures name: index into Page::scopes
};

struct Page {
  std::string kind;               // above the heading: what made the page
  std::string heading;            // also the document's title, with `kind`
  std::vector<std::string> lead;  // paragraphs: the answer in words
  std::vector<Fact> highlights;   // the answer in numbers
  std::vector<Section> sections;
  OrderedJson shared;                    // what all figures may use: tokens
  std::vector<Fact> answers = {};        // questions with their answers, below the highlights
  std::vector<OrderedJson> scopes = {};  // in place of `shared`, where a page has several models
};

// Escapes everything that is plain text.
[[nodiscard]] std::string render_page(const Page& page);

// Takes out the figures with the most data until the page fits into so many bytes, and says so in
// their place. Words and tables stay.
void fit_page(Page& page, std::size_t most_bytes);

// HTML of a table.
[[nodiscard]] std::string table_html(const Table& table);

// HTML of names and values.
[[nodiscard]] std::string facts_html(const std::vector<Fact>& facts);

}  // namespace onset
