// The page of onset serve in a browser: two answers, the sink of each, and what it says of
// failures.
#include <csignal>

#include "app/background.h"
#include "app/browser.h"
#include "app/program.h"

namespace onset::testing {
namespace {

class ServePage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (browser_path().empty()) GTEST_SKIP() << "no Chromium here: the page is not opened";
    if (demo_model().empty()) GTEST_SKIP() << "the demonstration model is not there";
  }
  static std::string address_of(BackgroundProgram& program) {
    const int port = serving_port(program);
    return "http://127.0.0.1:" + std::to_string(port) + "/";
  }
  static OrderedJson text_of(Browser& browser, const std::string& selector) {
    return browser.value("document.querySelector('" + selector + "').textContent");
  }
};

TEST_F(ServePage, ShowsBothAnswersAndTheirSinks) {
  BackgroundProgram program({"serve", demo_model().string(), "--port", "0"});
  const auto address = address_of(program);
  Browser browser;
  for (const int width : {1200, 390}) {
    browser.open(address + "#ask=What%20is%20the%20capital%20of%20France%3F&tokens=12", width, 900);
    ASSERT_TRUE(browser.wait_for("document.documentElement.dataset.answered"));
    for (const auto* side : {"#plain", "#masked"}) {
      const std::string text = text_of(browser, std::string(side) + " .text");
      EXPECT_NE(text.find("Paris"), std::string::npos) << text;
      const std::string sink = text_of(browser, std::string(side) + " .sink");
      EXPECT_NE(sink.find('%'), std::string::npos) << sink;
    }
    const std::string mask = text_of(browser, "#masked .status");
    EXPECT_NE(mask.find("layers 12 to 29"), std::string::npos) << mask;
    EXPECT_EQ(browser.value("document.querySelectorAll('#plot path').length"), 2);
    // The mask begins where a rectangle does, and nothing is wider than the window.
    EXPECT_EQ(browser.value("document.querySelectorAll('#plot rect').length"), 1);
    EXPECT_EQ(browser.value("document.documentElement.scrollWidth <= innerWidth"), true) << width;
  }
  EXPECT_TRUE(browser.errors().empty()) << browser.errors().front();
}

TEST_F(ServePage, SaysWhatFailed) {
  BackgroundProgram program({"serve", demo_model().string(), "--port", "0"});
  const auto address = address_of(program);
  Browser browser;
  browser.open(address + R"(#ask=Hi&tokens=2&mask={"k":0})", 800, 900);
  ASSERT_TRUE(browser.wait_for("document.documentElement.dataset.answered"));
  const std::string failed = text_of(browser, "#masked .text");
  EXPECT_NE(failed.find("k is 0"), std::string::npos) << failed;
  EXPECT_EQ(browser.value("document.getElementById('specLabel').hidden"), false);
  EXPECT_EQ(text_of(browser, "#masked .status"), "failed");
  EXPECT_NE(text_of(browser, "#plain .sink"), "");
  browser.open(address + R"(?again#ask=Hi&tokens=2&mask={"k":)", 800, 900);
  ASSERT_TRUE(browser.wait_for("document.documentElement.dataset.answered"));
  const std::string broken = text_of(browser, "#masked .text");
  EXPECT_NE(broken.find("The mask is no JSON"), std::string::npos) << broken;
}

TEST_F(ServePage, TheMaskIsChosenFromAList) {
  BackgroundProgram program({"serve", demo_model().string(), "--port", "0"});
  const auto address = address_of(program);
  Browser browser;
  browser.open(address + "#ask=Hi&tokens=2&mask=off", 800, 900);
  ASSERT_TRUE(browser.wait_for("document.documentElement.dataset.answered"));
  EXPECT_EQ(browser.value("document.getElementById('specLabel').hidden"), true);
  const std::string status = text_of(browser, "#masked .status");
  EXPECT_TRUE(status.starts_with("no mask")) << status;
  EXPECT_EQ(text_of(browser, "#masked .text"), text_of(browser, "#plain .text"));
}

TEST_F(ServePage, AsksForTheKey) {
  BackgroundProgram program({"serve", demo_model().string(), "--port", "0"},
                            {"ONSET_API_KEY=secret"});
  Browser browser;
  browser.open(address_of(program), 800, 900);
  ASSERT_TRUE(browser.wait_for("!document.getElementById('keyLabel').hidden"));
  static_cast<void>(
      browser.value("document.getElementById('key').value = 'secret';"
                    "document.getElementById('tokens').value = 2;"
                    "document.getElementById('form').requestSubmit()"));
  ASSERT_TRUE(browser.wait_for("document.documentElement.dataset.answered"));
  EXPECT_NE(text_of(browser, "#plain .text"), "");
}

}  // namespace
}  // namespace onset::testing
