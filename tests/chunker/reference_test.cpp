// SPDX-License-Identifier: Apache-2.0
// Thousands of random streams, compared with the executable contract in one run of it.

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/chunker/events.h"
#include "tests/chunker/row_values.h"
#include "tests/support/temporary_directory.h"

namespace millrace {
namespace {

namespace json = boost::json;

json::object question(const Case& one) {
  return {{"spec", to_json(one.rule.spec)},
          {"events", to_json(one.events)},
          {"align", name_of(one.rule.align)},
          {"pad", name_of(one.rule.pad)}};
}

std::uint32_t width_of(const Case& one) {
  std::uint32_t size = 0;
  for (const Event& event : one.events)
    if (event.kind == Event::Kind::size)
      size = std::max(size, static_cast<std::uint32_t>(event.count));
  return width_for(one.rule.spec, size);
}

// Puts messages between the events.
void add_messages(Case& one, std::mt19937_64& random) {
  for (auto i = one.events.size(); i-- > 0;)
    if (random() % 4 == 0)
      one.events.insert(one.events.begin() + static_cast<std::ptrdiff_t>(i), message());
}

json::array ask_reference(const json::array& questions) {
  const TemporaryDirectory directory;
  const std::string cases = directory / "cases.json", rows = directory / "rows.json";
  std::ofstream(cases) << json::serialize(questions);
  const std::string command = MILLRACE_REFERENCE " " + cases + " " + rows;
  REQUIRE(std::system(command.c_str()) == 0);
  std::ifstream in(rows);
  return json::parse(std::string(std::istreambuf_iterator<char>(in), {})).as_array();
}

TEST_CASE("random streams give the rows and values of the executable contract", "[reference]") {
  std::mt19937_64 random(20240501);
  std::vector<Case> cases;
  json::array questions;
  for (int i = 0; i < 5000; ++i) {
    cases.push_back(random_case(random));
    add_messages(cases.back(), random);
    questions.push_back(question(cases.back()));
  }
  const json::array answers = ask_reference(questions);
  REQUIRE(answers.size() == cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO(json::serialize(questions[i]));
    const auto rows = rows_of(cases[i].rule.spec, cases[i].events);
    REQUIRE(columns(rows) == json::value_to<Columns>(answers[i].at("rows")));
    REQUIRE(reference_columns(cases[i].rule.spec, cases[i].events) == columns(rows));
    const auto& [rule, events] = cases[i];
    REQUIRE(messages_of(rule.spec, events) == json::value_to<Columns>(answers[i].at("messages")));
    REQUIRE(reference_messages(rule.spec, events) == messages_of(rule.spec, events));
    json::array values;
    for (const Row& row : rows)
      values.push_back(row_values(row, cases[i].rule, width_of(cases[i])));
    REQUIRE(values == answers[i].at("values").as_array());
  }
}

}  // namespace
}  // namespace millrace
