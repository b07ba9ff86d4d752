// SPDX-License-Identifier: Apache-2.0
#include "service/admin_pages.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

#include "service/json_object.h"

namespace millrace {

namespace {

using Seconds = std::chrono::duration<double>;

HttpAnswer page(unsigned status, const boost::json::object& content) {
  return {.status = status, .type = "application/json", .body = serialize(content) + "\n"};
}

HttpAnswer page(const JsonObject& content) {
  return {.status = 200, .type = "application/json", .body = content.done() + "\n"};
}

template <class Line, class Print>
std::string array_of(const std::vector<Line>& lines, Print print) {
  std::string all;
  for (const Line& line : lines) all += (all.empty() ? "" : ",") + print(line);
  return "[" + all + "]";
}

StreamLine line_of(LiveStream& live, Time now) {
  const Stream& stream = live.stream();
  const FrameType& type = live.pipeline().options().frames;
  const auto time_of = [&](std::uint64_t frames) {
    return std::chrono::duration_cast<Duration>(Seconds(static_cast<double>(frames) / type.rate));
  };
  return {.name = live.name(),
          .pipeline = live.pipeline().name(),
          .frames = stream.position(),
          .signal = time_of(stream.position()),
          .age = now - live.opened(),
          .held = time_of(stream.held_bytes() / type.bytes()),
          .paused = stream.paused(),
          .connected = live.attached(),
          .peer = live.peer()};
}

std::string text_of(const WorkerStatus& worker, std::string_view pipeline) {
  JsonObject object;
  object.text("worker", worker.name)
      .text("pipeline", pipeline)
      .truth("remote", worker.remote)
      .truth("leaving", worker.leaving)
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

boost::json::array list_of(const std::vector<std::string>& texts) {
  return boost::json::array(texts.begin(), texts.end());
}

}  // namespace

HttpAnswer alive_page(const std::vector<std::string>& reasons) {
  if (reasons.empty()) return page(200, {{"alive", true}});
  return page(503, {{"alive", false}, {"reasons", list_of(reasons)}});
}

HttpAnswer ready_page(const std::vector<std::string>& reasons) {
  return page(reasons.empty() ? 200 : 503,
              {{"ready", reasons.empty()}, {"reasons", list_of(reasons)}});
}

HttpAnswer missing_page() {
  return page(404,
              {{"error", {{"message", "there are /metrics /livez /readyz /streams /workers"}}}});
}

StreamList list_streams(const StreamTable& table, Time now) {
  std::vector<LiveStream*> streams;
  table.each([&](LiveStream& live) { streams.push_back(&live); });
  StreamList list{.lines = {}, .total = streams.size()};
  const auto shown = streams.begin() + std::min(streams.size(), most_streams);
  std::ranges::partial_sort(streams, shown, {}, &LiveStream::opened);
  for (auto at = streams.begin(); at != shown; ++at) list.lines.push_back(line_of(**at, now));
  return list;
}

HttpAnswer streams_page(std::vector<StreamList> parts) {
  std::vector<StreamLine> lines;
  std::size_t total = 0;
  for (StreamList& part : parts) {
    total += part.total;
    std::ranges::move(part.lines, std::back_inserter(lines));
  }
  std::ranges::sort(lines, std::greater(), &StreamLine::age);
  if (lines.size() > most_streams) lines.resize(most_streams);
  return page(JsonObject()
                  .number("total", total)
                  .raw("streams", array_of(lines, [](const StreamLine& line) {
                         return JsonObject()
                             .text("stream", line.name)
                             .text("pipeline", line.pipeline)
                             .number("frames", line.frames)
                             .seconds("signal_s", line.signal)
                             .seconds("age_s", line.age)
                             .seconds("held_s", line.held)
                             .truth("paused", line.paused)
                             .truth("connected", line.connected)
                             .text("peer", line.peer)
                             .done();
                       })));
}

HttpAnswer workers_page(const std::vector<WorkerList>& pipelines) {
  std::string all;
  for (const WorkerList& list : pipelines)
    for (const WorkerStatus& worker : list.workers)
      all += (all.empty() ? "" : ",") + text_of(worker, list.pipeline);
  return page(JsonObject().raw("workers", "[" + all + "]"));
}

}  // namespace millrace
