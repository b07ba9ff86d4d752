// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/message_room.h"
#include "tests/workers/lanes/lane_history.h"

namespace millrace::test {

// The history of the messages of workers to clients. Checks that each accepted message returns to
// its stream, in order, and that the room of a stream is that of its messages that are not written.
class MessageHistory {
 public:
  // The worker of a lane sends a message to the client of a stream. False: it must be lost.
  bool send(Lanes& lanes, LaneHistory& history, LaneId lane, StreamId id, std::size_t bytes) {
    const auto& stream = history.streams.at(id);
    Answer message{Answer::Kind::text, std::string(bytes, 'm')};
    const std::uint32_t room = room_of(message);
    const std::uint64_t newest = stream.next > 0 ? stream.next - 1 : 0;
    const auto sent = lanes.send(lane, id, newest, message);
    const bool serves = stream.worker == lane;
    if (sent == Lanes::SendResult::late) {
      LaneHistory::expect(!serves || history.workers.at(lane).leaving,
                          "a stream stays where it is unless its worker leaves");
      history.count("message late");
      return true;
    }
    LaneHistory::expect(serves, "only the worker of a stream sends messages to its client");
    const bool fits = used_[id] + room <= stream_room;
    LaneHistory::expect(fits == (sent == Lanes::SendResult::accepted), "the room is the limit");
    history.count(fits ? "message" : "no room");
    if (!fits) return false;
    used_[id] += room;
    due_.push_back({id, room});
    return true;
  }
  // A worker gets the first rows of streams, with their room. Returns these rows.
  std::vector<const BatchRow*> opened(std::span<const Lanes::Opened> streams) {
    std::vector<const BatchRow*> rows;
    for (const auto& [row, room] : streams) {
      LaneHistory::expect(room == stream_room - used_[row->stream],
                          "a worker has the room that is left");
      rows.push_back(row);
    }
    return rows;
  }
  void read(const SortedEvents& events) {
    for (const auto& message : events.messages) {
      LaneHistory::expect(!due_.empty() && due_.front().first == message.stream &&
                              due_.front().second == room_of(message.message),
                          "messages return in order, each once");
      unwritten_.push_back(due_.front());
      due_.pop_front();
    }
    LaneHistory::expect(due_.empty(), "a message returns at once");
  }
  // The oldest message that is not written to its client is written now.
  void write_oldest(Lanes& lanes) {
    if (unwritten_.empty()) return;
    const auto [id, room] = unwritten_.front();
    unwritten_.pop_front();
    used_[id] -= room;
    lanes.free_room(id, room);
  }

 private:
  using Message = std::pair<StreamId, std::uint32_t>;  // with the room that it uses

  std::map<StreamId, std::uint32_t> used_;
  std::deque<Message> due_, unwritten_;
};

}  // namespace millrace::test
