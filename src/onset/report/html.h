// Text that is safe where it stands in an HTML page. Everything that comes from a user, a file or a
// vocabulary passes through one of these. Torch-free.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "onset/base/json.h"

namespace onset {

// For element content and quoted attributes: & < > " ' become entities; bad UTF-8 becomes U+FFFD,
// as do NUL and other control characters that HTML does not allow.
[[nodiscard]] std::string html_escape(std::string_view text);

// For <script type="application/json">: JSON in ASCII alone, with < > & escaped as well, so that no
// text in it can end the script, open a comment (<!--) or break a line (U+2028). NaN and infinity
// become null, bad UTF-8 becomes U+FFFD.
[[nodiscard]] std::string script_json(const OrderedJson& value);

// The number rounded to five significant digits: a picture needs no more, and the page stays small.
// NaN and infinities become null.
[[nodiscard]] OrderedJson picture_number(float value);

// Fills each {{name}} of `skeleton` with its part. What is filled in is not searched again. Throws
// std::logic_error for a place without a part.
[[nodiscard]] std::string fill_places(
    std::string_view skeleton,
    std::initializer_list<std::pair<std::string_view, std::string_view>> parts);

// "23,738", "193.2", "100", "0.0412": four significant digits, all digits before the point, no
// zeros at the end behind it.
[[nodiscard]] std::string number_text(double value);

// At most `most` code points, the cut shown by an ellipsis. Expects valid UTF-8.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t most);

}  // namespace onset
