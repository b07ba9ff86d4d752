// SPDX-License-Identifier: Apache-2.0
#include "service/config/protocol_options.h"

#include <algorithm>
#include <string>
#include <utility>

#include "service/log/printable.h"

namespace millrace {
namespace {

using Name = ProtocolOptions::Name;

// The names of all protocols: "a" or "b".
std::string names() {
  std::string all;
  for (const Name name : values_of<Name>())
    all += (all.empty() ? "" : " or ") + in_quotes(name_of(name));
  return all;
}

bool has_pipeline(const Options& options, const std::string& name) {
  return std::ranges::find(options.pipelines, name, &PipelineOptions::name) !=
         options.pipelines.end();
}

std::string default_pipeline(const Options& options) {
  const std::string name = ModelPipelines().pipeline;
  return has_pipeline(options, name) || options.pipelines.empty() ? name
                                                                  : options.pipelines.front().name;
}

ModelPipelines read_pipelines(Section& section, const Options& options) {
  constexpr std::string_view must = "must be the name of a [[pipeline]]";
  ModelPipelines pipelines;
  pipelines.pipeline = section.text("pipeline", default_pipeline(options));
  if (!options.pipelines.empty() && !has_pipeline(options, pipelines.pipeline))
    section.wrong("pipeline", std::string(must));
  for (auto& [model, pipeline] :
       section.named_texts("models", R"(must be a table like { "whisper" = "english" })")) {
    if (!has_pipeline(options, pipeline))
      section.wrong("models", "each value " + std::string(must) + ": there is no " + pipeline);
    pipelines.models[model] = pipeline;
  }
  return pipelines;
}

// The listeners before this one.
std::vector<Listener> listeners(const ListenOptions& listen,
                                const std::vector<ProtocolOptions>& protocols) {
  std::vector<Listener> all{{"listen.websocket", listen.websocket}, {"listen.admin", listen.admin}};
  if (listen.zeromq) all.push_back({"listen.zeromq", *listen.zeromq});
  if (listen.workers_remote) all.push_back({"listen.workers_remote", *listen.workers_remote});
  for (const ProtocolOptions& protocol : protocols)
    if (protocol.listen) all.push_back({"listen of a protocol before it", *protocol.listen});
  return all;
}

ProtocolOptions read_protocol(Section& section, const Options& options,
                              const std::vector<ProtocolOptions>& before) {
  ProtocolOptions protocol;
  const auto name = value_named<Name>(section.text("name", ""));
  protocol.name = name.value_or(Name{});
  if (section.has("listen")) {
    protocol.listen = read_address(section, "listen", {});
    check_listener(section, {"listen", *protocol.listen, options.tls.on(), "[tls]"},
                   listeners(options.listen, before), options.listen.plain);
  } else if (std::ranges::any_of(before, [&](const ProtocolOptions& other) {
               return other.name == protocol.name && !other.listen;
             })) {
    section.wrong("name", "a protocol of this name has no listen either: its path is in use");
  }
  protocol.tenant = section.text("tenant", "");
  if (!protocol.tenant.empty() && (!protocol.listen || options.access.tenants.empty()))
    section.wrong("tenant", "needs a listen of its own, and [access] tenants");
  protocol.pipelines = read_pipelines(section, options);
  section.refuse_unknown();
  if (!name) section.wrong("name", "must be " + names());
  return protocol;
}

}  // namespace

std::vector<ProtocolOptions> read_protocols(Section& root, const Options& options) {
  std::vector<ProtocolOptions> protocols;
  if (!root.has("protocol")) {
    for (const Name name : values_of<Name>())
      protocols.push_back({.name = name, .pipelines = {.pipeline = default_pipeline(options)}});
    return protocols;
  }
  for (Section& section : root.sections("protocol"))
    protocols.push_back(read_protocol(section, options, protocols));
  return protocols;
}

}  // namespace millrace
