// What the files of a checkpoint held when it was saved, so that one that was damaged or changed
// since is found before a run goes on from it. Torch-free.
#pragma once

#include <filesystem>
#include <string>

#include "onset/base/json.h"

namespace onset {

// {"model.safetensors": {"bytes": .., "hash": ..}, ..} of all files in the folder; the hash is
// ContentHash's, over parts of the file. Reads every byte.
[[nodiscard]] OrderedJson describe_files(const std::filesystem::path& folder);

// Throws an input error that names the first file that is not there, or is not as it is described,
// and the checkpoint before this one. Files that are not described are not looked at.
void check_files(const std::filesystem::path& checkpoint, const OrderedJson& files);

// What to do where a checkpoint cannot be used: the one before it, by name.
[[nodiscard]] std::string earlier_checkpoint_hint(const std::filesystem::path& checkpoint);

}  // namespace onset
