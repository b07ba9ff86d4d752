// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "streams/client_output.h"
#include "streams/stream_host.h"

namespace millrace::test {

// Records the rows of a stream.
class CapturedRows : public StreamHost {
 public:
  void add(StreamId, ReadyRow row) override {
    if (row.posts) row.posts = &posts.emplace_back(*row.posts);  // they outlive the row
    rows.push_back(row);
  }
  void abandoned(StreamId) override { ++abandons; }
  void free_room(StreamId, std::uint32_t bytes) override { freed_room.push_back(bytes); }

  std::vector<ReadyRow> rows;
  std::deque<StreamPosts> posts;
  std::size_t abandons = 0;               // calls of abandoned()
  std::vector<std::uint32_t> freed_room;  // bytes of each call of free_room()
};

// Records the messages of a stream to its client, a line each: "result 0 text", "message 0 at 5
// text", "flushed 7", "rejected values 3", "error no_worker", "closed 100 2", "resume". With
// follows_rows() also "speech", "segment 3 at 25", "settled 24"; the last only when it changes.
// What a client that resumes receives in addition has members of its own.
class CapturedClient : public ClientOutput {
 public:
  void ready(const StreamReady& ready) override {
    frames = ready.frames;
    commands = ready.commands;
    resumed = ready.resumed;
    token = ready.resume;
  }
  void result(const ResultHead& head, const Answer& answer) override {
    if (has_no_memory) throw std::bad_alloc();
    said.push_back("result " + std::to_string(head.seq) + " " + answer.data);
    flags.push_back(head.flags);
    ++unwritten;
  }
  void message(const MessageHead& head, const Answer& message) override {
    if (has_no_memory) throw std::bad_alloc();
    said.push_back("message " + std::to_string(head.number) + " at " + std::to_string(head.seq) +
                   " " + message.data);
    ++unwritten;
  }
  void flushed(std::uint64_t mark, std::uint64_t) override {
    said.push_back("flushed " + std::to_string(mark));
  }
  void rejected(ErrorCode code, std::string_view, std::uint64_t frames) override {
    said.push_back("rejected " + std::string(name_of(code)) + " " + std::to_string(frames));
  }
  void warning(ErrorCode code, std::string_view) override {
    said.push_back("warning " + std::string(name_of(code)));
  }
  void goaway() override { ++goaways; }
  void error(ErrorCode code, std::string_view) override {
    said.push_back("error " + std::string(name_of(code)));
  }
  void closed(std::uint64_t frames, std::uint64_t chunks, bool) override {
    said.push_back("closed " + std::to_string(frames) + " " + std::to_string(chunks));
  }
  void speech_began(double seconds) override {
    said.push_back("speech");
    speech.push_back(seconds);
  }
  void segment_ended(const SegmentEnd& end) override {
    said.push_back("segment " + std::to_string(end.seq) + " at " + std::to_string(end.position));
    marks.push_back(end.mark);
    endpoints += end.by_endpoint ? 1 : 0;
  }
  void settled(std::uint64_t frames) override {
    if (std::exchange(settled_frames, frames) != frames)
      said.push_back("settled " + std::to_string(frames));
  }
  void drop_queued() override {}
  std::size_t reclaimable() const override { return 0; }
  void number(const MessageNumber& number) override { numbers.push_back(number); }
  void acknowledged(const ResumePoint& point) override { points.push_back(point); }
  void resume() override { said.push_back("resume"); }
  void credit_available() override { ++credits_available; }

  std::vector<std::string> said;
  std::vector<std::uint8_t> flags;    // flags of the results
  std::size_t credits_available = 0;  // calls of credit_available()
  std::size_t goaways = 0;
  std::size_t unwritten = 0;  // results and messages
  bool& is_full = full_;
  bool& follows = follows_rows_;
  std::vector<double> speech;                       // in seconds of the stream
  std::vector<std::optional<std::uint64_t>> marks;  // of the segments that ended
  std::size_t endpoints = 0;                        // segments that an endpoint ended
  std::uint64_t settled_frames = 0;
  bool has_no_memory = false;  // for results and messages
  // Of the ready message.
  std::uint64_t frames = 0, commands = 0;
  std::optional<bool> resumed;
  std::string token;
  std::vector<MessageNumber> numbers;  // of the messages so far
  std::vector<ResumePoint> points;     // of the acknowledgements
};

}  // namespace millrace::test
