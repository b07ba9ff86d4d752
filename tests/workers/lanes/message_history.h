// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/message_room.h"
#include "tests/workers/lanes/lane_history.h"

namespace millrace::test {

// The history of messages. Checks that each accepted message of a worker returns to its stream, in
// order, and that the room of a stream is that of its messages that are not written. Checks that
// the messages of clients are handed over with their row, each time, and are reported once when it
// is done.
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
  // What the row just cut carries: in every third row, a message of the client.
  const StreamPosts* cut(StreamId id, std::uint64_t seq) {
    if (seq % 3 != 2) return nullptr;
    auto posts = std::make_unique<StreamPosts>(StreamPosts{{.position = seq, .text = "m"}});
    return posted_[id].emplace_back(seq, std::move(posts)).second.get();
  }
  // A worker gets a batch. `streams`: the first rows of streams, with their room. Returns these
  // rows.
  std::vector<const BatchRow*> opened(const Batch& batch, std::span<const Lanes::Opened> streams) {
    for (const auto* batch_rows : {&batch.framed, &batch.marks})
      for (const BatchRow& row : *batch_rows) expect_posts_of(row);
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
    for (const auto& [id, posts] : events.posts) {
      auto& due = posted_[id];
      LaneHistory::expect(!due.empty() && due.front().second.get() == posts,
                          "the messages of done rows are reported in order, each once");
      due.pop_front();
    }
    for (const auto& done : events.done) {
      const auto& due = posted_[done.stream];
      LaneHistory::expect(due.empty() || due.front().first > done.seq,
                          "the messages of a done row are reported at once");
    }
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
  using Posts = std::pair<std::uint64_t, std::unique_ptr<StreamPosts>>;  // of a row

  void expect_posts_of(const BatchRow& row) {
    const std::uint64_t seq = row.ready.row.seq;
    const auto& due = posted_[row.stream];
    const auto posts = std::ranges::find(due, seq, &Posts::first);
    LaneHistory::expect(row.ready.posts == (posts == due.end() ? nullptr : posts->second.get()),
                        "a row has its messages each time it is handed over");
  }

  std::map<StreamId, std::uint32_t> used_;
  std::deque<Message> due_, unwritten_;
  std::map<StreamId, std::deque<Posts>> posted_;  // with rows that are not done
};

}  // namespace millrace::test
