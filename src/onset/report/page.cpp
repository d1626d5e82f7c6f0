#include "onset/report/page.h"

#include <algorithm>
#include <utility>

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

std::string answers_html(const std::vector<Fact>& answers) {
  if (answers.empty()) return {};
  std::string html = "<dl class=\"answers\">\n";
  for (const auto& answer : answers) {
    html += str_cat("<dt>", html_escape(answer.name), "</dt><dd>", html_escape(answer.value),
                    "</dd>\n");
  }
  return html + "</dl>\n";
}

std::string figure_html(const Figure& figure) {
  std::string html = "<figure>\n";
  if (figure.kind.empty()) {
    html +=
        "<p class=\"notice\">This picture is left out to keep the page small; a report of this "
        "model alone has it.</p>\n";
  } else {
    html += str_cat(R"(<div class="views" id=")", figure.id, "-views\"></div>\n<div class=\"plot ",
                    figure.kind, "\" id=\"", figure.id, R"(" role="img" aria-label=")",
                    html_escape(figure.alt), "\"></div>\n");
  }
  html +=
      str_cat("<figcaption><p><b>What to see.</b> ", html_escape(figure.see),
              "</p><p><b>How to read it.</b> ", html_escape(figure.read), "</p></figcaption>\n");
  std::string details;
  for (const auto& table : figure.tables) details += table_html(table);
  if (!details.empty()) {
    html += str_cat("<details><summary>The numbers as a table</summary>\n<div class=\"wide\">",
                    details, "</div></details>\n");
  }
  return html + "</figure>\n";
}

std::string section_html(const Section& section) {
  const std::string tag = section.chapter ? "h2 class=\"chapter\"" : "h2";
  std::string html = str_cat("<section id=\"", section.id, "\">\n<", tag, ">",
                             html_escape(section.title), "</h2>\n", paragraphs(section.text));
  if (!section.highlights.empty()) {
    html += str_cat("<dl class=\"highlights\">\n", highlights_html(section.highlights), "</dl>\n");
  }
  html += answers_html(section.answers) + section.html;
  for (const auto& table : section.tables) {
    html += "<div class=\"wide\">" + table_html(table) + "</div>\n";
  }
  for (const auto& figure : section.figures) html += figure_html(figure);
  if (!section.facts.empty()) html += facts_html(section.facts);
  if (!section.remark.empty()) {
    html += str_cat("<p class=\"remark\">", html_escape(section.remark), "</p>\n");
  }
  return html + "</section>\n";
}

std::string link_to(const Section& section) {
  return str_cat("<a href=\"#", section.id, "\">", html_escape(section.title), "</a>\n");
}

// Links to the sections; of several models, to what comes first and to their chapters.
std::string contents_html(const std::vector<Section>& sections) {
  std::string html;
  bool in_chapter = false;
  for (const auto& section : sections) {
    in_chapter = in_chapter || section.chapter;
    if (!in_chapter || section.chapter) html += link_to(section);
  }
  return html;
}

// Links to the sections of the chapter that begins there.
std::string chapter_contents_html(const std::vector<Section>& sections, std::size_t chapter) {
  std::string html;
  for (std::size_t i = chapter + 1; i < sections.size() && !sections[i].chapter; ++i) {
    html += link_to(sections[i]);
  }
  return html.empty() ? html : "<nav aria-label=\"Contents of the model\">\n" + html + "</nav>\n";
}

OrderedJson page_data(const Page& page) {
  OrderedJson figures = OrderedJson::array();
  for (const auto& section : page.sections) {
    for (const auto& figure : section.figures) {
      if (figure.kind.empty()) continue;
      OrderedJson entry{{"id", figure.id}, {"kind", figure.kind}, {"data", figure.data}};
      if (!page.scopes.empty()) entry["scope"] = section.scope;
      figures.push_back(std::move(entry));
    }
  }
  OrderedJson data{{"shared", page.shared}, {"figures", std::move(figures)}};
  if (!page.scopes.empty()) data["scopes"] = page.scopes;
  return data;
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

void fit_page(Page& page, std::size_t most_bytes) {
  std::size_t size = render_page(page).size();
  while (size > most_bytes) {
    Figure* largest = nullptr;
    std::size_t bytes = 0;
    for (auto& section : page.sections) {
      for (auto& figure : section.figures) {
        const std::size_t here = figure.kind.empty() ? 0 : script_json(figure.data).size();
        if (here <= bytes) continue;
        bytes = here;
        largest = &figure;
      }
    }
    if (largest == nullptr) return;
    largest->kind.clear();
    largest->data = nullptr;
    size -= std::min(size, bytes);
  }
}

std::string render_page(const Page& page) {
  const std::string contents = contents_html(page.sections);
  std::string sections;
  for (std::size_t i = 0; i < page.sections.size(); ++i) {
    sections += section_html(page.sections[i]);
    if (page.sections[i].chapter) sections += chapter_contents_html(page.sections, i);
  }
  const std::string kind = html_escape(page.kind);
  const std::string heading = html_escape(page.heading);
  const std::string lead = paragraphs(page.lead);
  const std::string highlights = highlights_html(page.highlights);
  const std::string answers = answers_html(page.answers);
  const std::string data = script_json(page_data(page));
  return fill_places(page_html(), {{"kind", kind},
                                   {"heading", heading},
                                   {"css", page_css()},
                                   {"lead", lead},
                                   {"highlights", highlights},
                                   {"answers", answers},
                                   {"contents", contents},
                                   {"sections", sections},
                                   {"data", data},
                                   {"plotly", plotly_js()},
                                   {"matrix_kinds", matrix_figures_js()},
                                   {"explain_kinds", explain_figures_js()},
                                   {"comparison_kinds", comparison_figures_js()},
                                   {"training_kinds", training_figures_js()},
                                   {"js", page_js()}});
}

}  // namespace onset
