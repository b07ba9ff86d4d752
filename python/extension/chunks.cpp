// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chunker/lengths.h"
#include "chunker/presets.h"
#include "chunker/row_layout.h"
#include "chunker/sizes_text.h"
#include "chunker/stream_events.h"
#include "cutting/cutter.h"
#include "python/extension/parts.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;

[[noreturn]] void refuse(const std::string& sentence) { throw nb::value_error(sentence.c_str()); }

// A number in quotes is refused: a unit may be missing.
std::string word_of(nb::handle value) {
  const std::string text = nb::str(value).c_str();
  if (nb::isinstance<nb::str>(value) && lacks_unit(text))
    refuse("\"" + text + "\" " + std::string(unit_missing));
  return text;
}

// The value of a key as the text that parse_rule() takes: `sizes` may be a list or a dict.
std::string key_text(nb::handle value) {
  if (nb::isinstance<nb::dict>(value)) {
    const auto range = nb::borrow<nb::dict>(value);
    return sizes_text(word_of(range.attr("get")("from")), word_of(range.attr("get")("to")),
                      word_of(range.attr("get")("step")));
  }
  if (!nb::isinstance<nb::list>(value) && !nb::isinstance<nb::tuple>(value)) return word_of(value);
  std::vector<std::string> lengths;
  for (const nb::handle length : nb::borrow<nb::sequence>(value))
    lengths.push_back(word_of(length));
  return sizes_text(lengths);
}

ChunkRule rule_from(const nb::dict& spec, std::optional<double> rate) {
  RuleKeys keys;
  for (const auto [key, value] : spec) keys.emplace_back(word_of(key), key_text(value));
  const auto rule = parse_rule(keys, target_of(keys, rate));
  if (!rule) refuse(rule.error().message);
  return *rule;
}

StreamEvents events_from(nb::iterable pairs, const ChunkRule& rule) {
  StreamEvents events(rule);
  std::size_t index = 0;
  for (const nb::handle pair : pairs) {
    if (events.ended()) break;
    std::string kind;
    std::uint64_t count = 0;
    const std::string prefix = "event " + std::to_string(index++) + ": ";
    if (!nb::isinstance<nb::sequence>(pair) || nb::len(pair) != 2 || !nb::try_cast(pair[0], kind))
      refuse(prefix + "must be a pair of a kind and a count, such as (\"frames\", 1600)");
    if (!nb::try_cast(pair[1], count, false))
      refuse(prefix + "the count of \"" + kind + "\" must be a whole number, at least 0, not " +
             nb::repr(pair[1]).c_str());
    if (const auto added = events.add(kind, count); !added) refuse(prefix + added.error());
  }
  return events;
}

template <class OnRow>
void cut(const StreamEvents& events, OnRow on_row) {
  const ChunkRule recorded{.spec = events.spec()};
  Cutter cutter(recorded);
  for (const Event& event : events.events()) {
    cutter.add(event);
    while (const auto row = cutter.next()) {
      // A long stream takes time: Ctrl-C must work.
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      on_row(*row);
    }
  }
}

template <class... Numbers>
nb::list list_of(Numbers... numbers) {
  nb::list list;
  (list.append(std::uint64_t{numbers}), ...);
  return list;
}

nb::list chunks(const nb::dict& spec, nb::iterable events, std::optional<double> rate) {
  nb::list rows;
  cut(events_from(events, rule_from(spec, rate)), [&](const Row& row) {
    rows.append(list_of(row.seq, row.begin, row.left, row.size, row.right, row.flags, row.gap));
  });
  return rows;
}

// The values in the columns of a row, where frame p has the value p + 1.
nb::list columns(const Row& row, const ChunkRule& rule, std::uint32_t width) {
  const RowLayout layout = row_layout(row, rule, width);
  const std::uint64_t first = row.window_begin() + 1, last = row.window_begin() + layout.window;
  const bool repeat = rule.pad == Pad::repeat;
  nb::list values;
  for (std::uint32_t i = 0; i < layout.lead; ++i) values.append(repeat ? first : 0);
  for (std::uint64_t value = first; value <= last; ++value) values.append(value);
  for (std::uint32_t i = 0; i < layout.trail; ++i) values.append(repeat ? last : 0);
  return values;
}

nb::list values(const nb::dict& spec, nb::iterable pairs, std::optional<double> rate) {
  const ChunkRule rule = rule_from(spec, rate);
  const StreamEvents events = events_from(pairs, rule);
  const std::uint32_t width = events.width();
  nb::list rows;
  cut(events, [&](const Row& row) {
    rows.append(row.has_frames() ? nb::object(columns(row, rule, width)) : nb::none());
  });
  return rows;
}

}  // namespace

void add_chunks(nb::module_& module) {
  module.def("chunks", &chunks);
  module.def("values", &values);
}

}  // namespace millrace::python
