// SPDX-License-Identifier: Apache-2.0
#include "checking/plan/answer_edits.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace millrace;
using namespace millrace::checking;

namespace {

bool equal_answers(const Answer& a, const Answer& b, double tolerance) {
  return answer_difference(a, b, tolerance, 0).has_value();
}

bool json_equal(const std::string& a, const std::string& b, double tolerance = 0) {
  return equal_answers({.kind = Answer::Kind::json, .data = a},
                       {.kind = Answer::Kind::json, .data = b}, tolerance);
}

template <class Value>
Answer bytes_of(const std::vector<Value>& values) {
  std::string data(values.size() * sizeof(Value), '\0');
  std::memcpy(data.data(), values.data(), data.size());
  return {.kind = Answer::Kind::bytes, .data = data};
}

// The definition, with the whole table.
std::size_t whole_table(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = i + j;
        continue;
      }
      table[i][j] = std::min(
          {table[i - 1][j - 1] + (a[i - 1] != b[j - 1]), table[i - 1][j] + 1, table[i][j - 1] + 1});
    }
  return table[a.size()][b.size()];
}

}  // namespace

TEST_CASE("without a tolerance answers must be the same bytes, and of one kind") {
  CHECK(json_equal("0.5", "0.5"));
  CHECK_FALSE(json_equal("0.5", "0.50"));
  CHECK_FALSE(equal_answers({.kind = Answer::Kind::bytes, .data = "1"},
                            {.kind = Answer::Kind::json, .data = "1"}, 0));
  CHECK_FALSE(equal_answers({}, {.kind = Answer::Kind::json, .data = "null"}, 1));
}

TEST_CASE("a text equals the JSON string with this text") {
  CHECK(equal_answers({.kind = Answer::Kind::text, .data = "a\"b"},
                      {.kind = Answer::Kind::json, .data = R"("a\"b")"}, 0));
}

TEST_CASE("an error equals any other error, and no answer") {
  CHECK(equal_answers({.kind = Answer::Kind::error, .data = "a"},
                      {.kind = Answer::Kind::error, .data = "b"}, 0));
  CHECK_FALSE(equal_answers({.kind = Answer::Kind::error}, {}, 1));
}

TEST_CASE("the end of a segment is a part of the answer") {
  CHECK_FALSE(equal_answers({.endpoint = true}, {}, 1));
}

TEST_CASE("numbers anywhere in JSON may differ by the tolerance") {
  CHECK(json_equal("[0.5,{\"a\":1}]", "[0.505,{\"a\":1.009}]", 0.01));
  CHECK_FALSE(json_equal("[0.5,{\"a\":1}]", "[0.505,{\"a\":1.02}]", 0.01));
  CHECK(json_equal("1000", "1009", 0.01));
  CHECK_FALSE(json_equal("1000", "1011", 0.01));
  CHECK_FALSE(json_equal("[1]", "[1,1]", 0.5));
  CHECK_FALSE(json_equal("{\"a\":1}", "{\"b\":1}", 0.5));
  CHECK_FALSE(json_equal("true", "false", 1));
  CHECK_FALSE(json_equal("1", "\"1\"", 1));
}

TEST_CASE("edits of all texts in an answer are counted, up to a limit") {
  const Answer a{.kind = Answer::Kind::json, .data = R"({"text":"She's young","words":["äö",""]})"};
  const Answer b{.kind = Answer::Kind::json, .data = R"({"text":"It's young","words":["äx","."]})"};
  CHECK(answer_difference(a, b, 0.1, 5)->edits == 5);
  CHECK_FALSE(answer_difference(a, b, 0.1, 4));
  CHECK_FALSE(answer_difference(a, b, 0, 5));
  CHECK(text_length(a) == 13);
  CHECK(text_length({.kind = Answer::Kind::text, .data = "äö"}) == 2);
  CHECK(text_length({.kind = Answer::Kind::bytes, .data = "abc"}) == 0);
}

TEST_CASE("the largest difference of numbers is measured as a tolerance") {
  const auto largest = [](const Answer& a, const Answer& b) {
    return answer_difference(a, b, 0.1, 0)->numbers;
  };
  CHECK(largest({.kind = Answer::Kind::json, .data = "[0.5,200]"},
                {.kind = Answer::Kind::json, .data = "[0.501,190]"}) == Approx(0.05));
  CHECK(largest(bytes_of<float>({0, 1}), bytes_of<float>({0.25F / 4, 1})) == Approx(0.0625));
}

TEST_CASE("bytes are compared as floats if they can be, otherwise as samples") {
  CHECK(equal_answers(bytes_of<float>({0, 1, -3}), bytes_of<float>({0.001F, 1, -3}), 0.01));
  CHECK_FALSE(equal_answers(bytes_of<float>({0, 1}), bytes_of<float>({0.1F, 1}), 0.01));
  using Samples = std::vector<std::int16_t>;
  CHECK(equal_answers(bytes_of(Samples{100, -200, 50, 7}), bytes_of(Samples{101, -199, 50, 7}),
                      0.01));
  CHECK_FALSE(equal_answers(bytes_of(Samples{100, -200}), bytes_of(Samples{9000, -200}), 0.01));
  CHECK_FALSE(equal_answers(bytes_of(Samples{1}), bytes_of(Samples{1, 1}), 1));
  CHECK_FALSE(equal_answers(bytes_of(Samples{100}), bytes_of(Samples{101}), 0));
}

TEST_CASE("a few floats may be tiny, infinite or not numbers") {
  std::vector<float> one(40, 0.5F);
  one[1] = 1e-30F;
  one[2] = std::numeric_limits<float>::quiet_NaN();
  one[3] = std::numeric_limits<float>::infinity();
  auto other = one;
  other[0] = 0.50001F;
  CHECK(equal_answers(bytes_of(one), bytes_of(other), 1e-4));
  other[0] = 0.51F;
  CHECK_FALSE(equal_answers(bytes_of(one), bytes_of(other), 1e-4));
  other[0] = one[0];
  other[3] = -other[3];
  CHECK_FALSE(equal_answers(bytes_of(one), bytes_of(other), 1e-4));
  other[3] = 1;
  CHECK_FALSE(equal_answers(bytes_of(one), bytes_of(other), 1e-4));
  other[3] = one[3];
  other[2] = 0;
  CHECK_FALSE(equal_answers(bytes_of(one), bytes_of(other), 1e-4));
}

TEST_CASE("samples between many zeros are no floats") {
  std::vector<std::int16_t> one(400), other;
  one[7] = 100;
  other = one;
  other[7] = 3000;
  CHECK_FALSE(equal_answers(bytes_of(one), bytes_of(other), 1e-2));
}

TEST_CASE("the edit distance is that of the whole table, up to the limit") {
  std::mt19937 random(1);
  const auto text = [&] {
    std::string letters(random() % 12, ' ');
    for (char& each : letters) each = "abc"[random() % 3];
    return letters;
  };
  for (int i = 0; i < 3000; ++i) {
    const std::string a = text(), b = text();
    const std::size_t distance = whole_table(a, b), most = random() % 14;
    CAPTURE(a, b, most);
    if (distance <= most)
      CHECK(edit_distance(a, b, most) == distance);
    else
      CHECK(edit_distance(a, b, most) > most);
  }
}
