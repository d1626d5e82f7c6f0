#include "onset/serve/page.h"

#include <cstddef>

// The assembler copies the file; the build gives its path and makes this file depend on it.
asm(".pushsection .rodata\n"
    ".global onset_serve_page_begin\n"
    ".global onset_serve_page_end\n"
    "onset_serve_page_begin:\n"
    ".incbin \"" ONSET_SERVE_PAGE
    "\"\n"
    "onset_serve_page_end:\n"
    ".byte 0\n"
    ".popsection\n");
extern "C" const char onset_serve_page_begin[];
extern "C" const char onset_serve_page_end[];

namespace onset {

std::string_view serve_page() {
  return {onset_serve_page_begin,
          static_cast<std::size_t>(onset_serve_page_end - onset_serve_page_begin)};
}

const char* serve_page_policy() {
  return "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
         "connect-src 'self'; base-uri 'none'; form-action 'none'";
}

}  // namespace onset
