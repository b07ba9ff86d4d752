// SPDX-License-Identifier: Apache-2.0
#include "service/admin_pages.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>

namespace millrace {

namespace {

using Seconds = std::chrono::duration<double>;

HttpAnswer page(unsigned status, const boost::json::object& content) {
  return {.status = status, .type = "application/json", .body = serialize(content) + "\n"};
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
  return page(404, {{"error", {{"message", "there are /metrics /livez /readyz /streams"}}}});
}

std::vector<StreamLine> list_streams(const StreamTable& table) {
  std::vector<StreamLine> lines;
  const Time now = Clock::now();
  table.each([&](LiveStream& live) {
    const Stream& stream = live.stream();
    lines.push_back(
        {.name = live.name(),
         .pipeline = live.pipeline().name(),
         .frames = stream.position(),
         .signal_s = static_cast<double>(stream.position()) / live.pipeline().options().frames.rate,
         .age_s = Seconds(now - live.opened()).count(),
         .paused = stream.paused(),
         .connected = live.attached()});
  });
  return lines;
}

HttpAnswer streams_list_page(const std::vector<StreamLine>& lines) {
  boost::json::array streams;
  for (const StreamLine& line : lines)
    streams.push_back({{"stream", line.name},
                       {"pipeline", line.pipeline},
                       {"frames", line.frames},
                       {"signal_s", line.signal_s},
                       {"age_s", line.age_s},
                       {"paused", line.paused},
                       {"connected", line.connected}});
  return page(200, {{"streams", std::move(streams)}});
}

}  // namespace millrace
