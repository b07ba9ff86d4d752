// SPDX-License-Identifier: Apache-2.0
#include "checking/plan/answer_edits.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "schemas/json_text.h"

namespace millrace::checking {
namespace {

namespace json = boost::json;

// The most steps of an edit distance: a second. Longer texts that differ more count as different.
constexpr std::size_t most_steps = 300'000'000;

bool is_json(const Answer& answer) {
  return answer.kind == Answer::Kind::json || answer.kind == Answer::Kind::text;
}

std::string json_text(const Answer& answer) {
  if (answer.kind == Answer::Kind::json) return answer.data;
  std::string text;
  append_string(text, answer.data);
  return text;
}

// Compares numbers, and keeps the largest difference of those that are near.
class Nearness {
 public:
  explicit Nearness(double tolerance) : tolerance_(tolerance) {}

  double largest() const { return largest_; }

  bool near(double a, double b) {
    if (!std::isfinite(a) || !std::isfinite(b)) return a == b || (std::isnan(a) && std::isnan(b));
    const double difference = std::abs(a - b) / std::max({1.0, std::abs(a), std::abs(b)});
    if (difference > tolerance_) return false;
    largest_ = std::max(largest_, difference);
    return true;
  }

 private:
  const double tolerance_;
  double largest_ = 0;
};

// The code points of UTF-8 that was checked on receipt.
std::u32string characters(std::string_view text) {
  std::u32string all;
  for (const char at : text) {
    const auto byte = static_cast<unsigned char>(at);
    if ((byte & 0xc0u) == 0x80u && !all.empty())
      all.back() = all.back() << 6 | (byte & 0x3fu);
    else
      all.push_back(byte);
  }
  return all;
}

// Compares values of JSON, and counts the edits of strings.
class Comparison {
 public:
  Comparison(double tolerance, std::size_t most) : numbers_(tolerance), most_(most) {}

  AnswerDifference difference() const { return {edits_, numbers_.largest()}; }

  bool equal(const json::value& a, const json::value& b) {
    if (a.is_number() && b.is_number())
      return numbers_.near(a.to_number<double>(), b.to_number<double>());
    if (a.is_string() && b.is_string()) return equal(a.get_string(), b.get_string());
    if (a.is_array() && b.is_array())
      return std::ranges::equal(a.get_array(), b.get_array(),
                                [this](auto& one, auto& other) { return equal(one, other); });
    if (a.is_object() && b.is_object()) return equal(a.get_object(), b.get_object());
    return a == b;
  }

 private:
  bool equal(const json::string& a, const json::string& b) {
    edits_ += edit_distance(std::string_view(a), std::string_view(b), most_ - edits_);
    return edits_ <= most_;
  }

  bool equal(const json::object& a, const json::object& b) {
    return a.size() == b.size() && std::ranges::all_of(a, [&](const auto& member) {
             const json::value* other = b.if_contains(member.key());
             return other != nullptr && equal(member.value(), *other);
           });
  }

  Nearness numbers_;
  const std::size_t most_;
  std::size_t edits_ = 0;
};

std::size_t text_length(const json::value& value) {
  std::size_t length = 0;
  if (const auto* text = value.if_string()) length = characters(std::string_view(*text)).size();
  if (const auto* array = value.if_array())
    for (const json::value& each : *array) length += text_length(each);
  if (const auto* object = value.if_object())
    for (const auto& member : *object) length += text_length(member.value());
  return length;
}

template <class Value>
std::vector<Value> values_of_bytes(std::string_view bytes) {
  std::vector<Value> values(bytes.size() / sizeof(Value));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(Value));
  return values;
}

// Samples of 16 bits, read as numbers of 32 bits, are mostly not numbers or have an exponent far
// from 0. A few of the numbers of a model may be so, too. Zeros are both.
bool plausible(const std::vector<float>& values) {
  const auto zeros = std::ranges::count(values, 0.0f);
  const auto usual = std::ranges::count_if(values, [](float value) {
    const float size = std::abs(value);
    return size > 0x1p-64f && size < 0x1p64f;
  });
  return 10 * usual >= 9 * (std::ssize(values) - zeros);
}

bool near_bytes(std::string_view a, std::string_view b, Nearness& numbers) {
  if (a.size() != b.size() || a.size() % 2 != 0) return a == b;
  if (a.size() % 4 == 0) {
    const auto one = values_of_bytes<float>(a), other = values_of_bytes<float>(b);
    if (plausible(one) && plausible(other))
      return std::ranges::equal(one, other, [&](double x, double y) { return numbers.near(x, y); });
  }
  return std::ranges::equal(values_of_bytes<std::int16_t>(a), values_of_bytes<std::int16_t>(b),
                            [&](double x, double y) { return numbers.near(x / 32768, y / 32768); });
}

// Null if it is not JSON, which the service has checked.
json::value parsed(const Answer& answer) {
  json::error_code failed;
  json::value value = json::parse(json_text(answer), failed);
  return failed ? json::value() : value;
}

std::optional<AnswerDifference> bytes_difference(const Answer& a, const Answer& b,
                                                 double tolerance) {
  Nearness numbers(tolerance);
  if (tolerance > 0 ? !near_bytes(a.data, b.data, numbers) : a.data != b.data) return std::nullopt;
  return AnswerDifference{0, numbers.largest()};
}

}  // namespace

std::optional<AnswerDifference> answer_difference(const Answer& a, const Answer& b,
                                                  double tolerance, std::size_t most) {
  if (a.endpoint != b.endpoint) return std::nullopt;
  if (is_json(a) && is_json(b)) {
    if (a.kind == b.kind ? a.data == b.data : json_text(a) == json_text(b))
      return AnswerDifference();
    Comparison comparison(tolerance, most);
    if (tolerance > 0 && comparison.equal(parsed(a), parsed(b))) return comparison.difference();
    return std::nullopt;
  }
  if (a.kind != b.kind) return std::nullopt;
  if (a.kind == Answer::Kind::bytes) return bytes_difference(a, b, tolerance);
  return AnswerDifference();
}

std::size_t text_length(const Answer& answer) {
  return is_json(answer) ? text_length(parsed(answer)) : 0;
}

// The usual table, of which only the cells near the diagonal are computed: the others are above
// `most` anyway.
std::size_t edit_distance(std::string_view left, std::string_view right, std::size_t most) {
  const std::u32string a = characters(left), b = characters(right);
  const std::size_t longer = std::max(a.size(), b.size()), shorter = std::min(a.size(), b.size());
  if (longer - shorter > most) return most + 1;
  most = std::min(most, longer);
  if (longer * (2 * most + 1) > most_steps) return a == b ? 0 : most + 1;
  const std::size_t far = most + 1;
  std::vector<std::size_t> above(b.size() + 1, far), line(b.size() + 1, far);
  for (std::size_t j = 0; j <= std::min(b.size(), most); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    const std::size_t begin = i > most ? i - most : 1, end = std::min(b.size(), i + most);
    line[begin - 1] = begin == 1 ? std::min(i, far) : far;
    for (std::size_t j = begin; j <= end; ++j)
      line[j] =
          std::min({above[j - 1] + (a[i - 1] != b[j - 1]), above[j] + 1, line[j - 1] + 1, far});
    if (end < b.size()) line[end + 1] = far;
    std::swap(above, line);
  }
  return above[b.size()];
}

}  // namespace millrace::checking
