// onset serve as a process: its readiness line, its end, and what it refuses to begin.
#include <csignal>

#include "app/background.h"
#include "app/program.h"

namespace onset::testing {
namespace {

class Serve : public ::testing::Test {
 protected:
  void SetUp() override {
    if (demo_model().empty()) GTEST_SKIP() << "the demonstration model is not there";
    model = demo_model().string();
  }
  std::string model;
};

TEST_F(Serve, AnswersAndEndsWithZeroOnBothSignals) {
  for (const int signal : {SIGTERM, SIGINT}) {
    BackgroundProgram program({"serve", model, "--port", "0", "--threads", "1"});
    const int port = serving_port(program);
    ASSERT_GT(port, 0);
    EXPECT_NE(ask_server(port, "/health").find("\"ok\""), std::string::npos);
    const auto answer =
        ask_server(port, "/v1/completions",
                   R"({"prompt": "The capital of France is", "max_tokens": 1, "temperature": 0})");
    EXPECT_NE(answer.find("\" Paris\""), std::string::npos) << answer;
    program.signal(signal);
    EXPECT_EQ(program.wait(), 0);
  }
}

TEST_F(Serve, TheKeyMayComeFromTheEnvironment) {
  BackgroundProgram program({"serve", model, "--port", "0", "--alias", "smol"},
                            {"ONSET_API_KEY=secret"});
  const int port = serving_port(program);
  EXPECT_NE(ask_server(port, "/v1/models").find(" 401 "), std::string::npos);
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(), 0);
}

TEST_F(Serve, APortThatIsTakenIsSaid) {
  BackgroundProgram program({"serve", model, "--port", "0"});
  const int port = serving_port(program);
  const auto outcome = run_onset({"serve", model, "--quiet", "--port", std::to_string(port)});
  expect_refusal(outcome, 1, "cannot listen on 127.0.0.1");
}

TEST(ServeOptions, WrongUse) {
  expect_refusal(run_onset({"serve"}), 2, "needs a model");
  expect_refusal(run_onset({"serve", "x", "--port", "70000"}), 2, "--port");
  expect_refusal(run_onset({"serve", "x", "--api-key", ""}), 2, "--api-key");
  expect_refusal(run_onset({"serve", model_path("llama_me")}), 1, "tokenizer");
}

}  // namespace
}  // namespace onset::testing
