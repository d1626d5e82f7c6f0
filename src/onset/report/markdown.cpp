#include "onset/report/markdown.h"

#include "onset/base/error.h"

namespace onset {
namespace {

std::string paragraphs(const std::vector<std::string>& texts) {
  std::string result;
  for (const auto& text : texts) result += markdown_escape(text) + "\n\n";
  return result;
}

std::string row(const std::vector<std::string>& cells) {
  std::string result = "|";
  for (const auto& cell : cells) result += " " + markdown_escape(cell) + " |";
  return result + "\n";
}

std::string table_markdown(const Table& table) {
  std::string result;
  if (!table.caption.empty()) result += markdown_escape(table.caption) + ":\n\n";
  result += row(table.header) + "|";
  for (const bool numeric : table.numeric) result += numeric ? " ---: |" : " --- |";
  result += "\n";
  for (const auto& cells : table.rows) result += row(cells);
  return result + "\n";
}

std::string facts_markdown(const std::vector<Fact>& facts) {
  if (facts.empty()) return {};
  std::string result;
  for (const auto& fact : facts) {
    result += str_cat("- **", markdown_escape(fact.name), "**: ", markdown_escape(fact.value));
    if (!fact.remark.empty()) result += str_cat(" (", markdown_escape(fact.remark), ")");
    result += "\n";
  }
  return result + "\n";
}

std::string figure_markdown(const Figure& figure) {
  std::string result = markdown_escape(figure.see) + "\n\n";
  for (const auto& table : figure.tables) result += table_markdown(table);
  return result;
}

std::string section_markdown(const Section& section) {
  std::string result =
      str_cat("## ", markdown_escape(section.title), "\n\n", paragraphs(section.text),
              facts_markdown(section.highlights), facts_markdown(section.answers));
  for (const auto& table : section.tables) result += table_markdown(table);
  for (const auto& figure : section.figures) result += figure_markdown(figure);
  result += facts_markdown(section.facts);
  if (!section.remark.empty()) result += markdown_escape(section.remark) + "\n\n";
  return result;
}

}  // namespace

std::string markdown_escape(std::string_view text) {
  std::string result;
  for (const char c : valid_utf8(text)) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      result += ' ';
      continue;
    }
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      if (std::string_view("\\`*_[]|#~$!").find(c) != std::string_view::npos) result += '\\';
      result += c;
    }
  }
  return result;
}

std::string render_markdown(const Page& page) {
  std::string result =
      str_cat("# ", markdown_escape(page.heading), "\n\n", markdown_escape(page.kind), "\n\n",
              paragraphs(page.lead), facts_markdown(page.highlights), facts_markdown(page.answers));
  for (const auto& section : page.sections) result += section_markdown(section);
  while (result.ends_with("\n\n")) result.pop_back();
  return result;
}

}  // namespace onset
