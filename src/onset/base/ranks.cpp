#include "onset/base/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <utility>

#include "onset/base/error.h"

#ifdef ONSET_MPI
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif

namespace onset {
namespace {

// What Open MPI, MPICH and Slurm tell the processes that they start: how many they are.
int started_together() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (const char* size = std::getenv(name)) return std::atoi(size);
  }
  return 1;
}

}  // namespace

#ifdef ONSET_MPI

namespace {

// MPI counts in int.
constexpr std::size_t bytes_at_once = std::size_t{1} << 30;

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  throw resource_error(str_cat(what, ": ", text));
}

// What one call sums: MPI counts in int, and keeps a copy of as much.
constexpr std::size_t bucket_bytes = std::size_t{32} << 20;

template <class Number>
void add_over_ranks(std::span<Number> numbers, MPI_Datatype type) {
  constexpr std::size_t at_once = bucket_bytes / sizeof(Number);
  for (std::size_t first = 0; first < numbers.size(); first += at_once) {
    const std::size_t count = std::min(at_once, numbers.size() - first);
    check(MPI_Allreduce(MPI_IN_PLACE, numbers.data() + first, static_cast<int>(count), type,
                        MPI_SUM, MPI_COMM_WORLD),
          "the ranks cannot add up their numbers");
  }
}

bool is_running() {
  int begun = 0;
  int ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  return begun != 0 && ended == 0;
}

}  // namespace

struct Ranks::Membership {
  Membership() = default;
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;
  ~Membership() {
    if (std::uncaught_exceptions() == exceptions && is_running()) MPI_Finalize();
  }
  int exceptions = std::uncaught_exceptions();
};

Ranks Ranks::join() {
  Ranks ranks;
  if (started_together() <= 1) return ranks;
  int level = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI does not start");
  ranks.membership_ = std::make_unique<Membership>();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  check(MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank_), "MPI does not say which rank this is");
  check(MPI_Comm_size(MPI_COMM_WORLD, &ranks.count_), "MPI does not say how many ranks there are");
  return ranks;
}

std::vector<std::string> Ranks::gather(const std::string& mine) const {
  if (count_ == 1) return {mine};
  const auto mine_size = static_cast<unsigned long long>(mine.size());
  std::vector<unsigned long long> sizes(static_cast<std::size_t>(count_));
  check(MPI_Allgather(&mine_size, 1, MPI_UNSIGNED_LONG_LONG, sizes.data(), 1,
                      MPI_UNSIGNED_LONG_LONG, MPI_COMM_WORLD),
        "the ranks cannot tell each other their results");
  std::vector<std::string> all;
  for (int root = 0; root < count_; ++root) {
    std::string text = root == rank_ ? mine : std::string(sizes[static_cast<std::size_t>(root)], 0);
    for (std::size_t at = 0; at < text.size(); at += bytes_at_once) {
      const std::size_t count = std::min(bytes_at_once, text.size() - at);
      check(MPI_Bcast(text.data() + at, static_cast<int>(count), MPI_CHAR, root, MPI_COMM_WORLD),
            "the ranks cannot tell each other their results");
    }
    all.push_back(std::move(text));
  }
  return all;
}

void Ranks::add(std::span<float> numbers) const {
  if (count_ > 1) add_over_ranks(numbers, MPI_FLOAT);
}

void Ranks::add(std::span<double> numbers) const {
  if (count_ > 1) add_over_ranks(numbers, MPI_DOUBLE);
}

std::optional<RankPlace> place_among_ranks() {
  if (!is_running()) return std::nullopt;
  RankPlace place;
  MPI_Comm_rank(MPI_COMM_WORLD, &place.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &place.count);
  return place;
}

void end_all_ranks(int exit_code) {
  if (is_running()) MPI_Abort(MPI_COMM_WORLD, exit_code);
}

#else

struct Ranks::Membership {};

Ranks Ranks::join() {
  if (started_together() > 1) {
    throw resource_error("this build of onset has no MPI, and mpirun started several of it",
                         "build it with libopenmpi-dev installed, or start it by itself");
  }
  return {};
}

std::vector<std::string> Ranks::gather(const std::string& mine) const { return {mine}; }

void Ranks::add(std::span<float>) const {}

void Ranks::add(std::span<double>) const {}

std::optional<RankPlace> place_among_ranks() { return std::nullopt; }

void end_all_ranks(int) {}

#endif

std::optional<int> Ranks::first_that_differs(const std::string& mine) const {
  const std::vector<std::string> all = gather(mine);
  const auto other =
      std::find_if(all.begin(), all.end(), [&](const auto& text) { return text != all.front(); });
  if (other == all.end()) return std::nullopt;
  return static_cast<int>(other - all.begin());
}

Ranks::Ranks() = default;
Ranks::Ranks(Ranks&&) noexcept = default;
Ranks& Ranks::operator=(Ranks&&) noexcept = default;
Ranks::~Ranks() = default;

}  // namespace onset
