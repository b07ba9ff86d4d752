// SPDX-License-Identifier: Apache-2.0
#include "service/admin/readiness.h"

#include <algorithm>

#include "base/result.h"
#include "service/admin/admin_pages.h"
#include "service/admin/json_object.h"
#include "transport/http/query_parameters.h"
#include "transport/websocket/upgrade.h"

namespace millrace {

namespace {

std::string no_worker(const Readiness::Pipeline& pipeline) {
  return "pipeline " + pipeline.name + " has no worker";
}

std::string names(const std::vector<Readiness::Pipeline>& pipelines) {
  std::string all;
  for (const auto& pipeline : pipelines) all += (all.empty() ? "" : ", ") + pipeline.name;
  return all;
}

// Why one pipeline accepts no streams; `value` is percent-encoded.
Result<std::vector<std::string>, RequestError> reasons_of(const Readiness& readiness,
                                                          std::string_view value) {
  const auto& all = readiness.pipelines;
  const auto name = percent_decoded(value);
  const auto found = std::ranges::find(all, name.value_or(""), &Readiness::Pipeline::name);
  if (found == all.end())
    return RequestError{.status = 404,
                        .parameter = "pipeline",
                        .message = "there is no such pipeline; there are: " + names(all)};
  std::vector<std::string> reasons = readiness.service;
  if (!found->has_worker) reasons.push_back(no_worker(*found));
  return reasons;
}

}  // namespace

std::vector<std::string> Readiness::reasons() const {
  std::vector<std::string> all = service;
  for (const Pipeline& pipeline : pipelines)
    if (pipeline.required && !pipeline.has_worker) all.push_back(no_worker(pipeline));
  return all;
}

std::vector<std::string> Readiness::degraded() const {
  std::vector<std::string> all = impairments;
  for (const Pipeline& pipeline : pipelines)
    if (!pipeline.required && !pipeline.has_worker) all.push_back(no_worker(pipeline));
  return all;
}

HttpAnswer ready_page(const Readiness& readiness, std::string_view target) {
  const auto parameters = parameters_of(target);
  if (parameters.empty()) return ready_page(readiness.reasons());
  if (parameters.size() > 1 || parameters.front().first != "pipeline")
    return answer_to(RequestError{.message = "the only parameter is pipeline, given once"});
  const auto reasons = reasons_of(readiness, parameters.front().second);
  return reasons ? ready_page(*reasons) : answer_to(reasons.error());
}

HttpAnswer status_page(const Readiness& readiness, bool draining) {
  JsonObject pipelines;
  for (const auto& pipeline : readiness.pipelines)
    pipelines.text(pipeline.name, pipeline.has_worker ? "ready"
                                  : pipeline.required ? "unready"
                                                      : "degraded");
  const auto reasons = readiness.reasons();
  return {.body = JsonObject()
                      .boolean("ready", reasons.empty())
                      .boolean("draining", draining)
                      .texts("reasons", reasons)
                      .texts("degraded", readiness.degraded())
                      .raw("pipelines", pipelines.done())
                      .done() +
                  "\n"};
}

}  // namespace millrace
