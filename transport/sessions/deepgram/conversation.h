// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/sessions/conversation.h"
#include "transport/sessions/deepgram/listen_settings.h"
#include "transport/sessions/deepgram/results_message.h"
#include "transport/sessions/followed_segments.h"
#include "transport/sessions/frames_in_pieces.h"

namespace millrace {

// A client of Deepgram's live protocol (docs/protocols.md), with one stream from its upgrade on.
// Messages about a segment follow all messages about the segment before it. A segment that ends
// without the client, and without speech or text, is not reported. Confined to one thread.
class DeepgramConversation final : public Conversation {
 public:
  // The caller calls open() next.
  DeepgramConversation(SessionScope& scope, ClientIdentity client,
                       const ListenSettings::Reports& reports, std::string request_id);

  using Conversation::open;
  void received(const Connection::Message& message) override;
  bool is_unfinished() const override { return !pieces_.empty(); }
  void proceed() override;
  bool has_ended() const override { return ended_; }

  void ready(const StreamReady& ready) override;
  void result(const ResultHead& head, const Answer& answer) override;
  void message(const MessageHead&, const Answer&) override { queue().add_result(); }
  void flushed(std::uint64_t, std::uint64_t) override {}
  void rejected(ErrorCode code, std::string_view message, std::uint64_t frames) override;
  void warning(ErrorCode, std::string_view) override {}
  void goaway() override {}
  void speech_began(double seconds) override;
  void segment_ended(const SegmentEnd& end) override;
  void settled(std::uint64_t frames) override;
  // Also closes the connection, with Deepgram's code of the error if it has one.
  void error(ErrorCode code, std::string_view message) override;
  // Also closes the connection.
  void closed(std::uint64_t frames, std::uint64_t chunks, bool drained) override;

 private:
  // A segment, and its part that is not final yet. Times are in seconds of the stream.
  struct Segment {
    double begin = 0, end = 0;              // the part
    Transcript latest{};                    // the text of the part
    std::optional<double> speech{};         // when speech began
    bool is_reported = false;               // the begin of speech was sent
    std::optional<double> last_word_end{};  // in the final text; nullopt: it has no words
  };
  using Ended = FollowedSegments<Segment>::Ended;

  void take_audio(Bytes audio, Time arrived);
  void take_text(std::string_view text, Time arrived);
  void end(Time arrived);
  void reject(std::string_view message);

  void report_speech(Segment& segment);
  void send_results(Segment& segment, ResultsHead head);
  void finish(Ended& ended);

  template <class Append>
  void send(Append append);
  // `members` is JSON, from the value of the type to the name of the time.
  void send_event(std::string_view members, double seconds);
  void send_error(std::string_view variant, std::string_view code, std::string_view message);

  const ListenSettings::Reports reports_;
  const std::string request_id_;
  std::string metadata_;  // JSON, of each result
  FollowedSegments<Segment> segments_{Segment{}};
  FramesInPieces pieces_;
  double duration_ = 0;  // seconds up to the end of the last segment
  bool ended_ = false;   // the client has ended its stream
};

}  // namespace millrace
