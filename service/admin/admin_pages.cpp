// SPDX-License-Identifier: Apache-2.0
#include "service/admin/admin_pages.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "service/admin/json_object.h"

namespace millrace {

namespace {

HttpAnswer page(const JsonObject& content, unsigned status = 200) {
  return {.status = status, .type = "application/json", .body = content.done() + "\n"};
}

std::string text_of(const StreamLine& line) {
  return JsonObject()
      .text("stream", line.name)
      .text("pipeline", line.pipeline)
      .text("format", line.format)
      .decimal("rate", line.rate)
      .seconds("chunk_s", line.chunk, 6)
      .number("frames", line.frames)
      .seconds("signal_s", line.signal)
      .seconds("age_s", line.age)
      .seconds("held_s", line.held)
      .number("held_bytes", line.held_bytes)
      .boolean("paused", line.paused)
      .boolean("connected", line.connected)
      .text("peer", line.peer)
      .done();
}

std::string text_of(const WorkerStatus& worker, std::string_view pipeline) {
  JsonObject object;
  object.text("worker", worker.name)
      .text("pipeline", pipeline)
      .boolean("remote", worker.remote)
      .boolean("leaving", worker.leaving)
      .number("slots", worker.slots)
      .number("slots_used", worker.slots_used)
      .number("credits", worker.credits)
      .number("in_flight", worker.in_flight)
      .number("batches", worker.batches)
      .seconds("compute_p50_s", worker.compute_p50, 6)
      .seconds("compute_p99_s", worker.compute_p99, 6)
      .seconds("oldest_batch_s", worker.oldest)
      .seconds("attached_s", worker.attached);
  if (const auto& failure = worker.last_failure)
    object.raw("last_failure",
               JsonObject().text("why", failure->why).seconds("ago_s", failure->ago).done());
  else
    object.raw("last_failure", "null");
  return object.done();
}

}  // namespace

HttpAnswer alive_page(const std::vector<std::string>& reasons) {
  if (reasons.empty()) return page(JsonObject().boolean("alive", true));
  return page(JsonObject().boolean("alive", false).texts("reasons", reasons), 503);
}

HttpAnswer ready_page(const std::vector<std::string>& reasons) {
  return page(JsonObject().boolean("ready", reasons.empty()).texts("reasons", reasons),
              reasons.empty() ? 200 : 503);
}

HttpAnswer missing_page() {
  const std::string error =
      JsonObject()
          .text("message",
                "no such page; the pages are / /metrics /livez /readyz /status /streams /workers "
                "/log /history")
          .done();
  return page(JsonObject().raw("error", error), 404);
}

HttpAnswer streams_page(const StreamQuery& query, std::vector<StreamList> parts) {
  std::vector<StreamLine> lines;
  std::size_t total = 0;
  for (StreamList& part : parts) {
    total += part.total;
    std::ranges::move(part.lines, std::back_inserter(lines));
  }
  sort(lines, query.order, query.limit);
  std::string all;
  for (const StreamLine& line : lines) all.append(all.empty() ? "" : ",").append(text_of(line));
  return page(JsonObject().number("total", total).raw("streams", "[" + all + "]"));
}

HttpAnswer workers_page(const std::vector<WorkerList>& pipelines) {
  std::string all;
  for (const WorkerList& list : pipelines)
    for (const WorkerStatus& worker : list.workers)
      all += (all.empty() ? "" : ",") + text_of(worker, list.pipeline);
  return page(JsonObject().raw("workers", "[" + all + "]"));
}

HttpAnswer log_page(RecentLog& log) {
  log.collect();
  std::string all;
  for (const std::string& line : log.lines()) all += (all.empty() ? "" : ",") + line;
  return page(JsonObject().raw("log", "[" + all + "]"));
}

}  // namespace millrace
