// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/answer.h"
#include "base/result_head.h"
#include "transport/sessions/followed_segments.h"
#include "transport/sessions/openai/segment_text.h"

namespace millrace {

// An utterance of an OpenAI session, which the protocol calls an item: a segment of a stream. Times
// are seconds of the session.
struct Utterance {
  std::uint64_t number = 0;    // counts those of its session, from 1
  std::uint64_t previous = 0;  // number of the one that was committed before it; 0: none
  double begin = 0;
  double end = 0;                  // once its segment has ended
  std::optional<double> spoken{};  // when its speech began, if that was reported
  bool is_committed = false;       // `committed` was reported
  bool is_cleared = false;         // nothing of it is reported any more
  SegmentText text{};
};

enum class UtteranceEvent : std::uint8_t {
  speech_started,
  speech_stopped,
  committed,
  cleared,
  delta,
  completed,
  failed,
};

// Receives what happens to the utterances, in the order in which a client may learn it.
class UtteranceEvents {
 public:
  // `text` is that of a delta.
  virtual void report(UtteranceEvent event, const Utterance& utterance, std::string_view text) = 0;

 protected:
  ~UtteranceEvents() = default;
};

// The utterances of one session: which segment a result belongs to, and what its client learns of
// it. The functions are those of ClientOutput, for the stream that is open. A segment that ends
// without the client, and without speech or text, is not reported. Confined to one thread.
class Utterances {
 public:
  // Marks of the client's flushes.
  static constexpr std::uint64_t commit_mark = 1, clear_mark = 2;

  // `events` outlives it.
  explicit Utterances(UtteranceEvents& events) : events_(events) {}

  // `reports_speech`: the client knows when speech begins and ends.
  void open(bool reports_speech) { reports_speech_ = reports_speech; }
  void result(const ResultHead& head, const Answer& answer);
  void speech_began(double seconds);
  void segment_ended(const SegmentEnd& end);
  void settled(std::uint64_t frames);
  // No stream is open any more.
  void close();
  // A commit or clear of the client without a stream.
  void commit_nothing();
  void clear_nothing();

 private:
  using Ended = FollowedSegments<Utterance>::Ended;

  Utterance next(double begin);
  void start_speech(Utterance& utterance, double seconds);
  void commit(Utterance& utterance);
  void finish(Ended& ended, bool failed = false);
  void report(UtteranceEvent event, const Utterance& utterance, std::string_view text = {}) {
    events_.report(event, utterance, text);
  }

  UtteranceEvents& events_;
  bool reports_speech_ = false;
  double opened_ = 0;            // when the stream was opened, in seconds of the session
  std::uint64_t committed_ = 0;  // number of the utterance committed last
  bool resets_ = false;          // the end of the next segment is that of a reset after a clear
  FollowedSegments<Utterance> segments_{Utterance{.number = 1}};
};

}  // namespace millrace
