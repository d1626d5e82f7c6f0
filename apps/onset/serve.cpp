// onset serve: a model behind OpenAI's HTTP API, with or without WeMask.

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "chats.h"
#include "default_mask.h"
#include "mask_option.h"
#include "onset/base/error.h"
#include "onset/base/strings.h"
#include "onset/model/model.h"
#include "onset/model/runtime.h"
#include "onset/serve/engine.h"
#include "onset/serve/http_server.h"
#include "onset/serve/mask_field.h"
#include "onset/serve/service.h"
#include "options.h"
#include "output.h"
#include "prompts.h"
#include "stop_signals.h"
#include "text.h"
#include "verbs.h"

namespace onset::app {
namespace {

constexpr std::chrono::seconds grace{5};

struct ServeVerbOptions {
  std::string host = "127.0.0.1";
  std::int64_t port = 8080;
  std::string api_key;
  std::vector<std::string> origins;
  std::string alias;
  std::string chat_format;
  bool parse_special = false;
  std::int64_t max_batch = 32;
  std::int64_t queue = 64;
  std::int64_t context = 0;
  std::int64_t prefix_cache = 256;
  std::int64_t max_body = 8;
  std::int64_t max_connections = 1024;
  std::int64_t time_limit = 600;
  bool quiet = false;
  MaskFileOptions mask;
  ComputeOptions compute;

  void declare(CommandLine& line);
  void resolve();
};

void ServeVerbOptions::declare(CommandLine& line) {
  line.group("Server");
  line.path(host, "--host", "ADDRESS", "the address to listen on; 0.0.0.0 for all of this machine");
  line.integer(port, "--port", "N", "the port; 0 takes any that is free and prints it", 0, 65535);
  line.path(
      api_key, "--api-key", "KEY",
      "ask for this key (Authorization: Bearer KEY); the variable ONSET_API_KEY does the same "
      "and is not seen in the list of processes");
  line.texts(origins, "--allow-origin", "ORIGIN",
             "pages of this origin may use the server, such as http://localhost:3000; * for all "
             "(repeatable); without it only the server's own page");
  line.path(alias, "--alias", "NAME", "the model's name in the API; without it the file's name");
  line.group("Generation");
  line.integer(max_batch, "--max-batch", "N", "answers generated at a time", 1, 4096);
  line.integer(queue, "--queue", "N",
               "answers that may wait beside them; more are refused with status 429", 0, 1 << 20);
  line.integer(context, "--context", "N",
               "the longest prompt and answer in tokens; 0: what the model was trained for", 0,
               INT32_MAX);
  line.integer(prefix_cache, "--prefix-cache", "MIB",
               "memory for the keys and values of prompts that were seen", 0, 1 << 20);
  line.text(chat_format, "--chat-format", "NAME",
            "chat format to use in place of the model's own: " + chat_format_names());
  line.toggle(parse_special, "--parse-special",
              "special tokens are special also where a message spells them; without it they are "
              "text there");
  line.group("Limits");
  line.integer(max_body, "--max-body", "MIB", "the largest request", 1, 4096);
  line.integer(max_connections, "--max-connections", "N",
               "connections at a time; one more is refused with status 503", 1, 1 << 16);
  line.integer(time_limit, "--timeout", "SECONDS", "the longest time for an answer; 0: no limit", 0,
               INT32_MAX);
  mask.declare(line);
  compute.residency = Residency::resident;
  compute.declare(
      line, "the seed of requests that give none; 0: each of them draws its own and tells it");
  line.group("Output");
  line.toggle(quiet, "--quiet", "no notes on standard error but the address");
  line.example("onset serve MODEL", "on http://127.0.0.1:8080, with a page to try it at /");
  line.example("onset serve MODEL --wemask wemask.json", "masked, unless a request says otherwise");
  line.example("ONSET_API_KEY=secret onset serve MODEL --host 0.0.0.0 --port 80",
               "for other machines, with a key");
  line.note(
      "POST /v1/chat/completions, POST /v1/completions, GET /v1/models, GET /health. The request "
      "field \"wemask\" (\"on\", \"off\" or a mask) chooses the mask of one request. Ctrl-C or "
      "SIGTERM ends it with exit code 0. docs/serve.md has the fields and examples.");
}

void ServeVerbOptions::resolve() {
  if (const char* key = std::getenv("ONSET_API_KEY"); api_key.empty() && key != nullptr) {
    api_key = key;
  }
  mask.check();
}

std::string model_name(const std::string& path) {
  auto name = std::filesystem::path(path).lexically_normal();
  if (name.filename().empty()) name = name.parent_path();
  const auto file = name.filename();
  return valid_utf8((file.extension() == ".gguf" ? file.stem() : file).string());
}

void warn_of_exposure(const ServeVerbOptions& options, Console& console) {
  const bool local =
      options.host == "127.0.0.1" || options.host == "::1" || options.host == "localhost";
  if (local || !options.api_key.empty()) return;
  console.warn(str_cat("--host ", options.host,
                       " lets other machines use this server, and no API key is asked for: set "
                       "ONSET_API_KEY"));
}

// Lets what runs come to its end for a while; a second signal does not wait.
void finish(Engine& engine, HttpServer& server, StopSignals& signals, Console& console) {
  engine.refuse_calls();
  const auto until = std::chrono::steady_clock::now() + grace;
  if (engine.running_calls() > 0) {
    console.note(str_cat("stopping; ", counted(engine.running_calls(), "request"), " still run"));
  }
  while (engine.running_calls() > 0 && std::chrono::steady_clock::now() < until) {
    if (signals.wait_for(std::chrono::milliseconds(50))) break;
  }
  engine.stop();
  // The connections tell their clients how it ended.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  server.stop();
}

}  // namespace

int run_serve(const Invocation& invocation) {
  ServeVerbOptions options;
  CommandLine line(
      "serve", "MODEL [options]",
      "Serves a model over OpenAI's HTTP API, each request with or without WeMask, and "
      "a page that shows both answers side by side.",
      invocation.arguments);
  options.declare(line);
  if (!line.parse()) return print_help(line);
  const auto path = single_model(line, "serve");
  options.resolve();
  StopSignals signals;
  Console console(options.quiet);
  warn_of_exposure(options, console);
  keep_freed_memory();
  const int threads = options.compute.thread_count();
  set_threads(threads);
  const auto model = open_model(path, options.compute, console.log());
  const auto tokenizer = open_tokenizer(path, "a server needs the model's tokenizer");
  auto mask = mask_for(options.mask, model, console.log(), options.compute.adapter);
  const ServedModel served{
      .model = model,
      .tokenizer = tokenizer,
      .id = options.alias.empty() ? model_name(path) : options.alias,
      .chat_format = choose_chat_format(options.chat_format, tokenizer, console.log()),
      .context = options.context > 0 ? options.context : model.config().context,
      .parse_special = options.parse_special,
      .seed = static_cast<std::uint64_t>(options.compute.seed)};
  Engine engine(model, &tokenizer,
                {.generator = {.max_rows = options.max_batch,
                               .context = options.context,
                               .prefix_cache_bytes = options.prefix_cache << 20},
                 .queue = options.queue});
  engine.run([threads] { set_threads(threads); });
  MaskChooser masks(model, std::move(mask), [&] {
    FoundMassive found;
    engine.run([&] { found = find_massive(path, model, {}); });
    return found;
  });
  Service service(served, engine, masks,
                  {.host = options.host,
                   .api_key = options.api_key,
                   .origins = options.origins,
                   .time_limit = std::chrono::seconds(options.time_limit)});
  HttpServer server({.host = options.host,
                     .port = static_cast<int>(options.port),
                     .max_body_bytes = static_cast<std::size_t>(options.max_body) << 20U,
                     .max_connections = static_cast<std::size_t>(options.max_connections),
                     .post_paths = Service::post_paths()},
                    service);
  console.note(str_cat("model ", served.id, ", ",
                       served.chat_format ? str_cat("chat format ", served.chat_format->name)
                                          : std::string("no known chat format"),
                       options.mask.given() ? ", masked unless a request says otherwise" : ""));
  std::thread connections([&] { server.run(); });
  signals.ready();
  write_error_text(str_cat("listening on ", server.url(), "\n"));
  signals.wait();
  finish(engine, server, signals, console);
  connections.join();
  return 0;
}

}  // namespace onset::app
