// Processes that mpirun started together and that share one piece of work. A process started by
// itself is alone, which costs nothing; so is one of a build without MPI.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace onset {

class Ranks {
 public:
  // This process alone.
  Ranks();
  // Joins the others where mpirun or srun started this process; else alone. Once a process, on the
  // thread that calls gather(). Throws a resource error where there are others and MPI does not
  // start, or this build has no MPI: each would do all of the work.
  [[nodiscard]] static Ranks join();
  Ranks(Ranks&&) noexcept;
  Ranks& operator=(Ranks&&) noexcept;
  // Waits for the others, unless an exception is on its way: see end_all_ranks().
  ~Ranks();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int count() const { return count_; }
  // Whether this is the one that prints and writes.
  [[nodiscard]] bool is_first() const { return rank_ == 0; }

  // Of all ranks, in their order, to all of them. All must call it as often as each other.
  [[nodiscard]] std::vector<std::string> gather(const std::string& mine) const;

  // The first rank whose text is not the first rank's; all must call it as often as each other.
  [[nodiscard]] std::optional<int> first_that_differs(const std::string& mine) const;

  // Replaces each number by its sum over the ranks, in parts; the same bits on every rank. All must
  // call it with as many numbers.
  void add(std::span<float> numbers) const;
  void add(std::span<double> numbers) const;

 private:
  struct Membership;
  std::unique_ptr<Membership> membership_;  // null: alone
  int rank_ = 0;
  int count_ = 1;
};

// Which of the processes that joined this one is.
struct RankPlace {
  int rank = 0;
  int count = 1;
};

// Nothing where this process is alone, or has left the others.
[[nodiscard]] std::optional<RankPlace> place_among_ranks();

// Ends the other ranks too, and this process with the exit code: they would wait for this one for
// ever. Does nothing in a process that is alone. For a program whose work failed, after it has said
// why.
void end_all_ranks(int exit_code);

}  // namespace onset
