// The verbs: each parses its own options, calls the library and prints. They return the exit code
// where they do not throw.
#pragma once

#include "process.h"

namespace onset::app {

int run_ablate(const Invocation& invocation);
int run_capture(const Invocation& invocation);
int run_chat(const Invocation& invocation);
int run_compare(const Invocation& invocation);
int run_eval(const Invocation& invocation);
int run_explain(const Invocation& invocation);
int run_generate(const Invocation& invocation);
int run_inspect(const Invocation& invocation);
int run_merge(const Invocation& invocation);
int run_report(const Invocation& invocation);
int run_mask(const Invocation& invocation);
int run_rigidity(const Invocation& invocation);
int run_scan(const Invocation& invocation);
int run_serve(const Invocation& invocation);
int run_sinks(const Invocation& invocation);
int run_train(const Invocation& invocation);
int run_tokenize(const Invocation& invocation);

}  // namespace onset::app
