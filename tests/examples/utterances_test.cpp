// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/utterances.h"

#include <catch2/catch.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "chunker/row.h"
#include "tests/examples/speech.h"

namespace millrace {

std::ostream& operator<<(std::ostream& out, const Answer& answer) {
  return out << static_cast<int>(answer.kind) << ' ' << answer.data;
}

namespace pocketsphinx {
namespace {

const Answer nothing;
const Answer silence{Answer::Kind::json, R"({"text":"","words":[]})"};
constexpr std::uint8_t begins = flag::start | flag::reset | flag::segment;

struct Spoken {
  const std::vector<std::int16_t> audio = librivox("0880");  // 47840 samples
  Utterances utterances{std::make_unique<Decoder>()};

  Answer say(std::uint8_t flags, std::size_t from, std::size_t to) {
    return utterances.take({flags, Samples(audio).subspan(from, to - from)});
  }
  Answer mark(std::uint8_t flags) { return utterances.take({flags, {}}); }
  // The final hypothesis of a new decoder for these samples.
  std::string final(std::size_t from, std::size_t to) const {
    Decoder decoder;
    return final_of(decode(decoder, Samples(audio).subspan(from, to - from)));
  }
};

TEST_CASE_METHOD(Spoken, "rows are answered with partial hypotheses, the last with the final one") {
  CHECK(say(begins, 0, 1600) == silence);
  CHECK(say(0, 1600, 24000).data.starts_with(R"({"text":"he was not until","words":[)"));
  CHECK(final_of(say(flag::last | flag::end, 24000, 47840)) == final(0, 47840));
}

TEST_CASE_METHOD(Spoken, "a marker row with LAST is answered with the final hypothesis") {
  say(begins, 0, 24000);
  CHECK(final_of(mark(flag::last | flag::end)) == final(0, 24000));
}

TEST_CASE_METHOD(Spoken,
                 "words have their times in the stream, also after a reset in an utterance") {
  const auto first_word = [](const Answer& answer) {
    return boost::json::parse(answer.data).at("words").at(0);
  };
  const auto early = first_word(utterances.take({begins, Samples(audio).first(16000)}));
  CHECK(early.at("word") == "he");
  CHECK(early.at("start").to_number<double>() < early.at("end").to_number<double>());
  const auto late =
      first_word(utterances.take({flag::reset, Samples(audio).first(16000), 160'000}));
  CHECK(late.at("start").to_number<double>() == Approx(10 + early.at("start").to_number<double>()));
}

TEST_CASE_METHOD(Spoken, "other marker rows are not answered") {
  CHECK(mark(begins) == nothing);
  say(0, 0, 1600);
  CHECK(mark(flag::gap) == nothing);
  mark(flag::last);
  CHECK(mark(flag::end) == nothing);
}

TEST_CASE_METHOD(Spoken, "a segment begins an utterance, and the decoder keeps its adaptation") {
  say(begins, 0, 24000);
  const Answer first = mark(flag::last);
  say(flag::segment, 0, 24000);
  CHECK_FALSE(mark(flag::last) == first);
}

TEST_CASE_METHOD(Spoken,
                 "a RESET in the middle of an utterance begins a new one with a fresh decoder") {
  say(begins, 0, 20000);
  say(flag::reset, 20000, 24000);
  say(0, 24000, 47840);
  CHECK(final_of(mark(flag::last)) == final(20000, 47840));
}

TEST_CASE_METHOD(Spoken, "RESET on several rows until one has frames resets the decoder once") {
  CHECK(mark(flag::reset) == nothing);
  say(flag::reset, 0, 24000);
  CHECK(final_of(mark(flag::last)) == final(0, 24000));
}

TEST_CASE_METHOD(Spoken, "a segment without frames is an empty utterance") {
  CHECK(mark(begins | flag::last).data == R"({"text":"","final":true,"words":[],"score":0})");
}

TEST_CASE_METHOD(Spoken, "after an abort the next stream of the slot starts with a fresh decoder") {
  say(begins, 0, 20000);
  CHECK(mark(flag::abort) == nothing);
  say(begins, 0, 24000);
  CHECK(final_of(mark(flag::last)) == final(0, 24000));
}

TEST_CASE_METHOD(Spoken, "a released decoder gives another stream the results of a new one") {
  say(begins, 0, 20000);
  utterances = Utterances(std::move(utterances).release());
  say(begins, 0, 24000);
  CHECK(final_of(mark(flag::last | flag::end)) == final(0, 24000));
}

}  // namespace
}  // namespace pocketsphinx
}  // namespace millrace
