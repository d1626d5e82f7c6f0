// Files that the library carries within itself, so that the installed program needs none beside it.
// Torch-free.
#pragma once

#include <string_view>

namespace onset {

[[nodiscard]] std::string_view plotly_js();  // plotly.min.js, MIT licence in its first lines
[[nodiscard]] std::string_view page_html();  // the skeleton, with {{places}} to fill
[[nodiscard]] std::string_view page_css();
[[nodiscard]] std::string_view page_js();
// Kinds of figures that page.js draws, too.
[[nodiscard]] std::string_view matrix_figures_js();
[[nodiscard]] std::string_view explain_figures_js();
[[nodiscard]] std::string_view comparison_figures_js();
[[nodiscard]] std::string_view training_figures_js();

}  // namespace onset
