// tokenizer.json of other parts than byte-level ones: every normalizer, pre-tokenizer and decoder
// that onset knows, equal to what tokenizers 0.23.3 does (parts.json in vocabularies.tar.xz; see
// its SOURCE.txt).
#include "onset/base/file.h"
#include "tokenizer/small_tokenizer.h"
#include "tokenizer/vocabularies.h"

namespace onset::testing {
namespace {

TEST(Parts, EqualTheReference) {
  const Json file = parse_json(read_file(unpacked("tokenizers/parts/parts.json")), "parts.json");
  ASSERT_EQ(file["cases"].size(), 28U);
  for (const auto& item : file["cases"]) {
    SCOPED_TRACE(item["name"].get<std::string>());
    Json json = item["tokenizer"];
    json["model"] = file["models"][json["model"].get<std::string>()];
    const Tokenizer tokenizer = open_json(json);
    for (const auto& row : item["rows"]) {
      const auto ids = row["ids"].get<std::vector<TokenId>>();
      if (row.contains("text")) {
        EXPECT_EQ(tokenizer.encode(row["text"].get<std::string>()), ids) << row["text"];
      }
      EXPECT_EQ(tokenizer.decode(ids), row["decoded"].get<std::string>()) << row["ids"];
    }
  }
}

}  // namespace
}  // namespace onset::testing
