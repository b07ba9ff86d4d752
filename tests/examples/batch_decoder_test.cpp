// SPDX-License-Identifier: Apache-2.0
#include "examples/pocketsphinx/batch_decoder.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "chunker/row.h"
#include "examples/pocketsphinx/body_columns.h"
#include "tests/examples/speech.h"

namespace millrace::pocketsphinx {
namespace {

constexpr std::uint32_t width = 8000, left = 160;
constexpr std::uint8_t segment_begins = flag::start | flag::reset | flag::segment;

// Batches with half seconds of one utterance, in the layout of the service.
struct Decoding {
  const std::vector<std::int16_t> audio = librivox("0880");
  const RowColumns columns = *body_columns({}, R"({"size":7840,"left":160})");
  ThreadTeam threads{2};
  BatchDecoder decoder{default_model, threads};

  std::vector<std::int16_t> tensor;
  worker_protocol::HandedBatch next;

  void row(std::uint32_t slot, std::uint8_t flags, std::uint32_t begin) {
    tensor.resize(tensor.size() + left, 99);  // context, which is not to be decoded
    tensor.insert(tensor.end(), &audio[begin], &audio[begin] + width - left);
    next.framed.push_back({.slot = slot, .left = 0, .size = width - left, .flags = flags});
  }
  void mark(std::uint32_t slot, std::uint8_t flags) {
    next.marks.push_back({.slot = slot, .flags = flags});
  }
  BatchDecoder::Answers decode() {
    next.rows = static_cast<std::uint32_t>(next.framed.size());
    BatchArrays arrays;
    arrays.data = std::as_writable_bytes(std::span(tensor));
    const WorkerBatch batch(std::exchange(next, {}), arrays);
    const auto answers = decoder.decode(batch, columns);
    tensor.clear();
    return answers;
  }
  std::string final(std::uint32_t begin, std::uint32_t rows) const {
    Decoder direct;
    return final_of(
        pocketsphinx::decode(direct, Samples(audio).subspan(begin, rows * (width - left))));
  }
};

TEST_CASE_METHOD(Decoding, "each slot has its own utterance") {
  row(5, segment_begins, 0);
  row(2, segment_begins, 7840);
  CHECK(decode().framed.size() == 2);
  row(2, flag::last, 15680);
  row(5, 0, 7840);
  CHECK(final_of(decode().framed[0]) == final(7840, 2));
  mark(5, flag::last | flag::end);
  CHECK(final_of(decode().marks[0]) == final(0, 2));
}

TEST_CASE_METHOD(Decoding, "marker rows of a slot follow its row with frames, in order") {
  row(0, segment_begins, 0);
  mark(0, flag::last);
  mark(1, segment_begins | flag::last);
  mark(0, flag::end);
  const auto answers = decode();
  CHECK(answers.framed[0].data.starts_with(R"({"text":")"));
  CHECK(final_of(answers.marks[0]) == final(0, 1));
  CHECK(final_of(answers.marks[1]) == " (0)");
  CHECK(answers.marks[2].kind == Answer::Kind::none);
}

TEST_CASE_METHOD(Decoding, "decoders are loaded for slots with streams, and reused") {
  decoder.warm(1);
  CHECK(decoder.decoders() == 1);
  row(60, segment_begins, 0);
  decode();
  CHECK(decoder.decoders() == 1);
  row(7, segment_begins, 0);
  decode();
  CHECK(decoder.decoders() == 2);
  mark(60, flag::last | flag::end);
  decode();
  row(33, segment_begins, 0);
  mark(33, flag::last | flag::end);
  CHECK(final_of(decode().marks[0]) == final(0, 1));
  CHECK(decoder.decoders() == 2);
}

TEST_CASE_METHOD(Decoding, "the decoder of an aborted stream is reused") {
  row(0, segment_begins, 0);
  mark(0, flag::abort);
  CHECK(decode().marks[0].kind == Answer::Kind::none);
  row(1, segment_begins | flag::last | flag::end, 0);
  CHECK(final_of(decode().framed[0]) == final(0, 1));
  CHECK(decoder.decoders() == 1);
}

TEST_CASE_METHOD(Decoding, "without a model, rows are answered with the error") {
  BatchDecoder lost("/nowhere", threads);
  CHECK_THROWS_WITH(lost.warm(2), "no PocketSphinx model: /nowhere/en-us/mdef");
  next.marks.push_back({.slot = 0, .flags = segment_begins});
  const auto answers = lost.decode({next, {}}, columns);
  CHECK(answers.marks[0].kind == Answer::Kind::error);
}

}  // namespace
}  // namespace millrace::pocketsphinx
