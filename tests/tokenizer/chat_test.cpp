#include "onset/tokenizer/chat.h"

#include <algorithm>
#include <map>

#include "onset/base/error.h"
#include "onset/base/file.h"
#include "onset/base/strings.h"
#include "tokenizer/vocabularies.h"

namespace onset::testing {
namespace {

ChatOptions options_of(const OrderedJson& row) {
  ChatOptions options;
  options.add_generation_prompt = row["add_generation_prompt"].get<bool>();
  const auto& extra = row["options"];
  options.enable_thinking = extra.value("enable_thinking", true);
  if (extra.contains("date_string")) options.date_string = extra["date_string"].get<std::string>();
  if (extra.contains("tools")) options.tools = extra["tools"];
  return options;
}

class ChatFixtures : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] std::vector<OrderedJson> rows() const {
    return read_jsonl(testing::data("tokenizers/" + GetParam() + ".chat.jsonl"));
  }
};

TEST_P(ChatFixtures, RenderGivesTheTextOfTheTemplate) {
  const auto all = rows();
  ASSERT_GE(all.size(), 25U);
  for (const auto& row : all) {
    EXPECT_EQ(render_chat(chat_format(GetParam()), row["messages"], options_of(row)),
              row["text"].get<std::string>())
        << row.dump();
  }
}

// CASES row 5: the template writes BOS where the family has one, so nothing is added on top, and
// both ways to the ids give the same.
TEST_P(ChatFixtures, RenderThenEncodeEqualsEncodingTheTextDirectly) {
  const Tokenizer* tokenizer = tokenizer_of(GetParam());
  if (tokenizer == nullptr) GTEST_SKIP() << "the demonstration model is not there";
  for (const auto& row : rows()) {
    const auto text = render_chat(chat_format(GetParam()), row["messages"], options_of(row));
    EXPECT_EQ(tokenizer->encode(text), ids_of(row["ids"])) << row.dump();
    EXPECT_EQ(tokenizer->encode(row["text"].get<std::string>()), ids_of(row["ids"]));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ChatFixtures,
                         ::testing::Values("qwen3", "llama3_1", "llama3_1_dated", "deepseek_v3",
                                           "smollm2"),
                         [](const auto& row) { return row.param; });

// Templates as the families publish them, and what Jinja makes of them; no text where the template
// refuses the conversation. See families.SOURCE.txt.
class ChatFamilies : public ::testing::Test {
 protected:
  OrderedJson templates =
      OrderedJson::parse(read_file(testing::data("tokenizers/families.templates.json")));
};

TEST_F(ChatFamilies, EveryTemplateIsRecognised) {
  EXPECT_EQ(templates.size(), 18U);
  for (const auto& item : templates.items()) {
    const auto format = recognise_chat_format(item.value().get<std::string>());
    ASSERT_TRUE(format) << item.key();
    EXPECT_EQ(format->name, item.key());
  }
}

// Some templates drop a system text silently, or make up a turn for it; onset names the message.
bool drops_a_system_text(const OrderedJson& row) {
  const auto format = row["format"].get<std::string>();
  std::size_t from = 1;
  if (format == "phi3_early") from = 0;
  if (from == 1 && format != "llama2" && format != "gemma" && format != "gemma3") return false;
  for (std::size_t i = from; i < row["messages"].size(); ++i) {
    if (row["messages"][i]["role"] == "system") return true;
  }
  return false;
}

TEST_F(ChatFamilies, RenderGivesTheTextOfTheTemplate) {
  std::size_t rendered = 0;
  for (const auto& row : read_jsonl(testing::data("tokenizers/families.chat.jsonl"))) {
    const ChatFormat& format = chat_format(row["format"].get<std::string>());
    const auto render = [&] { return render_chat(format, row["messages"], options_of(row)); };
    if (row["text"].is_null() || drops_a_system_text(row)) {
      EXPECT_FALSE(error_of(render).empty()) << row.dump();
    } else {
      EXPECT_EQ(render(), row["text"].get<std::string>()) << row.dump();
      ++rendered;
    }
  }
  EXPECT_GT(rendered, 250U);
}

const OrderedJson hello = OrderedJson::parse(R"([{"role": "user", "content": "Hello"}])");

TEST(Chat, EveryModelsTemplateIsRecognised) {
  EXPECT_EQ(chat_format_of(qwen3()).name, "qwen3");
  EXPECT_EQ(chat_format_of(llama3()).name, "llama3_1");
  EXPECT_EQ(chat_format_of(opened("deepseek_v3")).name, "deepseek_v3");
  EXPECT_EQ(chat_format_of(opened("ggml/ggml-vocab-phi-3.gguf")).name, "phi3_early");
  if (smollm2() != nullptr) {
    EXPECT_EQ(chat_format_of(*smollm2()).name, "smollm2");
  }
  EXPECT_EQ(
      recognise_chat_format("{{ '<|start_header_id|>' }} Cutting Knowledge Date <|eot_id|>")->name,
      "llama3_1_dated");
}

TEST(Chat, AnotherTemplateIsNotTakenForAKnownOne) {
  EXPECT_FALSE(recognise_chat_format(""));
  EXPECT_FALSE(recognise_chat_format("<|im_start|>system\nYou are Captain, made elsewhere."));
  EXPECT_FALSE(recognise_chat_format("{% for message in messages %}[INST] {{ message }}"));
}

TEST(Chat, EveryFormatHasItsRow) {
  for (const auto& format : chat_formats()) {
    EXPECT_EQ(chat_format(format.name).name, format.name);
    EXPECT_FALSE(format.summary.empty());
    EXPECT_NE(render_chat(format, hello).find("Hello"), std::string::npos);
  }
}

std::string listed(const std::vector<std::string_view>& values) {
  std::vector<std::string> texts(values.begin(), values.end());
  return join(texts, ", ");
}

TEST(Chat, TheDocumentedTableIsTheTable) {
  std::map<std::string, std::vector<std::string>> rows;
  for (auto line : split(read_file(testing::data("../../docs/chat-formats.md")), '\n')) {
    line.erase(std::remove(line.begin(), line.end(), '`'), line.end());
    const auto cells = split(line, '|');
    if (cells.size() == 7) rows[std::string(trim(cells[1]))] = cells;
  }
  EXPECT_EQ(rows.size(), chat_formats().size() + 2) << "the formats, a header and a rule";
  for (const auto& format : chat_formats()) {
    ASSERT_TRUE(rows.contains(std::string(format.name))) << format.name;
    const auto& cells = rows[std::string(format.name)];
    EXPECT_EQ(trim(cells[3]), listed(format.roles)) << format.name;
    EXPECT_EQ(trim(cells[4]), listed(format.reads)) << format.name;
  }
}

TEST(Chat, WhatAFormatDoesNotReadIsSaid) {
  ChatOptions options;
  options.enable_thinking = true;
  options.date_string = "1 Jan 2025";
  options.tools = OrderedJson::parse(R"([{"type": "function"}])");
  const auto thoughtful =
      OrderedJson::parse(R"([{"role": "assistant", "content": "a", "reasoning_content": "b"}])");
  const auto said = unread_chat_options(chat_format("llama3_1"), thoughtful, options);
  ASSERT_EQ(said.size(), 4U);
  EXPECT_EQ(
      said[0],
      "chat format llama3_1 does not read enable_thinking, which has no effect; it is read by "
      "qwen3");
  EXPECT_NE(said[1].find("read by llama3_1_dated"), std::string::npos);
  EXPECT_NE(said[2].find("does not read tools"), std::string::npos);
  EXPECT_NE(said[3].find("does not read reasoning_content"), std::string::npos);
  EXPECT_EQ(unread_chat_options(chat_format("qwen3"), thoughtful, options).size(), 1U);
  EXPECT_TRUE(unread_chat_options(chat_format("llama3_1"), hello, {}).empty());
}

// What is documented as read makes a difference, and nothing else does.
TEST(Chat, EveryFormatReadsWhatItsRowSays) {
  const auto chat = OrderedJson::parse(
      R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
          {"role": "user", "content": "c"}])");
  ChatOptions changed[4];
  changed[0].add_generation_prompt = false;
  changed[1].enable_thinking = false;
  changed[2].date_string = "1 Jan 2025";
  changed[3].tools =
      OrderedJson::parse(R"([{"type": "function", "function": {"name": "f", "parameters": {}}}])");
  const std::string_view names[] = {"add_generation_prompt", "enable_thinking", "date_string",
                                    "tools"};
  for (const auto& format : chat_formats()) {
    for (int i = 0; i < 4; ++i) {
      const bool reads =
          std::find(format.reads.begin(), format.reads.end(), names[i]) != format.reads.end();
      EXPECT_EQ(render_chat(format, chat, changed[i]) != render_chat(format, chat), reads)
          << format.name << ": " << names[i];
    }
  }
}

TEST(Chat, CallsOfToolsAreRefusedWhereTheyWouldBeDropped) {
  const auto chat = OrderedJson::parse(
      R"([{"role": "user", "content": "a"},
          {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}])");
  const auto error = error_of([&] { return render_chat(chat_format("smollm2"), chat); });
  EXPECT_NE(error.find("message 1: chat format smollm2 does not write tool_calls"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("qwen3"), std::string::npos) << error;
}

TEST(Chat, MistralsCallsNeedTheirIds) {
  const auto render = [](const char* call, const char* result) {
    const auto chat = OrderedJson::parse(
        str_cat(R"([{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [)", call,
                R"(]}, {"role": "tool", "content": "1")", result, "}]"));
    return error_of([&] { return render_chat(chat_format("mistral_v3"), chat); });
  };
  const char* sound = R"({"function": {"name": "f", "arguments": {}}, "id": "abcdef123"})";
  EXPECT_NE(render(R"({"function": {"name": "f"}, "id": "abc"})", "").find("nine"),
            std::string::npos);
  EXPECT_NE(render(R"({"name": "f", "id": "abcdef123"})", "").find("function"), std::string::npos);
  EXPECT_NE(render(sound, "").find("tool_call_id"), std::string::npos);
}

TEST(Chat, MarkersAreTokensOfTheModelsTheyWereMadeFor) {
  using Markers = std::vector<std::string_view>;
  EXPECT_EQ(missing_chat_markers(chat_format("qwen3"), qwen3()), Markers());
  EXPECT_EQ(missing_chat_markers(chat_format("llama3_1"), llama3()), Markers());
  EXPECT_EQ(missing_chat_markers(chat_format("deepseek_r1"), opened("deepseek_v3")), Markers());
  EXPECT_EQ(missing_chat_markers(chat_format("phi3_early"), opened("ggml/ggml-vocab-phi-3.gguf")),
            Markers());
  EXPECT_EQ(missing_chat_markers(chat_format("llama2"), opened("llama2_spm/tokenizer.model")),
            Markers());
  EXPECT_EQ(missing_chat_markers(chat_format("chatml"), llama3()),
            (Markers{"<|im_start|>", "<|im_end|>"}));
  EXPECT_EQ(missing_chat_markers(chat_format("mistral_v3"), opened("llama2_spm/tokenizer.model")),
            (Markers{"[INST]", "[/INST]"}));
}

TEST(Chat, AnUnknownNameListsTheKnownOnes) {
  const auto message = error_of([] { return chat_format("qwen4").name; });
  EXPECT_NE(message.find("qwen4"), std::string::npos) << message;
  EXPECT_NE(message.find("llama3_1_dated"), std::string::npos) << message;
}

TEST(Chat, AnUnknownRoleOrMissingContentIsNamed) {
  const auto render = [](const char* messages) {
    return error_of(
        [&] { return render_chat(chat_format("llama3_1"), OrderedJson::parse(messages)); });
  };
  EXPECT_NE(render(R"([{"role": "user", "content": "a"}, {"role": "critic", "content": "b"}])")
                .find("message 1: role \"critic\""),
            std::string::npos);
  EXPECT_NE(render(R"([{"role": "user"}])").find("message 0: has no content"), std::string::npos);
  EXPECT_NE(render(R"([{"role": "user", "content": null}])").find("no content"), std::string::npos);
  EXPECT_NE(render(R"([{"role": "user", "content": [1]}])").find("is array"), std::string::npos);
  EXPECT_NE(render(R"([{"role": "user", "content": [1]}])").find("into one string"),
            std::string::npos);
  EXPECT_NE(render(R"([{"content": "a"}])").find("no role"), std::string::npos);
  EXPECT_NE(render(R"(["a"])").find("is string"), std::string::npos);
  EXPECT_NE(render(R"({"role": "user"})").find("should be an array"), std::string::npos);
  EXPECT_NE(render("[]").find("is empty"), std::string::npos);
}

TEST(Chat, BrokenToolsAreNamed) {
  const auto render = [](const char* message, const char* tools) {
    ChatOptions options;
    options.tools = OrderedJson::parse(tools);
    return error_of([&] {
      return render_chat(chat_format("qwen3"), OrderedJson::array({OrderedJson::parse(message)}),
                         options);
    });
  };
  EXPECT_NE(render(R"({"role": "user", "content": "a"})", "{\"a\": 1}").find("tools"),
            std::string::npos);
  for (const char* calls : {"1", "[1]", "[{}]", R"([{"name": "f"}])", R"([{"arguments": {}}])",
                            R"([{"function": {"name": 1, "arguments": {}}}])"}) {
    const auto message =
        str_cat(R"({"role": "assistant", "content": "", "tool_calls": )", calls, "}");
    EXPECT_NE(render(message.c_str(), "null").find("tool_calls"), std::string::npos) << calls;
  }
}

// str.strip() takes Unicode white space and the four separators of ASCII, no zero-width space.
TEST(Chat, LlamaTrimsAsPythonDoes) {
  const auto turn = [](const std::string& content) {
    OrderedJson messages = OrderedJson::array();
    messages.push_back({{"role", "user"}, {"content", content}});
    ChatOptions options;
    options.add_generation_prompt = false;
    return render_chat(chat_format("llama3_1"), messages, options);
  };
  const auto expected = [](const std::string& content) {
    return "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n" + content + "<|eot_id|>";
  };
  EXPECT_EQ(turn("\u00a0\u3000\x1c\x1f\u0085 \t\r\na\u2028b\u205f"), expected("a\u2028b"));
  EXPECT_EQ(turn("\u200b a \u200b"), expected("\u200b a \u200b"));
  EXPECT_EQ(turn(" \n "), expected(""));
}

// json.dumps(..., ensure_ascii=False) of Python 3.11.
TEST(Chat, ArgumentsOfToolsAreWrittenAsPythonWritesThem) {
  const auto call = [](const char* arguments) {
    OrderedJson messages = hello;
    messages.push_back({{"role", "assistant"}, {"content", ""}});
    messages[1]["tool_calls"].push_back(
        {{"name", "f"}, {"arguments", OrderedJson::parse(arguments)}});
    const auto text = render_chat(chat_format("qwen3"), messages);
    const std::string_view before = "\"arguments\": ";
    const auto start = text.find(before) + before.size();
    return text.substr(start, text.find("}\n</tool_call>") - start);
  };
  EXPECT_EQ(call(R"({"b":1,"a":[true,null,"é<'/\u001f\"\\"]})"),
            "{\"b\": 1, \"a\": [true, null, \"é<'/\\u001f\\\"\\\\\"]}");
  EXPECT_EQ(call("[1.0,1e15,1234567890123456.0,1e16,1e22,0.0001,0.00001,-0.0,2.5e-8,0.1]"),
            "[1.0, 1000000000000000.0, 1234567890123456.0, 1e+16, 1e+22, 0.0001, 1e-05, -0.0, "
            "2.5e-08, 0.1]");
  EXPECT_EQ(call("[{},[],-7,18446744073709551615]"), "[{}, [], -7, 18446744073709551615]");
}

}  // namespace
}  // namespace onset::testing
