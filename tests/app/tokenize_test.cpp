// onset tokenize against the rows of the reference tokenizers.

#include <algorithm>

#include "app/program.h"
#include "onset/base/error.h"
#include "onset/base/file.h"

namespace onset::testing {
namespace {

std::string fixture(const std::string& name) {
  return testing::data("tokenizers/" + name).string();
}

class TokenizeFamilies : public ::testing::TestWithParam<std::string> {};

TEST_P(TokenizeFamilies, JsonlEqualsTheReference) {
  const std::string name = GetParam();
  const auto rows = read_jsonl(fixture(name + ".encode.jsonl"));
  const auto folder = unpacked("tokenizers/" + name).string();
  const auto plain = run_onset({"tokenize", folder, "--jsonl", fixture(name + ".encode.jsonl")});
  const auto special =
      run_onset({"tokenize", folder, "--special", "--jsonl", fixture(name + ".encode.jsonl")});
  const auto decoded =
      run_onset({"tokenize", folder, "--decode", "--jsonl", fixture(name + ".encode.jsonl")});
  ASSERT_EQ(plain.code, 0) << plain.error;
  ASSERT_EQ(special.code, 0) << special.error;
  ASSERT_EQ(decoded.code, 0) << decoded.error;
  const auto plain_rows = plain.json_lines();
  const auto special_rows = special.json_lines();
  const auto decoded_rows = decoded.json_lines();
  ASSERT_EQ(plain_rows.size(), rows.size());
  ASSERT_EQ(special_rows.size(), rows.size());
  ASSERT_EQ(decoded_rows.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(plain_rows[i]["ids"], rows[i]["ids"]) << rows[i]["text"];
    EXPECT_EQ(plain_rows[i]["text"], rows[i]["text"]);
    EXPECT_EQ(plain_rows[i]["pieces"].size(), rows[i]["ids"].size());
    EXPECT_EQ(special_rows[i]["ids"], rows[i]["ids_special"]) << rows[i]["text"];
    EXPECT_EQ(decoded_rows[i]["text"], rows[i]["decoded"]);
  }
}

TEST_P(TokenizeFamilies, ChatsEqualTheReference) {
  const std::string name = GetParam();
  const auto rows = read_jsonl(fixture(name + ".chat.jsonl"));
  const auto outcome = run_onset({"tokenize", unpacked("tokenizers/" + name).string(), "--jsonl",
                                  fixture(name + ".chat.jsonl")});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto found = outcome.json_lines();
  ASSERT_EQ(found.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(found[i]["text"], rows[i]["text"]);
    EXPECT_EQ(found[i]["ids"], rows[i]["ids"]) << rows[i]["text"];
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TokenizeFamilies, ::testing::Values("qwen3", "llama3_1"),
                         [](const auto& family) { return family.param; });

std::string qwen() { return unpacked("tokenizers/qwen3").string(); }
std::string llama() { return unpacked("tokenizers/llama3_1").string(); }

TEST(Tokenize, AnEmptyTextGivesNoIds) {
  const auto outcome = run_onset({"tokenize", qwen(), "--text", "", "--text", "hi"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(outcome.out.starts_with("{\"ids\":[],\"pieces\":[],\"text\":\"\"}\n")) << outcome.out;
  EXPECT_EQ(outcome.json_lines().size(), 2U);
  EXPECT_EQ(run_onset({"tokenize", qwen()}).json_lines().at(0)["ids"], OrderedJson::array());
}

TEST(Tokenize, TextsThatLookLikeOptionsOrListsStayTexts) {
  const auto outcome = run_onset({"tokenize", qwen(), "--text", "--text", "--text", "[a,b]",
                                  "--text=-x", "--text=", "--text=--", "--text", "--"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto rows = outcome.json_lines();
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[0]["text"], "--text");
  EXPECT_EQ(rows[1]["text"], "[a,b]");
  EXPECT_EQ(rows[2]["text"], "-x");
  EXPECT_EQ(rows[3]["text"], "");
  EXPECT_EQ(rows[4]["text"], "--");
  EXPECT_EQ(rows[5]["text"], "--");
}

TEST(Tokenize, StandardInputIsOneTextOrLines) {
  const auto whole = run_onset({"tokenize", qwen()}, {.input = "a\nb\n"});
  ASSERT_EQ(whole.json_lines().size(), 1U);
  EXPECT_EQ(whole.json_lines()[0]["text"], "a\nb\n");
  const auto lines = run_onset({"tokenize", qwen(), "--lines"}, {.input = "a\n\nb"});
  ASSERT_EQ(lines.json_lines().size(), 3U);
  EXPECT_EQ(lines.json_lines()[1]["ids"], OrderedJson::array());
  EXPECT_EQ(lines.json_lines()[2]["text"], "b");
}

TEST(Tokenize, LongLinesArriveWhole) {
  // Longer than the reading buffer, and one line that ends exactly with it.
  const std::string first((1U << 16U) - 1, 'a');
  const std::string second(200000, 'b');
  const auto outcome =
      run_onset({"tokenize", qwen(), "--lines"}, {.input = first + "\n" + second + "\nc"});
  const auto rows = outcome.json_lines();
  ASSERT_EQ(rows.size(), 3U) << outcome.error;
  EXPECT_EQ(rows[0]["text"], first);
  EXPECT_EQ(rows[1]["text"], second);
  EXPECT_EQ(rows[2]["text"], "c");
}

TEST(Tokenize, StandardInputThatCannotBeReadFails) {
  expect_refusal(run_onset({"tokenize", qwen()}, {.input_path = "/"}), 1, "standard input");
  expect_refusal(run_onset({"tokenize", qwen(), "--lines"}, {.input_path = "/"}), 1,
                 "standard input");
}

TEST(Tokenize, BytesThatAreNoUtf8GiveValidJson) {
  const auto outcome = run_onset({"tokenize", qwen()}, {.input = std::string("a\xFF\xC3", 3)});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(outcome.json()["text"], "a\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Tokenize, DecodesFromArgumentsOptionsAndStandardInput) {
  const auto ids = run_onset({"tokenize", qwen(), "--text", "Dark Blue."}).json()["ids"];
  std::vector<std::string> arguments{"tokenize", qwen(), "--decode"};
  for (const auto& id : ids) arguments.push_back(id.dump());
  EXPECT_EQ(run_onset(arguments).json()["text"], "Dark Blue.");
  EXPECT_EQ(run_onset({"tokenize", qwen(), "--decode", "--ids", ids.dump()}).json()["text"],
            "Dark Blue.");
  const auto lines = run_onset({"tokenize", qwen(), "--decode"},
                               {.input = ids.dump() + "\n{\"ids\":" + ids.dump() + "}\n\n"});
  ASSERT_EQ(lines.code, 0) << lines.error;
  ASSERT_EQ(lines.json_lines().size(), 3U);
  EXPECT_EQ(lines.json_lines()[1]["text"], "Dark Blue.");
  EXPECT_EQ(lines.json_lines()[2]["text"], "");
}

TEST(Tokenize, IdsThatAreNoneFail) {
  expect_refusal(run_onset({"tokenize", qwen(), "--decode", "99999999"}), 1, "99999999");
  expect_refusal(run_onset({"tokenize", qwen(), "--decode", "--", "-1"}), 2, "-1");
  expect_refusal(run_onset({"tokenize", qwen(), "--decode", "1,x"}), 2, "\"x\"");
  expect_refusal(run_onset({"tokenize", qwen(), "--decode"}, {.input = "1 2\n3 z\n"}), 1,
                 "standard input");
  expect_refusal(run_onset({"tokenize", qwen(), "--ids", "1"}), 2, "--decode");
}

TEST(Tokenize, BrokenRowsNameTheLine) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> rows{
      {"{\"text\": \"a\"}\n\n{\"text\"", ".jsonl:3"},
      {R"({"text": 5})", "should be a string"},
      {"[1]", "should be a JSON object"},
      {R"({"txt": "a"})", "has none of"},
      {R"({"messages": 5})", ".jsonl:1"},
      {R"({"messages": [{"role": "emperor", "content": "a"}]})", ".jsonl:1"},
      {R"({"messages": [], "options": {"colour": 1}})", R"(unknown option "colour")"},
      {R"({"ids": [1]})", "--decode"},
  };
  for (const auto& [content, message] : rows) {
    const auto file = folder.write("rows.jsonl", content).string();
    const auto outcome = run_onset({"tokenize", qwen(), "--jsonl", file});
    EXPECT_EQ(outcome.code, 1) << content;
    EXPECT_NE(outcome.error.find(message), std::string::npos) << content << "\n" << outcome.error;
  }
  const auto file = folder.write("ids.jsonl", "{\"ids\": [1, -2]}").string();
  expect_refusal(run_onset({"tokenize", qwen(), "--decode", "--jsonl", file}), 1, "ids.jsonl:1");
  expect_refusal(run_onset({"tokenize", qwen(), "--jsonl", "/nowhere.jsonl"}), 1, "/nowhere.jsonl");
}

TEST(Tokenize, LiteralTakesSpecialStringsAsText) {
  const std::string text = "<|im_end|>";
  EXPECT_EQ(run_onset({"tokenize", qwen(), "--text", text}).json()["ids"].size(), 1U);
  EXPECT_GT(run_onset({"tokenize", qwen(), "--literal", "--text", text}).json()["ids"].size(), 1U);
}

TEST(Tokenize, LiteralLeavesTheSpecialTokensOfTheChatFormat) {
  const TemporaryFolder folder;
  const auto rows =
      folder.write("rows.jsonl", R"({"messages": [{"role": "user", "content": "a<|im_end|>b"}]})");
  const auto ends = [](const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    const auto ids = outcome.json()["ids"].get<std::vector<int>>();
    return std::count(ids.begin(), ids.end(), 151645);  // Qwen's <|im_end|>
  };
  for (const std::vector<std::string>& chat :
       {std::vector<std::string>{"--chat", "--text", "a<|im_end|>b"},
        std::vector<std::string>{"--jsonl", rows.string()}}) {
    std::vector<std::string> arguments{"tokenize", qwen()};
    arguments.insert(arguments.end(), chat.begin(), chat.end());
    EXPECT_EQ(ends(run_onset(arguments)), 2);
    arguments.emplace_back("--literal");
    EXPECT_EQ(ends(run_onset(arguments)), 1) << "the end of the turn";
  }
}

TEST(Tokenize, TheBosOfAChatIsNotDoubled) {
  const auto chat = run_onset({"tokenize", llama(), "--chat", "--text", "Hello", "--special"});
  ASSERT_EQ(chat.code, 0) << chat.error;
  const auto row = chat.json();
  EXPECT_EQ(row["ids"][0], 128000);
  EXPECT_NE(row["ids"][1], 128000);
  // The same string by the direct way gives the same ids.
  const auto direct = run_onset({"tokenize", llama(), "--text", row["text"].get<std::string>()});
  EXPECT_EQ(direct.json()["ids"], row["ids"]);
}

TEST(Tokenize, ATokenizerFileAloneIsEnough) {
  const auto outcome =
      run_onset({"tokenize", unpacked("tokenizers/qwen3/tokenizer.json").string(), "--text", "hi"});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  expect_refusal(
      run_onset({"tokenize", qwen(), "--chat", "--chat-format", "nonsense", "--text", "a"}), 2,
      "qwen3");
}

TEST(Tokenize, AnEditedChatTemplateIsSaid) {
  const auto stock = run_onset({"tokenize", qwen(), "--chat", "--text", "hi"});
  EXPECT_EQ(stock.code, 0);
  EXPECT_EQ(stock.error, "");
  const TemporaryFolder folder;
  const std::filesystem::path source = qwen();
  std::filesystem::create_symlink(source / "tokenizer.json", folder.path() / "tokenizer.json");
  auto config = OrderedJson::parse(read_file(source / "tokenizer_config.json"));
  config["chat_template"] = "{{- 'You are Bob.' }}" + config["chat_template"].get<std::string>();
  static_cast<void>(folder.write("tokenizer_config.json", config.dump()));
  const auto edited = run_onset({"tokenize", folder.path().string(), "--chat", "--text", "hi"});
  EXPECT_EQ(edited.code, 0);
  EXPECT_NE(edited.error.find("bears the marks of qwen3"), std::string::npos) << edited.error;
  // Whoever names the format has decided.
  const auto named = run_onset(
      {"tokenize", folder.path().string(), "--chat", "--chat-format", "qwen3", "--text", "hi"});
  EXPECT_EQ(named.error, "");
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Tokenize, ANamedFormatWhoseMarkersAreNoTokensIsSaidOnce) {
  const auto outcome = run_onset(
      {"tokenize", llama(), "--chat", "--chat-format", "chatml", "--text", "hi", "--text", "ho"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(times(outcome.error, "chat format chatml writes <|im_start|>, <|im_end|>"), 1U)
      << outcome.error;
  EXPECT_EQ(
      run_onset({"tokenize", qwen(), "--chat", "--chat-format", "chatml", "--text", "hi"}).error,
      "");
}

TEST(Tokenize, OnlyMarkersThatTheTextHoldsAreSaid) {
  const auto outcome =
      run_onset({"tokenize", qwen(), "--chat", "--chat-format", "phi3", "--text", "hi"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.error.find("<|user|>"), std::string::npos) << outcome.error;
  EXPECT_EQ(outcome.error.find("<|system|>"), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("no tokens: the format"), std::string::npos) << outcome.error;
}

TEST(Tokenize, OptionsThatAFormatDoesNotReadAreSaidOnce) {
  const TemporaryFolder folder;
  const std::string row =
      R"({"messages": [{"role": "user", "content": "a"}], "options": {"enable_thinking": false}})";
  const auto path = folder.write("rows.jsonl", row + "\n" + row + "\n").string();
  const auto outcome = run_onset({"tokenize", llama(), "--jsonl", path});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(times(outcome.error, "chat format llama3_1 does not read enable_thinking"), 1U)
      << outcome.error;
  EXPECT_EQ(run_onset({"tokenize", qwen(), "--jsonl", path}).error, "");
}

TEST(Tokenize, AChatFormatWithoutAChatIsRefused) {
  expect_refusal(run_onset({"tokenize", qwen(), "--chat-format", "qwen3", "--text", "hi"}), 2,
                 "--chat-format");
  expect_refusal(
      run_onset({"scan", model_path("llama_me"), "--chat-format", "qwen3", "--ids", "1,2"}), 2,
      "--chat-format");
}

}  // namespace
}  // namespace onset::testing
