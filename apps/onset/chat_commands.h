// The lines of a chat that begin with "/".
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "chat_session.h"
#include "onset/wemask/mask_spec.h"

namespace onset::app {

// What the commands change beside the session.
struct ChatState {
  ChatSession& session;
  bool both = false;
  bool ended = false;
  // Makes the default mask, which needs a scan; called once, where no mask was given. Throws an
  // error where the model has no ME layer.
  std::function<std::shared_ptr<const MaskSpec>()> make_mask;
};

// Does what the line says; the reply is shown to the user. Throws usage and input errors that are
// shown too, and end nothing.
[[nodiscard]] std::string run_chat_command(std::string_view line, ChatState& state);

// The commands with a line on each.
[[nodiscard]] std::string chat_help();

}  // namespace onset::app
