#include "onset/report/page.h"

#include "onset/base/error.h"
#include "onset/report/assets.h"
#include "onset/report/html.h"

namespace onset {
namespace {

std::string paragraphs(const std::vector<std::string>& texts) {
  std::string html;
  for (const auto& text : texts) html += str_cat("<p>", html_escape(text), "</p>\n");
  return html;
}

std::string highlights_html(const std::vector<Fact>& facts) {
  std::string html;
  for (const auto& fact : facts) {
    html += str_cat("<div><dt>", html_escape(fact.name), "</dt><dd>", html_escape(fact.value));
    if (!fact.remark.empty()) html += str_cat("<small>", html_escape(fact.remark), "</small>");
    html += "</dd></div>\n";
  }
  return html;
}

std::string figure_html(const Figure& figure) {
  std::string html = str_cat(
      "<figure>\n<div class=\"views\" id=\"", figure.id, "-views\"></div>\n<div class=\"plot ",
      figure.kind, "\" id=\"", figure.id, R"(" role="img" aria-label=")", html_escape(figure.alt),
      "\"></div>\n<figcaption><p><b>What to see.</b> ", html_escape(figure.see),
      "</p><p><b>How to read it.</b> ", html_escape(figure.read), "</p></figcaption>\n");
  if (!figure.details.empty()) {
    html += str_cat("<details><summary>The numbers as a table</summary>\n<div class=\"wide\">",
                    figure.details, "</div></details>\n");
  }
  return html + "</figure>\n";
}

std::string section_html(const Section& section) {
  std::string html = str_cat("<section id=\"", section.id, "\">\n<h2>", html_escape(section.title),
                             "</h2>\n", section.html);
  for (const auto& figure : section.figures) html += figure_html(figure);
  return html + "</section>\n";
}

OrderedJson page_data(const Page& page) {
  OrderedJson figures = OrderedJson::array();
  for (const auto& section : page.sections) {
    for (const auto& figure : section.figures) {
      figures.push_back({{"id", figure.id}, {"kind", figure.kind}, {"data", figure.data}});
    }
  }
  return {{"shared", page.shared}, {"figures", std::move(figures)}};
}

}  // namespace

std::string table_html(const Table& table) {
  const auto cells = [&](const std::vector<std::string>& row, std::string_view tag,
                         std::string_view scope) {
    std::string html = "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      html += str_cat("<", tag, scope, table.numeric[i] ? " class=\"number\">" : ">",
                      html_escape(row[i]), "</", tag, ">");
    }
    return html + "</tr>\n";
  };
  std::string html = "<table>\n";
  if (!table.caption.empty()) {
    html += str_cat("<caption>", html_escape(table.caption), "</caption>\n");
  }
  html += "<thead>" + cells(table.header, "th", " scope=\"col\"") + "</thead>\n<tbody>\n";
  for (const auto& row : table.rows) html += cells(row, "td", "");
  return html + "</tbody></table>\n";
}

std::string facts_html(const std::vector<Fact>& facts) {
  std::string html = "<dl class=\"facts\">\n";
  for (const auto& fact : facts) {
    html += str_cat("<dt>", html_escape(fact.name), "</dt><dd>", html_escape(fact.value));
    if (!fact.remark.empty()) html += str_cat(" <small>", html_escape(fact.remark), "</small>");
    html += "</dd>\n";
  }
  return html + "</dl>\n";
}

std::string render_page(const Page& page) {
  std::string contents;
  std::string sections;
  for (const auto& section : page.sections) {
    contents += str_cat("<a href=\"#", section.id, "\">", html_escape(section.title), "</a>\n");
    sections += section_html(section);
  }
  const std::string kind = html_escape(page.kind);
  const std::string heading = html_escape(page.heading);
  const std::string lead = paragraphs(page.lead);
  const std::string highlights = highlights_html(page.highlights);
  const std::string data = script_json(page_data(page));
  return fill_places(page_html(), {{"kind", kind},
                                   {"heading", heading},
                                   {"css", page_css()},
                                   {"lead", lead},
                                   {"highlights", highlights},
                                   {"contents", contents},
                                   {"sections", sections},
                                   {"data", data},
                                   {"plotly", plotly_js()},
                                   {"kinds", matrix_figures_js()},
                                   {"js", page_js()}});
}

}  // namespace onset
