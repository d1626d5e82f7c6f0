#include "failure.h"

#include <cerrno>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "onset/base/error.h"
#include "output.h"
#include "text.h"

namespace onset::app {
namespace {

Failure out_of_memory() {
  return {"out of memory", "use a smaller model or shorter prompts, or raise the memory limit"};
}

// libtorch's allocator throws no bad_alloc: "[enforce fail at alloc_cpu.cpp:..]
// DefaultCPUAllocator: can't allocate memory: you tried to allocate .. bytes".
bool is_allocation_text(std::string_view text) {
  return text.find("DefaultCPUAllocator") != std::string_view::npos ||
         text.find("alloc_cpu.cpp") != std::string_view::npos;
}

}  // namespace

Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.what(), error.hint(), error.kind() == ErrorKind::usage ? 2 : 1};
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      return {str_cat("the system gives no further thread: ", error.code().message()),
              "use fewer threads, for example --threads 1, or raise the limit of processes"};
    }
    return {error.what(), ""};
  } catch (const std::exception& error) {
    // libtorch's messages carry a stack trace after their first line.
    const std::string_view text(error.what());
    if (is_allocation_text(text)) return out_of_memory();
    return {std::string(text.substr(0, text.find('\n'))), ""};
  } catch (...) {
    return {"an unknown error", ""};
  }
}

void report(const Failure& failure) {
  const auto hint = failure.hint.empty() ? std::string() : message_text(failure.hint) + "\n";
  write_error_text("onset: " + message_text(failure.message) + "\n" + hint);
}

void report_end_of_ranks(const Failure& failure, const RankPlace& place) {
  write_error_text(
      str_cat("onset: rank ", place.rank, " of ", place.count,
              " has failed and ends the others (what mpirun adds below follows from it; "
              "mpirun -q leaves that out): ",
              message_text(failure.message), "\n"));
}

}  // namespace onset::app
