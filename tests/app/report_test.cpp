// onset scan --report: the page as a file, wrong uses, and, where Chromium is, the page in a
// browser.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "app/program.h"
#include "onset/base/error.h"
#include "onset/base/file.h"

namespace onset::testing {
namespace {

const std::vector<std::string> planted{"--ids", "1,5,9,4,7"};

std::vector<std::string> call(const std::string& report) {
  std::vector<std::string> arguments{"scan", model_path("llama_me"), "--report", report};
  arguments.insert(arguments.end(), planted.begin(), planted.end());
  return arguments;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(Report, IsWrittenBesideTheTable) {
  const TemporaryFolder folder;
  const auto path = (folder.path() / "a.html").string();
  const auto outcome = run_onset(call(path));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto plain = run_onset({"scan", model_path("llama_me"), planted[0], planted[1]});
  EXPECT_EQ(outcome.out, plain.out);
  EXPECT_TRUE(outcome.error.starts_with("onset: report written to " + path + " ("))
      << outcome.error;
  auto quiet = call(path);
  quiet.emplace_back("--quiet");
  EXPECT_EQ(run_onset(quiet).error, "");
  const auto html = read_file(path);
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(html.ends_with("</html>\n"));
  EXPECT_NE(html.find("Massive activations are born in layer 1 (block 2 of 3)"), std::string::npos);
  EXPECT_LT(html.size(), 8'000'000U);
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a.html"});
}

TEST(Report, GoesWithJsonAndCsv) {
  const TemporaryFolder folder;
  for (const std::string form : {"--json", "--csv"}) {
    auto arguments = call((folder.path() / (form + ".html")).string());
    arguments.push_back(form);
    const auto outcome = run_onset(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    EXPECT_TRUE(std::filesystem::exists(folder.path() / (form + ".html")));
    if (form == "--json") {
      EXPECT_EQ(outcome.json()["me_layer"], 1);
    }
  }
}

TEST(Report, TopOfTheListsDoesNotMatter) {
  const TemporaryFolder folder;
  auto arguments = call((folder.path() / "a.html").string());
  arguments.insert(arguments.end(), {"--top", "0"});
  EXPECT_EQ(run_onset(arguments).code, 0);
}

TEST(Report, WrongUseIsRefusedBeforeTheWork) {
  const TemporaryFolder folder;
  const auto path = (folder.path() / "a.html").string();
  expect_refusal(run_onset({"scan", model_path("llama_me"), model_path("llama"), "--report", path}),
                 2, "one model");
  expect_refusal(run_onset(call("-")), 2, "--report needs a file");
  expect_refusal(run_onset(call("")), 2, "--report");
  auto same = call(path);
  same.insert(same.end(), {"-o", (folder.path() / "." / "a.html").string()});
  expect_refusal(run_onset(same), 2, "same file");
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(Report, OutputsThatFailAreErrors) {
  const TemporaryFolder folder;
  expect_refusal(run_onset(call((folder.path() / "missing" / "a.html").string())), 1,
                 "cannot write");
  expect_refusal(run_onset(call(folder.path().string())), 1, "is a folder");
  if (std::filesystem::exists("/dev/full")) {
    expect_refusal(run_onset(call("/dev/full")), 1, "No space left");
  }
  // A scan that fails leaves no page, and an older one as it was.
  const auto old = folder.write("old.html", "old").string();
  auto failing = call(old);
  failing.insert(failing.end(), {"--ids", "1,999999"});
  EXPECT_EQ(run_onset(failing).code, 1);
  EXPECT_EQ(read_file(old), "old");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"old.html"});
}

// ---- in a browser

std::string browser() {
  for (const auto* path :
       {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return {};
}

// What Chromium says on its console, then the document as its scripts left it. Paths hold no
// quotes: they are a temporary folder's.
std::string opened(const std::string& page, const std::filesystem::path& profile) {
  const auto command =
      str_cat("timeout 100 ", browser(),
              " --headless=new --no-sandbox --use-gl=angle --use-angle=swiftshader"
              " --enable-unsafe-swiftshader --user-data-dir='",
              profile.string(),
              "' --enable-logging=stderr --v=0 --virtual-time-budget=5000 --dump-dom 'file://",
              page, "' 2>&1");
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string text;
  std::array<char, 65536> buffer{};
  while (const auto got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), got);
  }
  ::pclose(pipe);
  return text;
}

class ReportInBrowser : public ::testing::Test {
 protected:
  void SetUp() override {
    if (browser().empty()) GTEST_SKIP() << "no Chromium here: the page is not opened";
  }
  // Every figure is drawn in all its views without an error on the console.
  static void expect_drawn(const std::vector<std::string>& arguments,
                           const std::filesystem::path& folder) {
    const auto page = (folder / "page.html").string();
    auto with_page = arguments;
    with_page.insert(with_page.end(), {arguments.front() == "report" ? "-o" : "--report", page});
    const auto outcome = run_onset(with_page);
    ASSERT_EQ(outcome.code, 0) << outcome.error;
    // Every button once, one after the other: each view and both themes are drawn.
    auto html = read_file(page);
    html.insert(html.rfind("</body>"), R"(<script>
      setTimeout(() => {
        for (const button of document.querySelectorAll("button")) button.click();
        for (const list of document.querySelectorAll("select")) {
          for (let i = 0; i < list.options.length; ++i) {
            list.selectedIndex = i;
            list.dispatchEvent(new Event("change"));
          }
        }
        document.documentElement.dataset.clicked = "true";
      }, 1500);
    </script>)");
    write_file_atomically(page, html);
    const auto dom = opened(page, folder / "profile");
    const auto console = dom.substr(0, dom.find("<!DOCTYPE"));
    EXPECT_NE(dom.find("data-ready=\"true\""), std::string::npos) << console;
    EXPECT_NE(dom.find("data-clicked=\"true\""), std::string::npos) << console;
    EXPECT_NE(dom.find("data-errors=\"0\""), std::string::npos) << console;
    for (const auto* sign : {"Uncaught", "Refused to", "Content Security Policy", "SyntaxError"}) {
      EXPECT_EQ(console.find(sign), std::string::npos) << console;
    }
  }
};

TEST_F(ReportInBrowser, PlantedModelIsDrawn) {
  const TemporaryFolder folder;
  expect_drawn({"scan", model_path("llama_me"), "--ids", "1,5,9,4,7", "--ids", "1,2"},
               folder.path());
}

TEST_F(ReportInBrowser, OneTokenWithoutMeLayerIsDrawn) {
  const TemporaryFolder folder;
  expect_drawn({"scan", model_path("llama"), "--ids", "3"}, folder.path());
}

TEST_F(ReportInBrowser, AllPartsOfTwoModelsAreDrawn) {
  const TemporaryFolder folder;
  expect_drawn(
      {"report", model_path("llama_me"), model_path("mixtral"), "--ids", "1,5,9,4,7", "--ids",
       "3,5,9", "--text-ids", "1,5,9,4,7,3,2,8,10,11,12,13,14,15,16,17,18,19,20,21,22,23"},
      folder.path());
}

TEST_F(ReportInBrowser, MarkupInAPromptStaysText) {
  if (demo_model().empty()) GTEST_SKIP() << "scripts/setup did not fetch the model";
  const TemporaryFolder folder;
  expect_drawn({"scan", demo_model().string(), "--prompt",
                "</script><!--<script>throw 1</script><img src=x onerror=\"throw 2\">&amp; <b>$x$"},
               folder.path());
}

}  // namespace
}  // namespace onset::testing
