#include "failure.h"

#include <exception>
#include <new>
#include <string_view>

#include "onset/base/error.h"
#include "output.h"

namespace onset::app {

Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.what(), error.hint(), error.kind() == ErrorKind::usage ? 2 : 1};
  } catch (const std::bad_alloc&) {
    return {"out of memory", "use a smaller model or shorter prompts, or raise the memory limit"};
  } catch (const std::exception& error) {
    // libtorch's messages carry a stack trace after their first line.
    const std::string_view text(error.what());
    return {std::string(text.substr(0, text.find('\n'))), ""};
  } catch (...) {
    return {"an unknown error", ""};
  }
}

void report(const Failure& failure) {
  const std::string hint = failure.hint.empty() ? "" : failure.hint + "\n";
  write_error_text("onset: " + failure.message + "\n" + hint);
}

}  // namespace onset::app
