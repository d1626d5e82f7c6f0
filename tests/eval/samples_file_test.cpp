// Lines of samples_*.jsonl as lm-evaluation-harness and onset write them.

#include "onset/eval/samples_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "onset/eval/sample_answer.h"
#include "support/support.h"

namespace onset {
namespace {

using testing::TemporaryFolder;

TEST(SamplesFile, ScoresAreNumbersBooleansAndPairs) {
  const TemporaryFolder folder;
  const auto path = folder.write(
      "samples_t.jsonl", R"({"doc_id": 4, "filter": "strict", "doc_hash": "d", "prompt_hash": "p",)"
                         R"( "target": "7", "metrics": ["exact_match", "ok", "ppl", "words"],)"
                         R"( "exact_match": 0.5, "ok": true, "ppl": [-12.5, 6], "words": ["a"]})"
                         "\n\n"
                         R"({"doc_id": 2, "metrics": ["exact_match"], "exact_match": NaN,)"
                         R"( "resps": ["NaN is \" no number, Infinity"]})"
                         "\n");
  const SamplesFile file = read_samples(path, "t");
  ASSERT_EQ(file.samples.size(), 2U);
  EXPECT_EQ(file.metrics, (std::vector<std::string>{"exact_match", "ok", "ppl"}));
  const Sample& first = file.samples[0];
  EXPECT_EQ(first.doc, 4);
  EXPECT_EQ(first.filter, "strict");
  EXPECT_EQ(first.doc_hash, "d");
  EXPECT_EQ(first.prompt_hash, "p");
  EXPECT_EQ(first.scores.at("exact_match").value, 0.5);
  EXPECT_EQ(first.scores.at("ok").value, 1);
  EXPECT_TRUE(first.scores.at("ppl").is_pair);
  EXPECT_EQ(first.scores.at("ppl").value, -12.5);
  EXPECT_EQ(first.scores.at("ppl").weight, 6);
  EXPECT_EQ(first.scores.count("words"), 0U);
  const Sample& second = file.samples[1];
  EXPECT_EQ(second.filter, "none");
  EXPECT_EQ(second.line, 3);
  EXPECT_TRUE(std::isnan(second.scores.at("exact_match").value));
  EXPECT_EQ(sample_line(file, second).at("resps").at(0), "NaN is \" no number, Infinity");
}

TEST(SamplesFile, WithoutAListMetricsAreTheNumbersThatAreNoLayout) {
  const TemporaryFolder folder;
  const auto path = folder.write(
      "samples_t.jsonl",
      R"({"doc_id": 0, "target": 3, "acc": 1.0, "acc_norm": 0, "truncated": false, "note": "x"})");
  const SamplesFile file = read_samples(path, "t");
  EXPECT_EQ(file.metrics, (std::vector<std::string>{"acc", "acc_norm"}));
}

TEST(SamplesFile, FaultsNameFileAndLine) {
  const TemporaryFolder folder;
  const auto fault = [&](const std::string& content) {
    const auto path = folder.write("samples_t.jsonl", content);
    return testing::error_of([&] { static_cast<void>(read_samples(path, "t")); });
  };
  const std::string good = "{\"doc_id\": 0, \"acc\": 1}\n";
  EXPECT_NE(fault(good + "{\"doc_id\": 1, \"acc\"").find("samples_t.jsonl, line 2: not valid JSON"),
            std::string::npos);
  EXPECT_NE(fault(good + "\n[1]\n").find("line 3: a line of samples should be an object"),
            std::string::npos);
  EXPECT_NE(fault("{\"acc\": 1}\n").find("line 1: no \"doc_id\""), std::string::npos);
  EXPECT_NE(fault(good + good).find("line 2: document 0 is there twice"), std::string::npos);
  EXPECT_NE(fault("{\"doc_id\": \"x\"}\n").find("line 1: key \"doc_id\" should be an integer"),
            std::string::npos);
  EXPECT_NE(fault("").find("no samples in it"), std::string::npos);
  EXPECT_NE(fault("\n\n").find("no samples in it"), std::string::npos);
}

TEST(SampleAnswer, ChoicesGoByTheMetric) {
  // Log-likelihoods -4 and -6 over texts of 2 and 6 characters: -2 and -1 a character. The first
  // text is 2 characters in 6 bytes: -.67 a byte against -1.
  const Json line = Json::parse(
      R"({"target": "1", "filtered_resps": [["-4.0", "False"], ["-6.0", "False"]], "arguments": {)"
      R"("gen_args_0": {"arg_0": "Shot one.\n\nQuestion: why?\nAnswer:", "arg_1": " \u65e5\u672c"},)"
      R"("gen_args_1": {"arg_0": "x", "arg_1": " abcdef"}}})");
  EXPECT_EQ(sample_answer(line, "acc").answer, "(0) \u65e5\u672c");
  EXPECT_EQ(sample_answer(line, "acc_norm").answer, "(1) abcdef");
  EXPECT_EQ(sample_answer(line, "acc_bytes").answer, "(0) \u65e5\u672c");
  EXPECT_EQ(sample_answer(line, "acc").target, "(1) abcdef");
  EXPECT_EQ(sample_answer(line, "acc").question, "Question: why?\nAnswer:");
}

TEST(SampleAnswer, GeneratedTextIsTheFiltersAndMissingPartsAreEmpty) {
  const Json line = Json::parse(
      R"({"target": "18", "filtered_resps": ["17"], "arguments": [["Q: 9 + 9?", {"until": []}]]})");
  const auto answer = sample_answer(line, "exact_match");
  EXPECT_EQ(answer.answer, "17");
  EXPECT_EQ(answer.target, "18");
  EXPECT_EQ(answer.question, "Q: 9 + 9?");
  const auto nothing = sample_answer(Json::parse("{\"doc_id\": 1}"), "acc");
  EXPECT_EQ(nothing.answer, "");
  EXPECT_EQ(nothing.target, "");
  EXPECT_EQ(nothing.question, "");
}

}  // namespace
}  // namespace onset
