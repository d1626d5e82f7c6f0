#include "app/browser.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include "onset/base/error.h"

namespace onset::testing {

std::string browser_path() {
  for (const auto* path :
       {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return {};
}

Browser::Browser() {
  std::array<int, 2> down{};
  std::array<int, 2> up{};
  if (::pipe(down.data()) != 0 || ::pipe(up.data()) != 0) throw resource_error("no pipe");
  const std::string path = browser_path();
  const std::string folder = "--user-data-dir=" + profile_.path().string();
  child_ = ::fork();
  if (child_ == 0) {
    ::setpgid(0, 0);
    // Chromium reads at 3 and writes at 4.
    const int in = ::fcntl(down[0], F_DUPFD, 20);
    const int out = ::fcntl(up[1], F_DUPFD, 20);
    ::dup2(in, 3);
    ::dup2(out, 4);
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
    ::execl(path.c_str(), path.c_str(), "--headless=new", "--no-sandbox", "--disable-gpu",
            folder.c_str(), "--remote-debugging-pipe", nullptr);
    ::_exit(127);
  }
  ::close(down[0]);
  ::close(up[1]);
  to_ = down[1];
  from_ = up[0];
}

Browser::~Browser() {
  ::close(to_);
  ::close(from_);
  ::kill(-child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

OrderedJson Browser::call(const std::string& method, const OrderedJson& parameters,
                          const std::string& session) {
  OrderedJson message{{"id", ++number_}, {"method", method}, {"params", parameters}};
  if (!session.empty()) message["sessionId"] = session;
  const std::string text = message.dump() + '\0';
  EXPECT_EQ(::write(to_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  std::array<char, 65536> buffer{};
  for (;;) {
    const auto end = read_.find('\0');
    if (end == std::string::npos) {
      pollfd entry{from_, POLLIN, 0};
      const bool there = ::poll(&entry, 1, 60000) > 0;
      const ssize_t count = there ? ::read(from_, buffer.data(), buffer.size()) : 0;
      if (count <= 0) throw resource_error("the browser does not answer");
      read_.append(buffer.data(), static_cast<std::size_t>(count));
      continue;
    }
    const auto answer = OrderedJson::parse(read_.substr(0, end));
    read_.erase(0, end + 1);
    const std::string event = answer.value("method", "");
    const bool logged = event == "Log.entryAdded" && answer["params"]["entry"]["level"] == "error";
    if (event == "Runtime.exceptionThrown" || logged) errors_.push_back(answer["params"].dump());
    if (answer.value("id", 0) == number_) {
      EXPECT_FALSE(answer.contains("error")) << answer.dump();
      return answer.value("result", OrderedJson::object());
    }
  }
}

void Browser::open(const std::string& address, int width, int height) {
  const auto target = call("Target.createTarget", {{"url", "about:blank"}})["targetId"];
  session_ = call("Target.attachToTarget", {{"targetId", target}, {"flatten", true}})["sessionId"];
  for (const auto* domain : {"Runtime.enable", "Log.enable"}) {
    static_cast<void>(call(domain, OrderedJson::object(), session_));
  }
  static_cast<void>(call(
      "Emulation.setDeviceMetricsOverride",
      {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", width < 500}},
      session_));
  static_cast<void>(call("Page.navigate", {{"url", address}}, session_));
}

OrderedJson Browser::value(const std::string& expression) {
  const auto result = call("Runtime.evaluate", {{"expression", expression}}, session_)["result"];
  return result.value("value", OrderedJson(nullptr));
}

bool Browser::wait_for(const std::string& expression) {
  for (int i = 0; i < 600; ++i) {
    if (value("Boolean(" + expression + ")") == true) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

}  // namespace onset::testing
