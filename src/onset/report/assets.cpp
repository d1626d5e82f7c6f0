#include "onset/report/assets.h"

// The assembler copies the bytes; as an array in C++ they would take the compiler minutes. The
// build file gives the paths and makes this file depend on them.
#define ONSET_EMBED(name, path)                       \
  asm(".pushsection .rodata\n"                        \
      ".global onset_asset_" #name                    \
      "_begin\n"                                      \
      ".global onset_asset_" #name                    \
      "_end\n"                                        \
      "onset_asset_" #name                            \
      "_begin:\n"                                     \
      ".incbin \"" path                               \
      "\"\n"                                          \
      "onset_asset_" #name                            \
      "_end:\n"                                       \
      ".byte 0\n"                                     \
      ".popsection\n");                               \
  extern "C" const char onset_asset_##name##_begin[]; \
  extern "C" const char onset_asset_##name##_end[]

ONSET_EMBED(plotly_js, ONSET_PLOTLY_JS);
ONSET_EMBED(page_html, ONSET_REPORT_FOLDER "/page.html");
ONSET_EMBED(page_css, ONSET_REPORT_FOLDER "/page.css");
ONSET_EMBED(page_js, ONSET_REPORT_FOLDER "/page.js");
ONSET_EMBED(matrix_figures_js, ONSET_REPORT_FOLDER "/matrix_figures.js");
ONSET_EMBED(explain_figures_js, ONSET_REPORT_FOLDER "/explain_figures.js");
ONSET_EMBED(comparison_figures_js, ONSET_REPORT_FOLDER "/comparison_figures.js");
ONSET_EMBED(training_figures_js, ONSET_REPORT_FOLDER "/training_figures.js");

namespace onset {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::string_view plotly_js() {
  return between(onset_asset_plotly_js_begin, onset_asset_plotly_js_end);
}
std::string_view page_html() {
  return between(onset_asset_page_html_begin, onset_asset_page_html_end);
}
std::string_view page_css() {
  return between(onset_asset_page_css_begin, onset_asset_page_css_end);
}
std::string_view page_js() { return between(onset_asset_page_js_begin, onset_asset_page_js_end); }
std::string_view matrix_figures_js() {
  return between(onset_asset_matrix_figures_js_begin, onset_asset_matrix_figures_js_end);
}
std::string_view explain_figures_js() {
  return between(onset_asset_explain_figures_js_begin, onset_asset_explain_figures_js_end);
}
std::string_view comparison_figures_js() {
  return between(onset_asset_comparison_figures_js_begin, onset_asset_comparison_figures_js_end);
}
std::string_view training_figures_js() {
  return between(onset_asset_training_figures_js_begin, onset_asset_training_figures_js_end);
}

}  // namespace onset
