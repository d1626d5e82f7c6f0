// The page of `onset scan --report`.

#include <algorithm>
#include <filesystem>

#include "masked_page.h"
#include "model_json.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/report/scan_page.h"
#include "scan_report.h"
#include "text.h"

namespace onset::app {
namespace {

std::string rule_text(const ScanOptions& options) {
  const std::string ratio =
      str_cat("|x| > ", shortest(options.min_ratio), " times the layer's median");
  return options.rule == ScanRule::absolute
             ? str_cat("absolute: ", ratio, " and > ", shortest(options.min_abs))
             : str_cat("relative: ", ratio, ", lasting a quarter of the layers");
}

std::string command_text(const OrderedJson& run) {
  std::vector<std::string> words;
  for (const auto& word : run["command"]) {
    const auto text = printable(word.get<std::string>(), true);
    const bool plain = text.find_first_of(" \t\"'$&|;<>()*?#~`\\") == std::string::npos;
    words.push_back(plain && !text.empty() ? text : "'" + text + "'");
  }
  return join(words, " ");
}

// Model, rule and run, for the last section.
std::vector<Fact> page_facts(const ModelScan& scan, const OrderedJson& run) {
  const auto& model = scan.model;
  return {{"model", printable(scan.path, true)},
          {"architecture",
           str_cat(model["architecture"].get<std::string>(), ", ", model["layers"].dump(),
                   " layers, hidden size ", model["hidden"].dump(), ", ",
                   model["format"].get<std::string>(), adapter_words(model["adapter"]))},
          {"rule", rule_text(scan.result->options)},
          {"products", str_cat(run["compute"].get<std::string>(), "; residual stream float32")},
          {"command", fit(command_text(run), 500, true)},
          {"made", str_cat(run["started"].get<std::string>(), " by onset ",
                           run["version"].get<std::string>())}};
}

}  // namespace

std::string model_name(const std::string& path) {
  const std::filesystem::path full(path);
  const auto name = full.has_filename() ? full.filename() : full.parent_path().filename();
  return printable(name.empty() || name == "." ? path : name.string(), true);
}

ScanPageInput scan_page_input(const ModelScan& scan, const OrderedJson& run) {
  const auto shown = shown_prompt(*scan.result);
  const auto& encoded = scan.prompts[shown];
  std::string bos = "none";
  if (scan.bos) bos = str_cat("id ", *scan.bos);
  ScanPageInput input{
      .model = model_name(scan.path),
      .verdict = verdict_paragraphs(scan, {.utf8 = true, .colour = false}),
      .facts = run.is_null() ? std::vector<Fact>() : page_facts(scan, run),
      .scan = *scan.result,
      .prompt = shown,
      .bos = bos,
      .tokens = {},
      .states = *scan.states,
  };
  for (const auto& token : encoded.shown) input.tokens.push_back(printable(token, true));
  return input;
}

std::string scan_html(const ModelScan& scan, const OrderedJson& run) {
  Page page = scan_page(scan_page_input(scan, run));
  if (scan.masked) {
    // Behind the pictures, before what is there to look up.
    const auto place = std::find_if(
        page.sections.begin(), page.sections.end(),
        [](const Section& section) { return section.id == "prompts" || section.id == "method"; });
    page.sections.insert(place, masked_section({.scan = scan}));
  }
  return render_page(page);
}

}  // namespace onset::app
