// A run's state beside the model's files, so that it goes on where it was: the trained tensors in
// the precision they are trained in with the optimizer's moments (optimizer.safetensors), and
// everything else (trainer_state.json), in a folder `checkpoint-N`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "onset/base/json.h"
#include "onset/train/optimizer.h"

namespace onset {

struct BestCheckpoint {
  std::int64_t step = 0;
  std::string metric;
  double value = 0;
};

struct TrainState {
  std::int64_t step = 0;  // updates made
  // What must be the same when the run goes on, or its curve would be another: the model's
  // fingerprint, the settings that the curve depends on.
  OrderedJson identity = OrderedJson::object();
  // What the trainer wants back: the place in the data, the state of random numbers, tokens seen.
  OrderedJson progress = OrderedJson::object();
  std::optional<BestCheckpoint> best;
};

struct CheckpointRetention {
  std::int64_t keep = 0;  // the latest so many; 0: all. The best one stays on top of them.
};

// Writes OUTPUT/checkpoint-STEP whole or not at all, then takes older ones away. `write_model` puts
// the model's (or adapter's) own files into the folder that it is given. Returns the folder's path.
// Throws resource errors as files do; what stood before then still stands.
std::filesystem::path save_checkpoint(
    const std::filesystem::path& output, const TrainState& state, const AdamW& optimizer,
    const std::function<void(const std::filesystem::path& folder)>& write_model,
    CheckpointRetention retention);

// Throws an input error that names the file where it is not onset's, or is damaged, or was changed
// since it was saved.
[[nodiscard]] TrainState read_train_state(const std::filesystem::path& checkpoint);

// Whether all files of a checkpoint are what was saved: reads each of them. Throws an input error
// that names the first that is not, and the checkpoint before. One that an earlier onset saved,
// without hashes, passes.
void check_checkpoint(const std::filesystem::path& checkpoint);

// Throws an input error that names the first field in which the saved run and this one differ.
void check_same_run(const TrainState& saved, const OrderedJson& identity,
                    const std::filesystem::path& checkpoint);

// Overwrites the trained tensors and their moments with the saved ones. Throws an input error where
// the file is damaged, or holds other tensors, shapes or types; then all is as it was.
void read_optimizer(const std::filesystem::path& checkpoint, AdamW& optimizer);

}  // namespace onset
