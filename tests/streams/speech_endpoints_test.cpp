// SPDX-License-Identifier: Apache-2.0
// Endpoints by voice and by length, in whole streams.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "input/voice_detector.h"
#include "tests/streams/live_stream.h"
#include "tests/support/speech_like.h"

using namespace millrace;
using Audio = std::vector<std::int16_t>;
using Frames = std::span<const std::int16_t>;

namespace {

constexpr std::uint64_t second = 16000, piece = 160;

EndpointRule by_voice(std::uint64_t silence) {
  return {.by = EndpointRule::By::vad, .silence = silence, .max = 20 * second};
}

// A stream of the pipeline's own frames, whose rows are done at once.
struct Speaking {
  explicit Speaking(const EndpointRule& rule, FrameType type = {},
                    SampleFormat format = SampleFormat::s16le)
      : live({.id = StreamId{5},
              .type = type,
              .format = format_of(format, type),
              .chunk = {.spec = {.size = 1600}},
              .endpoint = rule,
              .frames_limit = 10 * second,
              .opened = test::at(0)}) {}

  void send(Bytes message) {
    live.stream.frames(message, live.now);
    serve();
  }
  void send(Frames audio) { send(std::as_bytes(audio)); }
  void flush(std::uint64_t mark = 1) {
    live.stream.flush(mark, live.now);
    serve();
  }
  void reset() {
    live.stream.reset(live.now);
    serve();
  }
  void gap(std::uint64_t frames) {
    live.stream.gap(frames, live.now);
    serve();
  }
  void end() {
    live.stream.end(live.now);
    serve();
  }
  void serve() {
    while (live.answered < live.lane.rows.size()) live.take_and_answer(1);
  }

  // The ends of the segments so far.
  std::vector<std::uint64_t> ends() const {
    std::vector<std::uint64_t> positions;
    for (const ReadyRow& ready : live.lane.rows)
      if (ready.row.is(flag::last)) positions.push_back(ready.row.end());
    return positions;
  }
  std::uint64_t ended(EndpointReason reason) const { return live.stats.endpoints[reason].value(); }

  test::LiveStream live;
};

// Speech and silence in turn, speech first. Lengths in frames.
Audio spoken(std::initializer_list<std::size_t> lengths) {
  Audio audio;
  test::SpeechLike speech;
  bool speaks = true;
  for (const std::size_t length : lengths) {
    if (speaks)
      speech.append(audio, length);
    else
      audio.resize(audio.size() + length);
    speaks = !speaks;
  }
  return audio;
}

// Finds endpoints frame by frame: the definition, without looking ahead.
class FrameByFrame {
 public:
  explicit FrameByFrame(const EndpointRule& rule) : rule_(rule) {}

  void send(Frames audio) {
    for (const std::int16_t& frame : audio) {
      ++position_;
      ++segment_;
      if (detector_) add(frame);
      if (segment_ == rule_.max) end();
    }
  }
  void flush() {
    ends_.push_back(position_);
    begin();
  }
  void reset() {
    flush();
    detector_.emplace(FrameType{}, rule_.sensitivity);
    in_piece_ = 0;
  }
  void gap(std::uint64_t frames) {
    if (segment_ > 0) flush();
    detector_.emplace(FrameType{}, rule_.sensitivity);
    in_piece_ = 0;
    position_ += frames;
  }

  const std::vector<std::uint64_t>& ends() const { return ends_; }

 private:
  void add(const std::int16_t& frame) {
    ++in_piece_;
    const auto speech = detector_->add(std::as_bytes(std::span(&frame, 1)));
    if (!speech) return;
    const std::uint64_t frames = std::min(std::exchange(in_piece_, 0), segment_);
    has_speech_ = has_speech_ || *speech;
    silent_ = *speech ? 0 : silent_ + frames;
    const auto limit = has_speech_ ? std::optional(rule_.silence) : rule_.before_speech;
    if (limit && !*speech && silent_ >= *limit) end();
  }
  void end() { rule_.on_endpoint == EndpointRule::On::reset ? reset() : flush(); }
  void begin() {
    segment_ = silent_ = 0;
    has_speech_ = false;
  }

  const EndpointRule rule_;
  std::optional<VoiceDetector> detector_{std::in_place, FrameType{}, rule_.sensitivity};
  std::uint64_t position_ = 0, segment_ = 0, in_piece_ = 0, silent_ = 0;
  bool has_speech_ = false;
  std::vector<std::uint64_t> ends_;
};

std::vector<std::uint64_t> expected(const EndpointRule& rule, const Audio& audio) {
  FrameByFrame reference(rule);
  reference.send(audio);
  return reference.ends();
}

}  // namespace

TEST_CASE("an endpoint lies at the end of the piece that completes the silence") {
  const Audio audio = spoken({second, second, second, second});
  VoiceDetector detector({}, 2);
  std::size_t voiced = 0;  // pieces with speech; the first second is the first hundred of them
  for (std::size_t at = 0; at < 2 * second; at += piece)
    voiced += detector.add(std::as_bytes(Frames(audio).subspan(at, piece))).value() ? 1 : 0;
  for (const std::uint64_t silence : {30 * piece, 29 * piece + 1}) {
    Speaking speaking(by_voice(silence));
    speaking.send(audio);
    const std::uint64_t end = (voiced + 30) * piece;
    REQUIRE(speaking.ends().size() == 2);
    CHECK(speaking.ends()[0] == end);
    CHECK(speaking.ended(EndpointReason::silence) == 2);
    const std::vector<ReadyRow>& rows = speaking.live.lane.rows;
    const auto next =
        std::ranges::find(rows, end, [](const ReadyRow& row) { return row.row.begin; });
    REQUIRE(next != rows.end());
    CHECK(next->row.flags == flag::segment);
  }
}

TEST_CASE("endpoints do not depend on how frames are split") {
  const Audio audio = spoken({9000, 8000, 12345, 7777, 20000, 9999});
  for (std::uint32_t sensitivity = 0; sensitivity <= 3; ++sensitivity) {
    EndpointRule rule = by_voice(4800);
    rule.sensitivity = sensitivity;
    const auto ends = expected(rule, audio);
    CHECK(ends.size() == 3);
    for (unsigned seed = 0; seed < 5; ++seed) {
      std::mt19937 random(seed);
      Speaking speaking(rule);
      for (Bytes left = std::as_bytes(Frames(audio)); !left.empty();) {
        const std::size_t next = std::min<std::size_t>(left.size(), 1 + random() % 3000);
        speaking.send(left.first(next));
        left = left.subspan(next);
      }
      CHECK(speaking.ends() == ends);
    }
  }
}

TEST_CASE("silence without speech ends segments only with before_speech") {
  const Audio silence(3 * second + piece);
  EndpointRule rule = by_voice(800);
  Speaking off(rule);
  off.send(silence);
  CHECK(off.ends().empty());
  rule.before_speech = second;
  Speaking on(rule);
  on.send(silence);
  CHECK(on.ends() == std::vector<std::uint64_t>{second, 2 * second, 3 * second});
  CHECK(on.ended(EndpointReason::no_speech) == 3);
}

TEST_CASE("max ends a segment after exactly that many frames, by voice and by length") {
  for (const auto by :
       {EndpointRule::By::vad, EndpointRule::By::length, EndpointRule::By::worker}) {
    Speaking speaking({.by = by, .silence = 4800, .max = 7001});
    speaking.send(spoken({2 * second}));
    CHECK(speaking.ends() == std::vector<std::uint64_t>{7001, 14002, 21003, 28004});
    CHECK(speaking.ended(EndpointReason::length) == 4);
  }
}

TEST_CASE("speech that max cuts off is not speech of the next segment") {
  // The detector reports speech for at most 15 pieces after the speech.
  EndpointRule rule{.silence = 4800, .max = second + 16 * piece};
  Speaking speaking(rule);
  speaking.send(spoken({second, second}));
  CHECK(speaking.ends() == std::vector<std::uint64_t>{rule.max});
}

TEST_CASE("if silence and max end a segment together, silence counts") {
  EndpointRule rule = by_voice(4800);
  const Audio audio = spoken({second, second});
  rule.max = expected(rule, audio).at(0);
  Speaking speaking(rule);
  speaking.send(audio);
  CHECK(speaking.ends() == std::vector<std::uint64_t>{rule.max});
  CHECK(speaking.ended(EndpointReason::silence) == 1);
  CHECK(speaking.ended(EndpointReason::length) == 0);
}

TEST_CASE("silence counts from a client's flush, with the rest of its piece") {
  EndpointRule rule = by_voice(800);
  rule.before_speech = second;
  Speaking speaking(rule);
  speaking.send(Audio(5003));
  speaking.flush();
  speaking.send(Audio(2 * second));
  // 117 frames of the first piece, then 100 pieces: the last one completes the silence.
  CHECK(speaking.ends() == std::vector<std::uint64_t>{5003, 5120 + 100 * piece});
}

TEST_CASE("pieces count from the start of the run") {
  EndpointRule rule = by_voice(800);
  rule.before_speech = second;
  Speaking speaking(rule);
  speaking.send(Audio(5003));
  speaking.reset();
  speaking.send(Audio(2 * second));
  CHECK(speaking.ends() == std::vector<std::uint64_t>{5003, 5003 + second, 5003 + 2 * second});
  speaking.gap(77);
  speaking.send(Audio(second));
  CHECK(speaking.ends().back() == 5003 + 2 * second + 77 + second);
}

TEST_CASE("on_endpoint = reset begins a run at each endpoint, with a new detector") {
  EndpointRule rule = by_voice(4800);
  rule.on_endpoint = EndpointRule::On::reset;
  rule.max = 3 * second + 5;
  const Audio audio = spoken({second, second, 4 * second, second, second, second});
  Speaking speaking(rule);
  speaking.send(audio);
  CHECK(speaking.ends() == expected(rule, audio));
  CHECK(speaking.ends().size() == 4);
  CHECK(speaking.live.stats.resets[ResetReason::endpoint].value() > 0);
  for (const ReadyRow& ready : speaking.live.lane.rows)
    if (ready.row.begin > 0 && ready.row.is(flag::segment)) {
      CHECK(ready.row.is(flag::reset));
      CHECK(ready.row.reason == ResetReason::endpoint);
    }
}

TEST_CASE("a client's flush or end at the position of an endpoint gives a marker row only") {
  const EndpointRule rule = by_voice(4800);
  const Audio audio = spoken({second, second});
  const std::uint64_t end = expected(rule, audio).at(0);
  for (const bool ends : {false, true}) {
    Speaking speaking(rule);
    speaking.send(Frames(audio).first(end));
    CHECK(speaking.ends() == std::vector<std::uint64_t>{end});
    if (ends)
      speaking.end();
    else
      speaking.flush(7);
    CHECK(speaking.ends() == std::vector<std::uint64_t>{end, end});
    const Row& last = speaking.live.lane.rows.back().row;
    CHECK(last.size == 0);
    CHECK(last.is(flag::end) == ends);
    CHECK(last.mark == (ends ? std::nullopt : std::optional<std::uint64_t>(7)));
  }
}

TEST_CASE("channels and elements of the pipeline do not move endpoints") {
  const EndpointRule rule = by_voice(4800);
  const Audio audio = spoken({second, second, second / 2, second});
  std::vector<float> stereo;
  for (const std::int16_t value : audio) {
    stereo.push_back(static_cast<float>(value) / 16384);  // the mean of this and 0
    stereo.push_back(0);
  }
  Speaking floats(rule, {.element = Element::f32, .values = 2}, SampleFormat::f32le);
  floats.send(std::as_bytes(std::span(stereo)));
  CHECK(floats.ends() == expected(rule, audio));
  CHECK(floats.ends().size() == 2);
}

TEST_CASE("endpoints are those of the definition, frame by frame") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](std::size_t from, std::size_t to) {
      return std::uniform_int_distribution<std::size_t>(from, to)(random);
    };
    EndpointRule rule = by_voice(draw(1, 6000));
    if (draw(0, 1) == 1) rule.before_speech = draw(1, 9000);
    if (draw(0, 1) == 1) rule.max = draw(1000, 30000);
    if (draw(0, 1) == 1) rule.on_endpoint = EndpointRule::On::reset;
    rule.sensitivity = static_cast<std::uint32_t>(draw(0, 3));
    Speaking speaking(rule);
    FrameByFrame reference(rule);
    for (int i = 0; i < 12; ++i) {
      const Audio audio = spoken({draw(0, 6000), draw(0, 9000)});
      speaking.send(audio);
      reference.send(audio);
      const std::size_t what = draw(0, 5);
      if (what == 0) speaking.flush(), reference.flush();
      if (what == 1) speaking.reset(), reference.reset();
      if (what == 2) speaking.gap(33), reference.gap(33);
    }
    CAPTURE(seed);
    CHECK(speaking.ends() == reference.ends());
  }
}
