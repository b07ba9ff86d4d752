// SPDX-License-Identifier: Apache-2.0
// docs/metrics.md and the exported metrics have the same families, types and label values, and the
// same descriptions.
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "monitoring/exporter.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

struct Described {
  std::string type;
  std::set<std::string> labels;  // "key=value", or the key if any value is allowed
  std::string help;
};
using Described_by_name = std::map<std::string, Described>;

bool any_value(const std::string& key) {
  return std::set<std::string>{"pipeline", "device", "version", "revision", "compiler", "cuda"}
      .contains(key);
}

// Without links and code marks.
std::string plain(const std::string& markdown) {
  const std::regex link(R"(\[([^\]]*)\]\([^)]*\))"), code("`");
  return std::regex_replace(std::regex_replace(markdown, link, "$1"), code, "");
}

// Without the period: a document may say more in the same sentence.
std::string first_words(const std::string& help) { return help.substr(0, help.size() - 1); }

Described_by_name documented() {
  std::ifstream file(MILLRACE_METRICS_DOCUMENT);
  REQUIRE(file);
  const std::regex row(R"(\| `(\w+)` \| (\w+)(?: \w+)? \| ([^|]+) \| ([^|]+) \|)");
  const std::regex label(R"((\w+)(?:=([\w/]+))?)");
  Described_by_name families;
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (!std::regex_match(line, match, row)) continue;
    Described& family = families[match[1]];
    family.type = match[2];
    const std::string labels = match[3];
    family.help = plain(match[4]);
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
  const std::regex type(R"(# TYPE (\w+) (\w+))"), help(R"(# HELP (\w+) (.*))");
  const std::regex label(R"re((\w+)="([^"]*)")re");
  Described_by_name families;
  std::istringstream lines(text);
  std::string current;
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, help)) families[match[1]].help = match[2];
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

// The bounds of a histogram in a line such as "- IO: 0.1, 0.5 ms, 1, 10 s": a unit applies to
// the numbers before it, up to the previous unit.
std::set<double> bounds_in(const std::string& line) {
  const std::map<std::string, double> units{
      {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"", 1}, {"B", 1}, {"KiB", 1024}, {"MiB", 1024 * 1024}};
  const std::regex bound(R"(([\d.]+)(?: (µs|ms|s|B|KiB|MiB))?(?:,|$))");
  std::set<double> all;
  std::vector<double> without_unit;
  const std::string bounds = line.substr(line.find(':'));
  for (std::sregex_iterator it(bounds.begin(), bounds.end(), bound), end; it != end; ++it) {
    without_unit.push_back(std::stod((*it)[1]));
    if (!(*it)[2].matched) continue;
    for (const double value : without_unit) all.insert(value * units.at((*it)[2]));
    without_unit.clear();
  }
  for (const double value : without_unit) all.insert(value);
  return all;
}

// The bounds of the first histogram of this family.
std::set<double> exported_bounds(const std::string& text, const std::string& family) {
  const std::regex bucket(family + R"re(_bucket\{.*le="([\d.e+-]+)"\} .*)re");
  std::set<double> bounds;
  std::istringstream lines(text);
  std::smatch match;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, match, bucket)) bounds.insert(std::stod(match[1]));
  return bounds;
}

// The metrics of a new service with TLS and one of each source, and those of a server of batches.
std::string exported_text() {
  ServiceStats service;
  service.certificate_expires.set(1);
  ThreadStats thread;
  TransportStats transport;
  StreamStats streams;
  LaneStats lanes;
  lanes.copies = std::vector<CopyStats>(1);
  DeviceStats device;
  recording::RecordingStats recorder;
  recording::TapStats tap;
  Exporter exporter({.service = {&service},
                     .threads = {&thread},
                     .websocket = {&transport},
                     .zmq = {},
                     .zmq_sockets = {},
                     .pipelines = {{"default", 16000, {&streams}, {&lanes}}},
                     .devices = {{"cuda:0", {&device}}},
                     .recorder = {&recorder},
                     .taps = {&tap}});
  training::TrainingStats training;
  Exporter of_training({.service = {&service},
                        .threads = {&thread},
                        .websocket = {},
                        .zmq = {},
                        .zmq_sockets = {},
                        .pipelines = {},
                        .training = {&training}});
  return exporter.text(Time(1s)) + of_training.text(Time(1s));
}

std::set<float> rounded(const std::set<double>& values) { return {values.begin(), values.end()}; }

}  // namespace

TEST_CASE("the buckets of each histogram equal those of the document") {
  std::ifstream file(MILLRACE_METRICS_DOCUMENT);
  const std::regex bounds_line(R"(- ([A-Z0-9]+): .*)"), row(R"(\| `(\w+)` \| histogram (\w+) .*)");
  std::map<std::string, std::string> kinds, bounds;  // kind of each family; line of each kind
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (std::regex_match(line, match, bounds_line)) bounds[match[1]] = line;
    if (std::regex_match(line, match, row)) kinds[match[1]] = match[2];
  }
  const std::string text = exported_text();
  CHECK(kinds.size() > 10);
  for (const auto& [family, kind] : kinds) {
    INFO(family << " " << kind);
    CHECK(rounded(exported_bounds(text, family)) == rounded(bounds_in(bounds.at(kind))));
  }
}

TEST_CASE("the exported metrics equal the documented ones") {
  const auto document = documented(), metrics = exported(exported_text());
  CHECK(document.size() > 50);
  for (const auto& [name, family] : document) {
    INFO(name);
    REQUIRE(metrics.contains(name));
    CHECK(metrics.at(name).type == family.type);
    CHECK(metrics.at(name).labels == family.labels);
    CHECK_THAT(family.help, Catch::Matchers::StartsWith(first_words(metrics.at(name).help)));
  }
  for (const auto& [name, family] : metrics) {
    INFO(name);
    CHECK(document.contains(name));
  }
}
