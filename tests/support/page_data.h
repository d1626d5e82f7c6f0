// The data in a report's page, as a browser would read it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "onset/base/json.h"

namespace onset::testing {

// The JSON in the page's script element; null where there is none.
[[nodiscard]] inline OrderedJson page_data_of(const std::string& html) {
  const std::string open = R"(<script type="application/json" id="data">)";
  const auto begin = html.find(open);
  if (begin == std::string::npos) return {};
  const auto end = html.find("</script>", begin);
  return OrderedJson::parse(html.substr(begin + open.size(), end - begin - open.size()));
}

// The data of one figure; fails the test where the page has none of that id.
[[nodiscard]] inline OrderedJson figure_of(const OrderedJson& page, const std::string& id) {
  for (const auto& figure : page["figures"]) {
    if (figure["id"] == id) return figure["data"];
  }
  ADD_FAILURE() << "no figure " << id;
  return {};
}

}  // namespace onset::testing
