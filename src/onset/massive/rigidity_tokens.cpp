// Which tokens of a scan are compared.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "onset/base/error.h"
#include "onset/massive/rigidity.h"

namespace onset {
namespace {

void check_inside(std::optional<std::int64_t> position, const PromptScan& prompt,
                  std::size_t number, const char* option) {
  const auto length = static_cast<std::int64_t>(prompt.ids.size());
  if (!position || (*position >= 0 && *position < length)) return;
  throw usage_error(
      str_cat("position ", *position, " (--", option, ") is outside prompt ", number,
              ", which has ", length, length == 1 ? " token" : " tokens"),
      str_cat("give --", option, " a position that every prompt has; they count from 0"));
}

std::optional<std::int64_t> ordinary_token(const PromptScan& prompt, std::int64_t token) {
  std::set<std::int64_t> taken{token};
  for (const LayerStatistics& layer : prompt.layers) {
    for (const StateEntry& entry : layer.massive_entries) taken.insert(entry.token);
  }
  const auto length = static_cast<std::int64_t>(prompt.ids.size());
  const std::int64_t middle = length / 2;
  for (std::int64_t distance = 0; distance < length; ++distance) {
    for (const std::int64_t position : {middle + distance, middle - distance}) {
      if (position >= 0 && position < length && taken.count(position) == 0) return position;
    }
  }
  return std::nullopt;
}

}  // namespace

RigidityChoice choose_tokens(const ScanResult& scan, const RigidityTokens& named) {
  if (!named.token && !scan.me_layer) {
    throw usage_error("no ME layer was found, so no token is massive",
                      "name the token to compare, for example --token 0");
  }
  if (named.token && named.token == named.baseline) {
    throw usage_error(str_cat("token and baseline token are both ", *named.token),
                      "the baseline is a token to compare with: name another");
  }
  RigidityChoice choice;
  for (std::size_t p = 0; p < scan.prompts.size(); ++p) {
    const PromptScan& prompt = scan.prompts[p];
    if (!named.token && prompt.me_layer != scan.me_layer) continue;
    check_inside(named.token, prompt, p, "token");
    check_inside(named.baseline, prompt, p, "baseline-token");
    const std::int64_t token =
        named.token ? *named.token
                    : prompt.layers[static_cast<std::size_t>(*scan.me_layer)].largest.token;
    if (named.baseline == token) {
      throw usage_error(
          str_cat("the baseline token ", token, " is the massive token of prompt ", p),
          "name another, or leave --baseline-token out");
    }
    choice.prompts.push_back(
        {.ids = prompt.ids,
         .token = token,
         .baseline = named.baseline ? named.baseline : ordinary_token(prompt, token)});
    choice.scanned.push_back(p);
  }
  return choice;
}

std::size_t distinct_prefixes(std::span<const RigidityPrompt> prompts) {
  std::set<std::vector<std::int64_t>> prefixes;
  for (const RigidityPrompt& prompt : prompts) {
    prefixes.insert({prompt.ids.begin(), prompt.ids.begin() + prompt.token + 1});
  }
  return prefixes.size();
}

}  // namespace onset
