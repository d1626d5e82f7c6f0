// --wemask: the mask file that a verb runs under.
#pragma once

#include <optional>
#include <string>

#include "cli.h"
#include "onset/base/log.h"
#include "onset/model/model.h"
#include "onset/wemask/mask_spec.h"

namespace onset::app {

struct MaskFileOptions {
  std::string path;  // empty: no mask
  bool strict = false;
  bool refresh = false;

  // --wemask, --strict and --refresh.
  void declare(CommandLine& line);
  // --strict and --refresh alone, for a verb that is given the file by another way.
  void declare_fit(CommandLine& line);
  [[nodiscard]] bool given() const { return !path.empty(); }
  // Usage errors: --strict or --refresh without a mask, or both. Call it before a model is opened.
  void check() const;
};

// The mask as it is used on this model; nothing where none was given. A model of another shape is
// an input error; one with other norm gains is said on the log with the overlap of the dims, is an
// input error with --strict, and gets its dims chosen anew with --refresh. Calls check(). Says
// where no mask was given and the model, or the adapter in that folder, was trained under one.
[[nodiscard]] std::optional<MaskSpec> mask_for(const MaskFileOptions& options, const Model& model,
                                               const Log& log, const std::string& adapter = "");

}  // namespace onset::app
