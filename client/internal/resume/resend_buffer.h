// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result_head.h"
#include "client/internal/resume/queued_input.h"

namespace millrace {

// The input of one stream, in order: what is still to be sent, and, if the stream can be resumed,
// what was sent and is not acknowledged. The latter is limited: the frames by a number that the
// service gives, and at which sending waits; the commands by their bytes.
//
// Frames and commands are counted as in docs/protocol.md. Half a frame belongs to the frame that
// later bytes complete, also behind a command. The service drops it at a gap or at the end; until
// then a service that lost the connection has forgotten it, and gets it again.
//
// Does no I/O. Confined to the client's thread.
class ResendBuffer {
 public:
  // If the kept commands have more bytes (size_of()), nothing is kept any more. A command cannot
  // wait: commands are acknowledged with the rows after them, for which frames behind it may be
  // needed.
  static constexpr std::size_t most_command_bytes = 4 << 20;

  // `packets`: each entry of frames is an Opus packet, which is one message and one frame.
  // `options`: those of the stream's open, a JSON object, or empty.
  explicit ResendBuffer(bool packets, std::string options = {})
      : packets_(packets), first_options_(std::move(options)) {}

  struct Kept {
    std::uint64_t frames = 0;       // number of the first frame that is sent
    std::uint64_t frame_bytes = 1;  // not 0, except for packets
    std::uint64_t most = 0;         // frames that are kept; not 0
  };
  // Keeps what is sent from now on. Before this call, what was sent is forgotten at once.
  // Requires: nothing was added.
  void keep(const Kept& kept);
  // False if what was sent is not kept: a stream that is lost cannot be resumed.
  bool keeps() const { return keeps_; }

  void add(QueuedInput queued);

  // One message to the service: a part of the frames, or a command.
  struct Next {
    std::string_view frames;
    const ClientMessage* command = nullptr;
  };
  // The next message, valid until sent(). Nullopt if everything was sent, or if as many frames are
  // kept as may be.
  std::optional<Next> next();
  // The message from next() was given to the connection. Returns its entry if this was the first
  // time that all of it was sent, otherwise null; valid until next().
  const QueuedInput* sent();
  // The same for the first `bytes` of its frames; not for packets.
  const QueuedInput* sent(std::size_t bytes);
  bool all_sent() const { return cursor_ == entries_.size(); }
  // The end was sent: no input follows.
  bool has_ended() const { return ended_ && all_sent(); }

  // Forgets what is before `point`. False if that was never sent. An older point does nothing.
  [[nodiscard]] bool acknowledge(const ResumePoint& point);
  const ResumePoint& point() const { return point_; }
  // The options that the forgotten commands have changed: a JSON object, or empty.
  const std::string& options() const { return options_; }

  // A new connection: the service has this many frames and commands. The others are sent again, in
  // their order. False if they were never sent, or are no longer kept.
  [[nodiscard]] bool resume(std::uint64_t frames, std::uint64_t commands);
  // Both at the last resume().
  std::uint64_t received_frames() const { return received_frames_; }
  std::uint64_t received_commands() const { return received_commands_; }

 private:
  struct Entry {
    QueuedInput queued;
    std::uint64_t frame = 0;    // the number of the frame that its first byte is in
    std::uint64_t offset = 0;   // the bytes of this frame before it
    std::uint64_t command = 0;  // the number of commands before it
    std::uint64_t units = 0;    // the bytes before it in all entries; or the packets
    bool was_sent = false;
  };

  std::uint64_t units_of(const std::string& frames) const { return packets_ ? 1 : frames.size(); }
  std::uint64_t units_before(const Entry& entry, std::uint64_t frame) const;
  bool is_before(const Entry& entry, const ResumePoint& point) const;
  void forget();
  std::uint64_t free_units() const;

  const bool packets_;
  bool keeps_ = false;
  std::uint64_t frame_bytes_ = 1;  // 1 for packets: their unit is the packet
  std::uint64_t most_units_ = 0;
  std::size_t command_bytes_ = 0;  // kept commands, as size_of()

  std::deque<Entry> entries_;
  Entry end_;               // the place of the entry that is added next
  bool ended_ = false;      // the last entry is the end
  std::size_t cursor_ = 0;  // index of the entry that is sent next
  std::uint64_t done_ = 0;  // the units of it that were sent, or that the service has
  std::uint64_t next_ = 0;  // the units that next() returned

  std::uint64_t sent_frames_ = 0, sent_commands_ = 0;
  std::uint64_t received_frames_ = 0, received_commands_ = 0;
  ResumePoint point_;
  std::deque<std::pair<std::uint64_t, std::string>> changes_;  // numbers of `set`, and options
  const std::string first_options_;
  std::string options_;
};

}  // namespace millrace
