// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/utterances.h"

#include <boost/json.hpp>
#include <exception>

#include "chunker/row.h"

namespace millrace::pocketsphinx {
namespace {

Answer json(const boost::json::object& value) {
  return {Answer::Kind::json, boost::json::serialize(value)};
}

}  // namespace

Answer Utterances::take(const SpokenRow& row) {
  try {
    return decode(row);
  } catch (const std::exception& error) {
    return {Answer::Kind::error, error.what()};
  }
}

Answer Utterances::decode(const SpokenRow& row) {
  const auto is = [&](std::uint8_t markers) { return (row.flags & markers) != 0; };
  if (is(flag::abort)) return {};  // RESET of the next stream drops the open utterance
  if (is(flag::reset)) decoder_->reset();
  const bool speaks = !row.samples.empty() || is(flag::last);
  if (is(flag::reset | flag::segment) || (speaks && !decoder_->open())) decoder_->begin();
  if (!row.samples.empty()) decoder_->process(row.samples);
  if (is(flag::last)) {
    const Hypothesis final = decoder_->end();
    return json({{"final", final.text}, {"score", final.score}});
  }
  if (row.samples.empty()) return {};
  return json({{"partial", decoder_->partial().text}});
}

}  // namespace millrace::pocketsphinx
