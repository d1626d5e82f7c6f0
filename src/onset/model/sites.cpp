#include "onset/model/sites.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/config.h"

namespace onset {
namespace {

struct KindRow {
  std::string_view name;
  bool in_layer;
};

constexpr std::array<KindRow, site_kind_count> kind_rows{{
    {"embed", false},      {"resid_pre", true},   {"attn_norm", true},  {"q_pre", true},
    {"k_pre", true},       {"q", true},           {"k", true},          {"v", true},
    {"attn_scores", true}, {"attn_probs", true},  {"attn_heads", true}, {"attn_raw", true},
    {"attn_out", true},    {"resid_mid", true},   {"ffn_norm", true},   {"ffn_gate", true},
    {"ffn_up", true},      {"ffn_product", true}, {"ffn_raw", true},    {"ffn_out", true},
    {"resid_post", true},  {"final_norm", false}, {"logits", false},
}};

const KindRow& row(SiteKind kind) { return kind_rows[static_cast<std::size_t>(kind)]; }

constexpr std::string_view layer_prefix = "layers.";

bool exists(SiteKinds kinds, SiteKind kind) { return (kinds >> static_cast<int>(kind) & 1U) != 0; }

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

constexpr std::array<Absence, 3> absences{{
    {SiteKind::attn_norm, "only families with a norm before attention have it",
     "attention reads layers.*.resid_pre itself there"},
    {SiteKind::attn_raw, "only families with a norm after the module have it",
     "what attention adds to the stream is layers.*.attn_out"},
    {SiteKind::ffn_raw, "only families with a norm after the module have it",
     "what the FFN adds to the stream is layers.*.ffn_out"},
}};

// Throws where the name is that of a kind that other families have.
void refuse_absent(std::string_view wanted, SiteKinds kinds, std::string_view model) {
  for (int k = 0; k < site_kind_count; ++k) {
    const auto kind = static_cast<SiteKind>(k);
    if (exists(kinds, kind) || site_kind_name(kind) != wanted) continue;
    const auto why = std::find_if(absences.begin(), absences.end(),
                                  [kind](const Absence& absence) { return absence.kind == kind; });
    if (why == absences.end()) throw usage_error(str_cat(model, " has no ", wanted));
    throw usage_error(str_cat(model, " has no ", wanted, ": ", why->reason),
                      std::string(why->instead));
  }
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

// Compares kinds without the layers, which are as good in one as in another.
Error unknown_site(std::string_view pattern, std::int64_t layers, SiteKinds kinds) {
  const auto dot = pattern.rfind('.');
  const bool in_layer = pattern.starts_with(layer_prefix) && dot >= layer_prefix.size() &&
                        dot != std::string_view::npos;
  const std::string before(in_layer ? pattern.substr(0, dot + 1) : std::string_view("layers.*."));
  std::vector<std::string> known;
  for (int k = 0; k < site_kind_count; ++k) {
    const auto kind = static_cast<SiteKind>(k);
    if (exists(kinds, kind)) known.emplace_back(site_kind_name(kind));
  }
  std::vector<std::string> near;
  for (const auto& name : nearest(in_layer ? pattern.substr(dot + 1) : pattern, known, 3)) {
    const auto row = std::find_if(kind_rows.begin(), kind_rows.end(),
                                  [&name](const KindRow& kind) { return kind.name == name; });
    near.push_back(row->in_layer ? before + name : name);
  }
  return usage_error(
      str_cat("no site is named \"", pattern, "\" (the model has layers 0 to ", layers - 1, ")"),
      near.empty() ? "sites look like layers.*.resid_post, layers.3.attn_probs, logits"
                   : did_you_mean(near));
}

// The number, counted from the end where it is negative; nothing for a text that is no number.
// Throws for a layer that the model does not have.
std::optional<std::int64_t> parse_layer(std::string_view text, std::int64_t count,
                                        std::string_view pattern) {
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool too_large = result.ec == std::errc::result_out_of_range;
  if (text.empty() || (result.ec != std::errc() && !too_large) ||
      result.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  const bool from_end = value < 0 || (too_large && text.front() == '-');
  if (too_large || value >= count || value < -count) {
    throw usage_error(str_cat("layer ", text, " of \"", pattern, "\" is out of range ",
                              from_end ? -count : 0, " to ", from_end ? -1 : count - 1));
  }
  return from_end ? value + count : value;
}

// "*", "3", "-1", "2-5", "1|4|2-3"; empty when it is none of these.
std::vector<std::int64_t> parse_layers(std::string_view text, std::int64_t count,
                                       std::string_view pattern) {
  std::vector<std::int64_t> layers;
  if (text == "*") {
    for (std::int64_t l = 0; l < count; ++l) layers.push_back(l);
    return layers;
  }
  for (const std::string& part : split(text, '|')) {
    if (const auto single = parse_layer(part, count, pattern)) {
      layers.push_back(*single);
      continue;
    }
    const std::size_t dash = part.find('-', 1);
    if (dash == std::string::npos) return {};
    const auto first = parse_layer(std::string_view(part).substr(0, dash), count, pattern);
    const auto last = parse_layer(std::string_view(part).substr(dash + 1), count, pattern);
    if (!first || !last) return {};
    if (*first > *last) {
      throw usage_error(str_cat("the range of layers ", part, " of \"", pattern, "\" is reversed"),
                        str_cat("write ", *last, "-", *first));
    }
    for (std::int64_t l = *first; l <= *last; ++l) layers.push_back(l);
  }
  return layers;
}

void add_pattern(SiteSet& set, std::string_view pattern, SiteKinds kinds, std::string_view model) {
  const std::int64_t count = set.layer_count();
  bool found = false;
  if (pattern == "*") {
    add_pattern(set, "layers.*.*", kinds, model);
    for (int k = 0; k < site_kind_count; ++k) {
      const auto kind = static_cast<SiteKind>(k);
      if (exists(kinds, kind) && !is_layer_site(kind)) set.add({kind, -1});
    }
    return;
  }
  if (pattern.starts_with(layer_prefix)) {
    const std::string_view rest = pattern.substr(layer_prefix.size());
    const std::size_t dot = rest.find('.');
    if (dot == std::string_view::npos) throw unknown_site(pattern, count, kinds);
    const std::string_view wanted = rest.substr(dot + 1);
    const auto layers = parse_layers(rest.substr(0, dot), count, pattern);
    if (layers.empty()) {
      throw usage_error(
          str_cat("\"", rest.substr(0, dot), "\" of \"", pattern, "\" names no layer"),
          "a layer is a number, *, a range 2-5 or a list 2|5; negative numbers count from the end");
    }
    refuse_absent(wanted, kinds, model);
    for (int k = 0; k < site_kind_count; ++k) {
      const auto kind = static_cast<SiteKind>(k);
      if (!exists(kinds, kind) || !is_layer_site(kind) || !matches(wanted, site_kind_name(kind)))
        continue;
      for (const std::int64_t layer : layers) {
        set.add({kind, layer});
        found = true;
      }
    }
  } else {
    for (int k = 0; k < site_kind_count; ++k) {
      const auto kind = static_cast<SiteKind>(k);
      if (!exists(kinds, kind) || is_layer_site(kind) || pattern != site_kind_name(kind)) continue;
      set.add({kind, -1});
      found = true;
    }
  }
  if (!found) throw unknown_site(pattern, count, kinds);
}

}  // namespace

std::string_view site_kind_name(SiteKind kind) { return row(kind).name; }

bool is_layer_site(SiteKind kind) { return row(kind).in_layer; }

std::string site_name(SiteId site) {
  const std::string name(site_kind_name(site.kind));
  return site.layer < 0 ? name : str_cat(layer_prefix, site.layer, ".", name);
}

SiteKinds site_kinds(const ModelConfig& config) {
  const auto bit = [](SiteKind kind) { return SiteKinds{1} << static_cast<int>(kind); };
  SiteKinds kinds = all_site_kinds;
  if (!config.pre_norms) kinds &= ~bit(SiteKind::attn_norm);
  if (!config.post_norms) kinds &= ~(bit(SiteKind::attn_raw) | bit(SiteKind::ffn_raw));
  return kinds;
}

SiteSet::SiteSet(std::int64_t layer_count) : mask_(static_cast<std::size_t>(layer_count) + 1, 0) {}

SiteSet SiteSet::parse(std::string_view patterns, std::int64_t layer_count, SiteKinds kinds,
                       std::string_view model) {
  SiteSet set(layer_count);
  const auto parts = split(patterns, ',');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string_view pattern = trim(parts[i]);
    if (pattern.empty()) {
      throw usage_error(str_cat("an empty site in \"", patterns, "\""),
                        "sites look like layers.*.resid_post, layers.3.attn_probs, logits");
    }
    refuse_comma_in_layers(parts, i);
    add_pattern(set, pattern, kinds, model);
  }
  return set;
}

void SiteSet::add(SiteId site) {
  mask_.at(static_cast<std::size_t>(site.layer + 1)) |= std::uint64_t{1}
                                                        << static_cast<int>(site.kind);
}

void SiteSet::add_all_layers(SiteKind kind) {
  for (std::int64_t layer = 0; layer < layer_count(); ++layer) add({kind, layer});
}

std::vector<SiteId> SiteSet::list() const {
  std::vector<SiteId> sites;
  if (contains({SiteKind::embed, -1})) sites.push_back({SiteKind::embed, -1});
  for (std::int64_t layer = 0; layer < layer_count(); ++layer) {
    for (int k = 0; k < site_kind_count; ++k) {
      const SiteId site{static_cast<SiteKind>(k), layer};
      if (contains(site)) sites.push_back(site);
    }
  }
  for (const SiteKind kind : {SiteKind::final_norm, SiteKind::logits}) {
    if (contains({kind, -1})) sites.push_back({kind, -1});
  }
  return sites;
}

}  // namespace onset
