// What a model answered, kept on disk by content: a run that was killed goes on where it was, and
// an ablation finds its baseline. Torch-free.
//
// One file for each scope (model, mask, computation): answers-SCOPE.RANK.jsonl. Its first line says
// for people what it is of; each further line is one batch, {"answers":[[key, value],..]}, appended
// by one write and synced. A line that is not whole (the process was killed, the disk was full)
// counts as not written, so that a batch is there as a whole or not at all. Several processes may
// use one folder: each appends to the file of its rank, all read all files of the scope.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onset/base/json.h"

namespace onset {

class ResultCache {
 public:
  using Entry = std::pair<std::string, Json>;

  // An empty `folder` keeps answers in memory alone. Makes the folder. Throws a resource error
  // where it or the file cannot be made, or cannot be read.
  ResultCache(const std::filesystem::path& folder, const std::string& scope,
              const OrderedJson& about, int rank = 0);
  ~ResultCache();
  ResultCache(const ResultCache&) = delete;
  ResultCache& operator=(const ResultCache&) = delete;

  // nullptr where it is not known.
  [[nodiscard]] const Json* find(const std::string& key) const;
  // Throws std::logic_error where it is not known.
  [[nodiscard]] const Json& at(const std::string& key) const;
  // Writes the batch, then knows it. Throws a resource error where it cannot be written.
  void put(const std::vector<Entry>& batch);
  // Lines of the files that are neither batches nor the beginning of one, as a kill leaves it.
  [[nodiscard]] std::int64_t foreign_lines() const { return foreign_lines_; }
  // Knows them without writing them: the answers of another rank, which wrote them.
  void add(const std::vector<Entry>& entries);

 private:
  void read(const std::filesystem::path& file);
  void open(const OrderedJson& about);

  std::filesystem::path file_;  // empty: memory alone
  int descriptor_ = -1;
  std::int64_t foreign_lines_ = 0;
  std::unordered_map<std::string, Json> answers_;
};

}  // namespace onset
