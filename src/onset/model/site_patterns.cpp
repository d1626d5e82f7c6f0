// Reading site patterns.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/sites.h"

namespace onset {
namespace {

constexpr std::string_view layer_prefix = "layers.";
constexpr std::string_view expert_prefix = "experts.";

bool exists(SiteKinds kinds, SiteKind kind) { return (kinds >> static_cast<int>(kind) & 1U) != 0; }

template <typename Visit>
void for_each_kind(const Visit& visit) {
  for (int k = 0; k < site_kind_count; ++k) visit(static_cast<SiteKind>(k));
}

// Whether the name is what the pattern says, in which `*` stands for any text.
bool matches(std::string_view pattern, std::string_view name) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (name.substr(0, star) != pattern.substr(0, star)) return false;
  const auto rest = pattern.substr(std::min(pattern.find_first_not_of('*', star), pattern.size()));
  for (std::size_t at = star; at <= name.size(); ++at) {
    if (matches(rest, name.substr(at))) return true;
  }
  return false;
}

struct Absence {
  SiteKind kind;
  std::string_view reason;
  std::string_view instead;
};

constexpr std::string_view with_norm_after = "only families with a norm after the module have it";
constexpr std::string_view with_mixtures = "only mixtures of experts have it";
constexpr std::string_view with_latents = "only families with latent attention have it";
constexpr std::string_view with_query_rank =
    "only latent attention with a low rank of queries has it";
constexpr std::string_view with_dense = "only dense layers have it";

constexpr std::array<Absence, 14> absences{{
    {SiteKind::attn_norm, "only families with a norm before attention have it",
     "attention reads layers.*.resid_pre itself there"},
    {SiteKind::attn_raw, with_norm_after, "what attention adds to the stream is layers.*.attn_out"},
    {SiteKind::ffn_raw, with_norm_after, "what the FFN adds to the stream is layers.*.ffn_out"},
    {SiteKind::q_latent, with_query_rank, "queries are layers.*.q_pre"},
    {SiteKind::kv_latent, with_latents, "keys are layers.*.k_pre, values layers.*.v"},
    {SiteKind::router, with_mixtures, "the FFN's input is layers.*.ffn_norm"},
    {SiteKind::router_experts, with_mixtures, "the FFN's input is layers.*.ffn_norm"},
    {SiteKind::router_weights, with_mixtures, "the FFN's input is layers.*.ffn_norm"},
    {SiteKind::shared_product, "only mixtures with a shared expert have it",
     "what the FFN adds to the stream is layers.*.ffn_out"},
    {SiteKind::shared_out, "only mixtures with a shared expert have it",
     "what the FFN adds to the stream is layers.*.ffn_out"},
    {SiteKind::ffn_gate, with_dense, "a mixture has layers.*.experts.*.product"},
    {SiteKind::ffn_up, with_dense, "a mixture has layers.*.experts.*.product"},
    {SiteKind::ffn_product, with_dense, "a mixture has layers.*.experts.*.product"},
    {SiteKind::expert_out, with_mixtures, "what the FFN adds to the stream is layers.*.ffn_out"},
}};

Error absent(SiteKind kind, std::string_view wanted, std::string_view who) {
  const auto why = std::find_if(absences.begin(), absences.end(), [kind](const Absence& absence) {
    return absence.kind == kind ||
           (absence.kind == SiteKind::expert_out && kind == SiteKind::expert_product);
  });
  if (why == absences.end()) return usage_error(str_cat(who, " has no ", wanted));
  return usage_error(str_cat(who, " has no ", wanted, ": ", why->reason),
                     std::string(why->instead));
}

// "layers.0,1.q" was cut at its comma: throws where `parts` from `at` on look like that.
void refuse_comma_in_layers(const std::vector<std::string>& parts, std::size_t at) {
  std::string given(trim(parts[at]));
  std::string meant = given;
  if (!given.starts_with(layer_prefix) || given.find('.', layer_prefix.size()) != std::string::npos)
    return;
  constexpr std::string_view of_layers = "0123456789-|*";
  for (std::size_t i = at + 1; i < parts.size(); ++i) {
    const std::string_view part = trim(parts[i]);
    const auto dot = part.find('.');
    if (part.substr(0, dot).find_first_not_of(of_layers) != std::string_view::npos) return;
    given.append(",").append(part);
    meant.append("|").append(part);
    if (dot == std::string_view::npos) continue;
    throw usage_error(
        str_cat("\"", given, "\" has a comma between its layers: commas separate sites"),
        str_cat("write ", meant));
  }
}

SiteKinds all_of(const SiteTable& table) {
  SiteKinds kinds = 0;
  for_each_kind([&](SiteKind kind) {
    if (!is_layer_site(kind)) kinds |= SiteKinds{1} << static_cast<int>(kind);
  });
  for (const SiteKinds layer : table.layers) kinds |= layer;
  return kinds;
}

// Compares kinds without the layers, which are as good in one as in another.
Error unknown_site(std::string_view pattern, const SiteTable& table) {
  const auto dot = pattern.find('.', std::min(layer_prefix.size(), pattern.size()));
  const bool in_layer = pattern.starts_with(layer_prefix) && dot != std::string_view::npos;
  const std::string before(in_layer ? pattern.substr(0, dot + 1) : std::string_view("layers.*."));
  const SiteKinds kinds = all_of(table);
  std::vector<std::string> known;
  for_each_kind([&](SiteKind kind) {
    if (exists(kinds, kind)) known.emplace_back(site_kind_name(kind));
  });
  std::vector<std::string> near;
  for (const auto& name : nearest(in_layer ? pattern.substr(dot + 1) : pattern, known, 3)) {
    for_each_kind([&](SiteKind kind) {
      if (site_kind_name(kind) == name) near.push_back(is_layer_site(kind) ? before + name : name);
    });
  }
  return usage_error(str_cat("no site is named \"", pattern, "\" (the model has layers 0 to ",
                             static_cast<std::int64_t>(table.layers.size()) - 1, ")"),
                     near.empty()
                         ? "sites look like layers.*.resid_post, layers.3.attn_probs, logits"
                         : did_you_mean(near));
}

// The number, counted from the end where it is negative; nothing for a text that is no number.
// Throws for a layer or an expert, which `what` says, that the model does not have.
std::optional<std::int64_t> parse_number(std::string_view text, std::int64_t count,
                                         std::string_view pattern, std::string_view what) {
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool too_large = result.ec == std::errc::result_out_of_range;
  if (text.empty() || (result.ec != std::errc() && !too_large) ||
      result.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  const bool from_end = value < 0 || (too_large && text.front() == '-');
  if (too_large || value >= count || value < -count) {
    throw usage_error(str_cat(what, " ", text, " of \"", pattern, "\" is out of range ",
                              from_end ? -count : 0, " to ", from_end ? -1 : count - 1));
  }
  return from_end ? value + count : value;
}

// "*", "3", "-1", "2-5", "1|4|2-3"; empty when it is none of these.
std::vector<std::int64_t> parse_numbers(std::string_view text, std::int64_t count,
                                        std::string_view pattern, std::string_view what) {
  std::vector<std::int64_t> numbers;
  if (text == "*") {
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(i);
    return numbers;
  }
  for (const std::string& part : split(text, '|')) {
    if (const auto single = parse_number(part, count, pattern, what)) {
      numbers.push_back(*single);
      continue;
    }
    const std::size_t dash = part.find('-', 1);
    if (dash == std::string::npos) return {};
    const auto first = parse_number(std::string_view(part).substr(0, dash), count, pattern, what);
    const auto last = parse_number(std::string_view(part).substr(dash + 1), count, pattern, what);
    if (!first || !last) return {};
    if (*first > *last) {
      throw usage_error(
          str_cat("the range of ", what, "s ", part, " of \"", pattern, "\" is reversed"),
          str_cat("write ", *last, "-", *first));
    }
    for (std::int64_t i = *first; i <= *last; ++i) numbers.push_back(i);
  }
  return numbers;
}

// What a pattern asks for inside a layer.
struct Wanted {
  std::string_view text;
  // Of "experts.0-7.out": which experts, and what of them; else all.
  std::vector<std::int64_t> experts;
  std::string_view expert_kind;

  Wanted(std::string_view kind, std::string_view pattern, std::int64_t count) : text(kind) {
    const std::size_t dot = kind.find('.', std::min(expert_prefix.size(), kind.size()));
    if (!kind.starts_with(expert_prefix) || dot == std::string_view::npos || count == 0) return;
    const std::string_view list = kind.substr(expert_prefix.size(), dot - expert_prefix.size());
    experts = parse_numbers(list, count, pattern, "expert");
    if (experts.empty()) {
      throw usage_error(str_cat("\"", list, "\" of \"", pattern, "\" names no expert"),
                        "an expert is a number, *, a range 0-7 or a list 2|5");
    }
    expert_kind = kind.substr(dot + 1);
  }

  [[nodiscard]] bool asks_for(SiteKind kind) const {
    const std::string_view name = site_kind_name(kind);
    if (is_expert_site(kind) && !experts.empty()) {
      return matches(expert_kind, name.substr(name.rfind('.') + 1));
    }
    return matches(text, name) || (text == "router" && name.starts_with("router."));
  }
};

void add_site(SiteSet& set, SiteKind kind, std::int64_t layer, const Wanted& wanted,
              std::int64_t experts) {
  if (!is_expert_site(kind)) return set.add({kind, layer});
  if (wanted.experts.empty()) {
    for (std::int64_t e = 0; e < experts; ++e) set.add({kind, layer, e});
  }
  for (const std::int64_t e : wanted.experts) set.add({kind, layer, e});
}

// `rest`: what follows "layers.".
void add_layer_pattern(SiteSet& set, std::string_view pattern, std::string_view rest,
                       const SiteTable& table) {
  const auto count = static_cast<std::int64_t>(table.layers.size());
  const std::size_t dot = rest.find('.');
  if (dot == std::string_view::npos) throw unknown_site(pattern, table);
  const auto layers = parse_numbers(rest.substr(0, dot), count, pattern, "layer");
  if (layers.empty()) {
    throw usage_error(
        str_cat("\"", rest.substr(0, dot), "\" of \"", pattern, "\" names no layer"),
        "a layer is a number, *, a range 2-5 or a list 2|5; negative numbers count from the end");
  }
  const Wanted wanted(rest.substr(dot + 1), pattern, table.experts);
  bool found = false;
  std::optional<SiteKind> elsewhere;  // asked for, but not there
  for_each_kind([&](SiteKind kind) {
    if (!is_layer_site(kind) || !wanted.asks_for(kind)) return;
    for (const std::int64_t layer : layers) {
      if (!exists(table.layers[static_cast<std::size_t>(layer)], kind)) {
        if (!elsewhere) elsewhere = kind;
        continue;
      }
      add_site(set, kind, layer, wanted, table.experts);
      found = true;
    }
  });
  if (found) return;
  if (!elsewhere && rest.substr(dot + 1).starts_with(expert_prefix) && table.experts == 0) {
    elsewhere = SiteKind::expert_out;
  }
  if (!elsewhere) throw unknown_site(pattern, table);
  const bool in_model = exists(all_of(table), *elsewhere);
  throw absent(
      *elsewhere, wanted.text,
      in_model ? str_cat("layer ", rest.substr(0, dot), " of ", table.model) : table.model);
}

void add_pattern(SiteSet& set, std::string_view pattern, const SiteTable& table) {
  if (pattern == "*") add_layer_pattern(set, pattern, "*.*", table);
  if (pattern.starts_with(layer_prefix)) {
    return add_layer_pattern(set, pattern, pattern.substr(layer_prefix.size()), table);
  }
  bool found = false;
  for_each_kind([&](SiteKind kind) {
    if (is_layer_site(kind) || (pattern != "*" && pattern != site_kind_name(kind))) return;
    set.add({kind, -1});
    found = true;
  });
  if (!found) throw unknown_site(pattern, table);
}

}  // namespace

SiteSet SiteSet::parse(std::string_view patterns, const SiteTable& table) {
  SiteSet set(static_cast<std::int64_t>(table.layers.size()));
  const auto parts = split(patterns, ',');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string_view pattern = trim(parts[i]);
    if (pattern.empty()) {
      throw usage_error(str_cat("an empty site in \"", patterns, "\""),
                        "sites look like layers.*.resid_post, layers.3.attn_probs, logits");
    }
    refuse_comma_in_layers(parts, i);
    add_pattern(set, pattern, table);
  }
  return set;
}

}  // namespace onset
