// The API: which path does what. Torch-free.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "onset/serve/calls.h"
#include "onset/serve/engine.h"
#include "onset/serve/http_server.h"
#include "onset/serve/mask_field.h"
#include "onset/serve/served_model.h"

namespace onset {

struct ServiceOptions {
  // The address that the server listens on: without a key, requests must name it (or this machine)
  // as their Host.
  std::string host = "127.0.0.1";
  std::string api_key = {};  // empty: none is asked for
  // Origins whose pages may use the server, "*" for all; the server's own page always may.
  std::vector<std::string> origins = {};
  std::chrono::seconds time_limit{600};  // of a request; 0: none
};

class Service final : public HttpHandler {
 public:
  // Everything must outlive it.
  Service(const ServedModel& served, Engine& engine, MaskChooser& masks, ServiceOptions options);

  // Paths with POST.
  [[nodiscard]] static std::vector<std::string> post_paths();

  [[nodiscard]] std::optional<HttpReply> refuse(const HttpRequest& request) override;
  [[nodiscard]] HttpReply handle(const HttpRequest& request) override;
  [[nodiscard]] std::string error_body(int status, const std::string& message) override;

 private:
  [[nodiscard]] HttpReply route(const HttpRequest& request);
  [[nodiscard]] HttpReply complete(const HttpRequest& request, CompletionCall call);
  [[nodiscard]] HttpReply answer_whole(const HttpRequest& request, const CompletionCall& call);
  [[nodiscard]] HttpReply answer_stream(std::shared_ptr<CompletionCall> call);
  [[nodiscard]] HttpReply sinks(const Json& body);
  [[nodiscard]] OrderedJson models() const;
  [[nodiscard]] OrderedJson model() const;
  [[nodiscard]] OrderedJson health() const;
  void allow_origin(const HttpRequest& request, HttpReply& reply) const;
  [[nodiscard]] bool is_allowed_origin(const HttpRequest& request) const;
  [[nodiscard]] bool is_allowed_host(const HttpRequest& request) const;

  const ServedModel& served_;
  Engine& engine_;
  MaskChooser& masks_;
  ServiceOptions options_;
  std::int64_t started_;
};

}  // namespace onset
