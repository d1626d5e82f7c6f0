// Bytes per second of encode() and decode() and the time to open, on one thread:
//   tokenizer_bench TOKENIZER TEXT_FILE [PASSES]
// The text is encoded a line at a time, as people feed data sets, and in one piece.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "onset/base/file.h"
#include "onset/tokenizer/tokenizer.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

// The median of `passes`, and the first, which meets an empty cache.
void report(const char* what, std::size_t bytes, int passes, const std::function<void()>& work) {
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(passes));
  for (int pass = 0; pass < passes; ++pass) times.push_back(seconds_of(work));
  const double first = times.front();
  std::sort(times.begin(), times.end());
  const double megabytes = static_cast<double>(bytes) / 1e6;
  std::printf("%-24s %8.1f MB/s (first pass %.1f)\n", what, megabytes / times[times.size() / 2],
              megabytes / first);
}

void measure(const std::string& path, const std::string& text, int passes) {
  const auto open = [&] { onset::Tokenizer::open(path); };
  const double first = seconds_of(open);
  const double later = std::min(seconds_of(open), seconds_of(open));
  std::printf("%-24s %8.1f ms (first %.1f)\n", "open", later * 1e3, first * 1e3);
  const auto tokenizer = onset::Tokenizer::open(path);
  const auto lines = lines_of(text);
  std::size_t tokens = 0;
  report("encode, line by line", text.size(), passes, [&] {
    tokens = 0;
    for (const auto line : lines) tokens += tokenizer.encode(line).size();
  });
  std::vector<onset::TokenId> ids;
  report("encode, one piece", text.size(), passes, [&] { ids = tokenizer.encode(text); });
  std::string decoded;
  report("decode", text.size(), passes, [&] { decoded = tokenizer.decode(ids); });
  std::printf("%zu bytes, %zu lines, %zu tokens line by line, %zu in one piece\n", text.size(),
              lines.size(), tokens, ids.size());
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: tokenizer_bench TOKENIZER TEXT_FILE [PASSES]\n");
    return 2;
  }
  try {
    const int passes = count > 3 ? std::max(std::atoi(arguments[3]), 1) : 5;
    measure(arguments[1], onset::read_file(arguments[2]), passes);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tokenizer_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
