// A page in Markdown: its words and tables, without the pictures. Torch-free.
#pragma once

#include <string>
#include <string_view>

#include "onset/report/page.h"

namespace onset {

// Text in which nothing means anything to Markdown or HTML, on one line.
[[nodiscard]] std::string markdown_escape(std::string_view text);

// GitHub's tables. Of a figure: its caption and tables.
[[nodiscard]] std::string render_markdown(const Page& page);

}  // namespace onset
