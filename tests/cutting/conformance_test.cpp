// SPDX-License-Identifier: Apache-2.0
// Every case of tests/conformance/chunks.json, messages.json and opens.json.
#include <catch2/catch.hpp>
#include <string>

#include "chunker/presets.h"
#include "cutting/cutter.h"
#include "tests/chunker/events.h"
#include "tests/chunker/row_values.h"

namespace millrace {
namespace {

namespace json = boost::json;

const json::value& vectors() {
  static const json::value all = conformance("chunks.json");
  return all;
}

std::vector<Row> cut(const ChunkRule& rule, const std::vector<Event>& events) {
  std::vector<Row> rows;
  Cutter cutter(rule);
  for (const Event& event : events) {
    cutter.add(event);
    while (const auto row = cutter.next()) rows.push_back(*row);
  }
  return rows;
}

Columns columns_from(const json::value& rows) { return json::value_to<Columns>(rows); }

TEST_CASE("the cutter and its C++ reference give the rows of every conformance case",
          "[conformance]") {
  const json::array& cases = vectors().at("cases").as_array();
  REQUIRE(cases.size() == 363);
  for (const json::value& one : cases) {
    INFO(json::serialize(one));
    const Spec spec = spec_from(one.at("spec"));
    const auto events = events_from(one.at("events"));
    CHECK(columns(cut({.spec = spec}, events)) == columns_from(one.at("rows")));
    CHECK(reference_columns(spec, events) == columns_from(one.at("rows")));
  }
}

TEST_CASE("the rows of every conformance case of a stream that is opened anew are as given",
          "[conformance]") {
  const json::value all = conformance("opens.json");
  const json::array& cases = all.at("cases").as_array();
  REQUIRE(cases.size() == 94);
  for (const json::value& one : cases) {
    INFO(json::serialize(one));
    const Spec spec = spec_from(one.at("spec"));
    const auto events = events_from(one.at("events"));
    const auto rows = cut({.spec = spec}, events);
    CHECK(columns(rows) == columns_from(one.at("rows")));
    CHECK(reference_columns(spec, events) == columns_from(one.at("rows")));
    const bool anew = events.front().opened_anew();
    CHECK(rows.front().is(flag::start) != anew);
  }
}

TEST_CASE("every conformance case of messages has them at their position, in their row",
          "[conformance]") {
  const json::value all = conformance("messages.json");
  const json::array& cases = all.at("cases").as_array();
  REQUIRE(cases.size() == 44);
  for (const json::value& one : cases) {
    INFO(json::serialize(one));
    const Spec spec = spec_from(one.at("spec"));
    const auto events = events_from(one.at("events"));
    CHECK(columns(cut({.spec = spec}, events)) == columns_from(one.at("rows")));
    CHECK(messages_of(spec, events) == columns_from(one.at("messages")));
    CHECK(reference_messages(spec, events) == columns_from(one.at("messages")));
  }
}

TEST_CASE("the values of every conformance case are in the right columns", "[conformance]") {
  const json::array& cases = vectors().at("values").as_array();
  REQUIRE(cases.size() == 60);
  for (const json::value& one : cases) {
    INFO(json::serialize(one));
    const ChunkRule rule{spec_from(one.at("spec")), align_from(one.at("align")),
                         pad_from(one.at("pad"))};
    const auto rows = cut(rule, events_from(one.at("events")));
    CHECK(columns(rows) == columns_from(one.at("rows")));
    CHECK(rule.spec.width() == one.at("width").to_number<std::uint32_t>());
    json::array values;
    for (const Row& row : rows) values.push_back(row_values(row, rule, rule.spec.width()));
    CHECK(values == one.at("values"));
  }
}

TEST_CASE("the presets equal those of the conformance file", "[conformance]") {
  const json::object& all = vectors().at("presets").as_object();
  CHECK(presets().size() == all.size());
  for (const auto& [name, preset] : all) {
    INFO(std::string(name));
    const Preset* found = find_preset(std::string_view(name));
    REQUIRE(found != nullptr);
    CHECK(found->target.features == (preset.at("unit").as_string() == "feature"));
    CHECK(found->target.rate == preset.at("rate").to_number<double>());
    CHECK(found->rule == ChunkRule{spec_from(preset.at("spec")), align_from(preset.at("align")),
                                   pad_from(preset.at("pad"))});
  }
}

}  // namespace
}  // namespace millrace
