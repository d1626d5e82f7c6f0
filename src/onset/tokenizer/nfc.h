// Unicode normalisation as the reference tokenizers do it: their tables are older than utf8proc's,
// see is_nfc_class0().
#pragma once

#include <string>
#include <string_view>

namespace onset {

// `text` must be valid UTF-8. Gives `text` itself where it is in NFC already, else a view of
// `storage`, which then holds the result.
[[nodiscard]] std::string_view to_nfc(std::string_view text, std::string& storage);
// NFD, or NFKD with `compatibility`; always a view of `storage`.
[[nodiscard]] std::string_view decomposed(std::string_view text, bool compatibility,
                                          std::string& storage);

}  // namespace onset
