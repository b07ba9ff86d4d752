// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/decoder.h"

#include <catch2/catch.hpp>
#include <ostream>

#include "tests/examples/speech.h"

namespace millrace::pocketsphinx {

std::ostream& operator<<(std::ostream& out, const Hypothesis& said) {
  return out << said.text << " (" << said.score << ')';
}

namespace {

TEST_CASE("a decoder recognizes the spoken words") {
  Decoder decoder;
  CHECK(decode(decoder, librivox("0880")).text == "he was not an illness those young man");
}

TEST_CASE("the hypothesis of a decoder does not depend on the size of the pieces") {
  const auto audio = librivox("0880");
  Decoder whole;
  const Hypothesis expected = decode(whole, audio, audio.size());
  for (std::size_t piece : {7, 512, 1600}) {
    Decoder decoder;
    CHECK(decode(decoder, audio, piece) == expected);
  }
}

TEST_CASE("after a reset a decoder equals a new one") {
  const auto before = librivox("0930"), audio = librivox("0880");
  Decoder fresh, used;
  const Hypothesis expected = decode(fresh, audio);

  SECTION("after an utterance that had ended") { decode(used, before); }
  SECTION("after several of them") {
    decode(used, audio);
    decode(used, before);
  }
  SECTION("after an open utterance") {
    used.begin();
    feed(used, Samples(before).first(16000));
  }
  used.reset();
  CHECK_FALSE(used.open());
  CHECK(decode(used, audio) == expected);
}

TEST_CASE("without a reset a decoder keeps its adaptation for the next utterance") {
  const auto audio = librivox("0880");
  Decoder decoder;
  CHECK_FALSE(decode(decoder, audio) == decode(decoder, audio));
}

TEST_CASE("the hypothesis grows while an utterance is spoken") {
  const auto audio = librivox("0880");
  Decoder decoder;
  decoder.begin();
  CHECK(decoder.partial() == Hypothesis{});
  feed(decoder, Samples(audio).first(24000));
  CHECK(decoder.partial().text == "he was not until");
}

TEST_CASE("an utterance without a word is empty") {
  Decoder decoder;
  CHECK(decode(decoder, Samples()).text.empty());
  CHECK(decode(decoder, std::vector<std::int16_t>(16000)).text.empty());
}

TEST_CASE("begin() drops an open utterance") {
  const auto audio = librivox("0880");
  Decoder decoder;
  decoder.begin();
  feed(decoder, Samples(audio).first(24000));
  decoder.begin();
  CHECK(decoder.end().text.empty());
}

TEST_CASE("a model that does not exist is an error that names it") {
  CHECK_THROWS_WITH(Decoder("/nowhere"), "no PocketSphinx model: /nowhere/en-us/mdef");
}

}  // namespace
}  // namespace millrace::pocketsphinx
