#include "onset/eval/engine.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "onset/base/content_hash.h"
#include "onset/base/error.h"
#include "onset/base/ranks.h"
#include "onset/base/strings.h"
#include "onset/eval/answer_units.h"
#include "onset/eval/choice_answers.h"
#include "onset/eval/generation_answers.h"
#include "onset/eval/model_identity.h"
#include "onset/eval/text_answers.h"
#include "onset/model/model.h"
#include "onset/wemask/mask.h"
#include "onset/wemask/mask_json.h"

namespace onset {
namespace {

// Raised whenever a change of the program changes answers: what was kept before is then not found.
constexpr std::int64_t answers_version = 1;

const std::map<std::string_view, Overlong> overlong_names{
    {"truncate", Overlong::truncate}, {"skip", Overlong::skip}, {"error", Overlong::error}};

void check(const EvalOptions& options, const Model& model) {
  if (options.batch_tokens < 1 || options.generation_rows < 1 || options.context < 0) {
    throw usage_error("tokens of a batch and generated rows are 1 or more");
  }
  check_sampling(options.sampling);
  if (options.mask) static_cast<void>(check_mask(*options.mask, model));
}

// "bf16", or "bf16 on a GPU": sums in another order are other sums.
std::string computed_how(const ModelOptions& options) {
  const std::string compute(compute_name(options.compute));
  return options.device.kind == DeviceKind::cpu ? compute : compute + " on a GPU";
}

// Everything but the items that answers depend on.
ResultCache open_cache(const Model& model, const EvalOptions& options, int rank) {
  if (options.cache.empty()) return {{}, "", {}, rank};
  const OrderedJson mask = options.mask ? mask_json(*options.mask) : OrderedJson(nullptr);
  const std::string compute = computed_how(model.options());
  const OrderedJson about = {{"answers_version", answers_version},
                             {"model", model.checkpoint().path().filename().string()},
                             {"model_identity", model_identity(model)},
                             {"compute", compute},
                             {"wemask", mask}};
  const std::string scope = ContentHash()
                                .add(answers_version)
                                .add(about["model_identity"].get<std::string>())
                                .add(compute)
                                .add(mask.dump())
                                .hex();
  return {options.cache, scope, about, rank};
}

// Which rank computes each unit: the costliest first, each to the rank with the least so far.
std::vector<int> deal(const std::vector<AnswerUnit>& units, int ranks) {
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return units[a].cost > units[b].cost; });
  std::vector<int> owner(units.size());
  std::vector<std::int64_t> load(static_cast<std::size_t>(ranks));
  for (const std::size_t u : order) {
    const auto least = std::min_element(load.begin(), load.end());
    owner[u] = static_cast<int>(least - load.begin());
    *least += units[u].cost;
  }
  return owner;
}

class Evaluation {
 public:
  Evaluation(const AnswerSetting& setting, const Log& log)
      : setting_(setting),
        log_(log),
        ranks_(setting.options.ranks != nullptr ? *setting.options.ranks : alone_),
        cache_(open_cache(setting.model, setting.options, ranks_.rank())) {
    const std::int64_t lines = cache_.foreign_lines();
    if (lines == 0) return;
    log_.warning(
        str_cat(setting.options.cache.string(), ": ", lines,
                lines == 1 ? " line of the kept answers is" : " lines of the kept answers are",
                " no line of this program; what it held is computed again"));
  }

  EvalResult run() {
    EvalResult result;
    result.answers.resize(setting_.items.size());
    for (std::size_t i = 0; i < setting_.items.size(); ++i) add(i, result.answers[i]);
    std::vector<AnswerUnit> units = choices_.units();
    for (auto&& more : {texts_.units(), generations_.units()}) {
      units.insert(units.end(), more.begin(), more.end());
    }
    count_known(result);
    const std::vector<int> owner = deal(units, ranks_.count());
    compute(units, owner);
    exchange(units, owner, result.counts);
    for (std::size_t i = 0; i < setting_.items.size(); ++i) fill(i, result.answers[i]);
    for (const ItemAnswer& answer : result.answers) {
      result.counts.skipped += answer.skipped ? 1 : 0;
      result.counts.cut += answer.cut ? 1 : 0;
    }
    return result;
  }

 private:
  void add(std::size_t item, ItemAnswer& answer) {
    switch (setting_.items[item].kind) {
      case ItemKind::choice:
        return choices_.add(item, answer);
      case ItemKind::generation:
        return generations_.add(item, answer);
      case ItemKind::text:
        return texts_.add(item, answer);
    }
  }

  [[nodiscard]] bool knows(std::size_t item) const {
    switch (setting_.items[item].kind) {
      case ItemKind::choice:
        return choices_.knows(cache_, item);
      case ItemKind::generation:
        return generations_.knows(cache_, item);
      case ItemKind::text:
        return texts_.knows(cache_, item);
    }
    return false;
  }

  void fill(std::size_t item, ItemAnswer& answer) const {
    if (answer.skipped) return;
    switch (setting_.items[item].kind) {
      case ItemKind::choice:
        return choices_.fill(cache_, item, answer);
      case ItemKind::generation:
        return generations_.fill(cache_, item, answer);
      case ItemKind::text:
        return texts_.fill(cache_, item, answer);
    }
  }

  void count_known(EvalResult& result) const {
    for (std::size_t i = 0; i < setting_.items.size(); ++i) {
      if (result.answers[i].skipped) continue;
      ++(knows(i) ? result.counts.reused : result.counts.answered);
    }
  }

  void compute(const std::vector<AnswerUnit>& units, const std::vector<int>& owner) {
    std::int64_t total = 0;
    for (std::size_t u = 0; u < units.size(); ++u) {
      if (owner[u] == ranks_.rank()) total += units[u].steps;
    }
    std::int64_t done = 0;
    const Advance advance = [&](std::int64_t steps) {
      done += steps;
      log_.step("items", done, total);
    };
    for (std::size_t u = 0; u < units.size(); ++u) {
      if (owner[u] != ranks_.rank()) continue;
      const AnswerUnit& unit = units[u];
      const bool known = std::all_of(unit.keys.begin(), unit.keys.end(),
                                     [&](const auto& key) { return cache_.find(key) != nullptr; });
      if (known) {
        advance(unit.steps);
      } else {
        cache_.put(unit.compute(cache_, advance));
      }
    }
  }

  // What each rank found, or had on its disk, goes to all of them.
  void exchange(const std::vector<AnswerUnit>& units, const std::vector<int>& owner,
                EvalCounts& counts) {
    counts.asked_tokens = choices_.asked_tokens();
    counts.computed_tokens = choices_.computed_tokens();
    if (ranks_.count() == 1) return;
    std::vector<ResultCache::Entry> answers;
    for (std::size_t u = 0; u < units.size(); ++u) {
      if (owner[u] != ranks_.rank()) continue;
      for (const std::string& key : units[u].keys) answers.emplace_back(key, cache_.at(key));
    }
    const Json mine = {{"computed_tokens", counts.computed_tokens}, {"answers", answers}};
    const std::vector<std::string> all =
        ranks_.gather(mine.dump(-1, ' ', false, Json::error_handler_t::replace));
    counts.computed_tokens = 0;
    for (const std::string& text : all) {
      const Json theirs = parse_json(text, "answers of a rank");
      counts.computed_tokens += theirs.at("computed_tokens").get<std::int64_t>();
      cache_.add(theirs.at("answers").get<std::vector<ResultCache::Entry>>());
    }
  }

  const AnswerSetting& setting_;
  const Log& log_;
  Ranks alone_;
  const Ranks& ranks_;
  ResultCache cache_;
  ChoiceAnswers choices_{setting_};
  TextAnswers texts_{setting_};
  GenerationAnswers generations_{setting_};
};

}  // namespace

SamplingOptions greedy_sampling() {
  SamplingOptions sampling;
  sampling.temperature = 0.0;
  return sampling;
}

Overlong parse_overlong(std::string_view name) {
  const auto found = overlong_names.find(name);
  if (found != overlong_names.end()) return found->second;
  throw usage_error(str_cat("unknown way with overlong items ", quote(name)),
                    "one of: truncate, skip, error");
}

std::string_view name_of(Overlong overlong) {
  return std::find_if(overlong_names.begin(), overlong_names.end(),
                      [&](const auto& entry) { return entry.second == overlong; })
      ->first;
}

bool fits(const AnswerSetting& setting, std::size_t item, std::int64_t tokens, ItemAnswer& answer) {
  if (setting.context == 0 || tokens <= setting.context) return true;
  switch (setting.options.overlong) {
    case Overlong::truncate:
      answer.cut = true;
      break;
    case Overlong::skip:
      answer.skipped = true;
      break;
    case Overlong::error:
      throw input_error(str_cat(describe(setting.items[item]), " needs ", tokens,
                                " tokens, and the context is ", setting.context),
                        "--overlong truncate cuts the beginning, --overlong skip leaves such items "
                        "out");
  }
  return false;
}

void require_known(const AnswerSetting& setting, std::size_t item,
                   std::span<const std::int64_t> ids) {
  const std::int64_t vocabulary = setting.model.config().vocabulary;
  for (const std::int64_t id : ids) {
    if (id >= 0 && id < vocabulary) continue;
    throw input_error(str_cat(describe(setting.items[item]), ": the tokenizer makes token ", id,
                              " of it, and the model has ", vocabulary, " tokens"),
                      "do tokenizer and model belong together?");
  }
}

EvalResult answer_items(const Model& model, const Tokenizer& tokenizer,
                        std::span<const EvalItem> items, const EvalOptions& options,
                        const Log& log) {
  check(options, model);
  const AnswerSetting setting{
      .model = model,
      .tokenizer = tokenizer,
      .items = items,
      .options = options,
      .encoder = ItemEncoder(tokenizer, options.bos),
      .hooks = options.mask ? masking(*options.mask, model) : nullptr,
      .context = options.context > 0 ? options.context : model.config().context,
      .alone = options.mask && options.mask->official_compat};
  return Evaluation(setting, log).run();
}

}  // namespace onset
