// SPDX-License-Identifier: Apache-2.0
// docs/metrics.md and what is exported name the same families, types and label values.
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "monitoring/exporter.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

struct Described {
  std::string type;
  std::set<std::string> labels;  // "key=value", or the key where any value may stand
  bool operator==(const Described&) const = default;
};
using Described_by_name = std::map<std::string, Described>;

std::ostream& operator<<(std::ostream& out, const Described& family) {
  out << family.type;
  for (const auto& label : family.labels) out << ' ' << label;
  return out;
}

bool any_value(const std::string& key) {
  return std::set<std::string>{"pipeline", "device", "version", "revision", "compiler", "cuda"}
      .contains(key);
}

Described_by_name documented() {
  std::ifstream file(MILLRACE_METRICS_DOCUMENT);
  REQUIRE(file);
  const std::regex row(R"(\| `(\w+)` \| (\w+)(?: \w+)? \| ([^|]+) \| [^|]+ \|)");
  const std::regex label(R"((\w+)(?:=([\w/]+))?)");
  Described_by_name families;
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (!std::regex_match(line, match, row)) continue;
    Described& family = families[match[1]];
    family.type = match[2];
    const std::string labels = match[3];
    for (std::sregex_iterator it(labels.begin(), labels.end(), label), end; it != end; ++it) {
      if (!(*it)[2].matched) family.labels.insert((*it)[1]);
      std::istringstream values((*it)[2]);
      for (std::string value; std::getline(values, value, '/');)
        family.labels.insert((*it)[1].str() + "=" + value);
    }
  }
  return families;
}

Described_by_name exported(const std::string& text) {
  const std::regex type(R"(# TYPE (\w+) (\w+))");
  const std::regex label(R"re((\w+)="([^"]*)")re");
  Described_by_name families;
  std::istringstream lines(text);
  std::string current;
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, type)) families[current = match[1]].type = match[2];
    if (line[0] == '#') continue;
    REQUIRE(line.rfind(current, 0) == 0);
    for (std::sregex_iterator it(line.begin(), line.end(), label), end; it != end; ++it) {
      const std::string key = (*it)[1], value = (*it)[2];
      if (key != "le") families[current].labels.insert(any_value(key) ? key : key + "=" + value);
    }
  }
  return families;
}

}  // namespace

TEST_CASE("what is exported is what is documented") {
  ServiceStats service;
  ThreadStats thread;
  DoorStats door;
  StreamStats streams;
  LaneStats lanes;
  lanes.copies = std::vector<CopyStats>(1);
  DeviceStats device;
  Exporter exporter({.service = {&service},
                     .threads = {&thread},
                     .websocket = {&door},
                     .zmq = {},
                     .zmq_sockets = {},
                     .worker_sockets = {},
                     .pipelines = {{"default", 16000, {&streams}, {&lanes}}},
                     .devices = {{"cuda:0", {&device}}}});
  const auto document = documented(), metrics = exported(exporter.text(Time(1s)));
  CHECK(document.size() > 50);
  for (const auto& [name, family] : document) {
    INFO(name);
    REQUIRE(metrics.contains(name));
    CHECK(metrics.at(name) == family);
  }
  for (const auto& [name, family] : metrics) {
    INFO(name);
    CHECK(document.contains(name));
  }
}
