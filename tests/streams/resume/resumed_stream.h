// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "streams/resume/resumable_streams.h"
#include "tests/streams/live_stream.h"

namespace millrace::test {

inline constexpr std::chrono::seconds window{15};

inline StreamKey key_of(std::uint8_t number) { return {.bytes = {number}}; }

inline StreamSettings settings_of(const Spec& spec) {
  return {.id = StreamId{5},
          .name = "a",
          .pipeline = "asr",
          .type = {},
          .format = format_of(SampleFormat::s16le, {}),
          .chunk = {.spec = spec},
          .frames_limit = 1000,
          .longest_post = 250,
          .opened = at(0)};
}

// A connection of a client to a resumable stream, and all that the client received over it.
struct Link {
  CapturedClient client;
  StreamHandle stream;

  Said said() { return std::exchange(client.said, {}); }
  // The numbers of the messages so far.
  std::vector<std::uint64_t> numbers() const {
    std::vector<std::uint64_t> all;
    for (const MessageNumber& number : client.numbers) all.push_back(number.n);
    return all;
  }
  void send(std::vector<std::int16_t> values, Time now) {
    stream->frames(bytes_of(std::span<const std::int16_t>(values)), now);
  }
  // Its results so far are written.
  void write(Time now) { stream->written(std::exchange(client.unwritten, 0), now); }
};

// A resumable stream of a thread with one stream.
struct ResumedStream {
  explicit ResumedStream(const Spec& spec = tens, ResumableStream::Settings resume = {},
                         ResumeSettings start = {.longest_segment = 1000})
      : ResumedStream(settings_of(spec), resume, start) {}
  ResumedStream(const StreamSettings& settings, ResumableStream::Settings resume,
                ResumeSettings start)
      : home(std::make_unique<ResumableStreams>(window, 3, waiting)),
        kept(&home->add(std::make_unique<ResumableStream>(with_key(resume), *home))),
        live(settings, 100, {}, &start, kept) {
    live.writes = false;
    kept->take(live.stream);
    connect(resume.epoch);
  }
  ~ResumedStream() {
    links.clear();
    home.reset();
  }

  static ResumableStream::Settings with_key(ResumableStream::Settings settings) {
    settings.key = key_of(1);
    return settings;
  }

  // A further connection, with a token of this epoch. The client has the messages before `n`.
  Link& connect(std::uint32_t epoch, std::uint64_t n = 0) {
    Link& link = links.emplace_back();
    const std::optional<bool> resumed = epoch > 0 ? std::optional(true) : std::nullopt;
    link.stream = kept->attach(link.client, epoch, n, "token " + std::to_string(epoch + 1), resumed,
                               live.now);
    return link;
  }
  // The newest connection.
  Link& link() { return links.back(); }
  void send(std::size_t frames) {
    std::vector<std::int16_t> values(frames);
    std::iota(values.begin(), values.end(), live.next);
    live.next = static_cast<std::int16_t>(live.next + static_cast<int>(frames));
    link().send(values, live.now);
  }
  void lose(ConnectionEnd how = ConnectionEnd::lost) { link().stream->disconnected(how, live.now); }
  // The lane answers `count` rows.
  void answer(std::size_t count, Answer::Kind kind = Answer::Kind::text) {
    live.answer(count, kind);
  }
  void message(std::string text) {
    live.stream.message({.seq = 0, .message = {Answer::Kind::text, std::move(text)}}, live.now);
  }
  // Time has passed, which the connection notices.
  void check_after(Duration time) {
    live.now += time;
    link().stream->check(live.now);
  }
  bool is_there() const { return home->find(key_of(1)) != nullptr; }

  DetachedList waiting;
  std::unique_ptr<ResumableStreams> home;
  ResumableStream* kept;
  LiveStream live;
  std::deque<Link> links;
};

}  // namespace millrace::test
