// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/client.h"
#include "client/lines/event_lines.h"
#include "recording/format/stream_meta.h"
#include "recording/reader/joined_reader.h"
#include "replay/replay_output.h"
#include "replay/rows/answer_comparison.h"
#include "replay/rows/pace.h"
#include "replay/rows/unbroken.h"

namespace millrace {

// One recorded stream, sent to a service by a client. At a speed, each event is sent when it is
// due. Otherwise frames are sent in messages of 32 KiB, as fast as the service accepts them.
//
// A stream that was lost and opened anew is sent as if it had not been. The service then gives no
// RESET at the place, so the answers are compared up to there.
//
// Never blocks. Confined to one thread.
class ClientReplay {
 public:
  // Opens the stream. All arguments must outlive it. The comparison may be null.
  ClientReplay(Client& client, recording::JoinedReader& items, const recording::StreamMeta& meta,
               const Pace& pace, AnswerComparison* comparison, ReplayOutput& output);

  // Sends and receives without waiting. Returns the time of the next call; call it earlier if the
  // stream has changed. Returns nullopt if the stream is over.
  std::optional<Time> advance(Time now);

  // The number of the client's stream.
  std::uint64_t number() const { return stream_.number(); }
  // The frames that were sent, or are about to be.
  std::uint64_t frames() const { return frames_; }
  bool opened() const { return opened_; }

  // The last call when the stream is over: reads the recorded answers after its last event.
  void finish();

  // When the stream is over:
  // Why it failed; empty if it did not. It also failed if the service rejected a part of it.
  const std::string& failure() const { return failure_; }
  // The service has no room for it, or the name is in use: the time after which a retry may
  // succeed.
  std::optional<Duration> retry_after() const { return retry_after_; }
  // The connection was lost, or could not be made.
  bool connection_lost() const { return connection_lost_; }

 private:
  bool receive();
  void on_event(const ClientEvent& event);
  void refused(const StreamRefused& refused);
  std::optional<Time> send(Time now);
  std::optional<Time> send_events(Time now);
  bool send_buffer();
  void take_frames();
  bool disconnect(Time now);
  bool read();

  recording::JoinedReader& items_;
  const recording::StreamMeta& meta_;
  Pace pace_;
  AnswerComparison* const comparison_;
  ReplayOutput& output_;
  EventLines lines_;
  const std::size_t message_bytes_;  // whole frames of the client
  Event open_{};                     // the replayed stream begins at position 0, and with row 0
  bool opened_part_ = false;         // the first one
  Unbroken unbroken_;
  std::optional<recording::RecordedEvent> event_;  // the next one
  Time due_ = Time::min();                         // when it is due
  bool items_over_ = false;
  std::size_t missing_parts_ = 0;
  ClientStream stream_;            // its begin reads the first event
  std::vector<std::byte> buffer_;  // frames that are not sent
  std::uint64_t frames_ = 0;
  bool opened_ = false;
  bool sent_ = false;        // everything, and the end
  std::optional<Time> cut_;  // the connection ends then
  std::string failure_;
  std::optional<Duration> retry_after_;
  bool connection_lost_ = false;
};

}  // namespace millrace
