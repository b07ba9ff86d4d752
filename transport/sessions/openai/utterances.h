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

// An utterance of an OpenAI session, which the protocol calls an item: a segment of a stream.
struct Utterance {
  std::uint64_t number = 0;   // counts those of its session, from 1
  double begin = 0;           // seconds of the session
  double end = 0;             // the same, once its segment has ended
  bool is_spoken = false;     // the begin of its speech was reported
  bool is_committed = false;  // `committed` was sent
  bool is_cleared = false;    // nothing of it is sent any more
  SegmentText text{};
};

// Receives what happens to the utterances, in the order in which a client may learn it.
class UtteranceEvents {
 public:
  virtual void speech_started(const Utterance& utterance, double seconds) = 0;
  virtual void speech_stopped(const Utterance& utterance) = 0;
  // `previous`: the number of the last utterance that was committed; 0: none.
  virtual void committed(const Utterance& utterance, std::uint64_t previous) = 0;
  virtual void cleared() = 0;
  virtual void delta(const Utterance& utterance, std::string_view text) = 0;
  virtual void completed(const Utterance& utterance) = 0;
  virtual void failed(const Utterance& utterance) = 0;

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
  void clear_nothing() { events_.cleared(); }

 private:
  using Ended = FollowedSegments<Utterance>::Ended;

  Utterance next(double begin);
  void start_speech(Utterance& utterance, double seconds);
  void commit(Utterance& utterance);
  void finish(Ended& ended, bool failed = false);

  UtteranceEvents& events_;
  bool reports_speech_ = false;
  double opened_ = 0;            // when the stream was opened, in seconds of the session
  std::uint64_t committed_ = 0;  // number of the utterance committed last
  FollowedSegments<Utterance> segments_{Utterance{.number = 1}};
};

}  // namespace millrace
