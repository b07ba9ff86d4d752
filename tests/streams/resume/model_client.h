// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/event.h"
#include "base/result_head.h"
#include "tests/cutting/random_rules.h"

namespace millrace::test {

// A rule of the model was broken. The message says which one.
inline void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

// All that a client sends, in order: its frames, whose values are 1 2 3 …, and its commands.
class Script {
 public:
  struct Item {
    Event event;
    std::uint64_t frame = 0;    // frames before it, lost ones included
    std::uint64_t command = 0;  // commands before it
    std::string text{};         // of a message or set
    bool is_command() const { return event.kind != Event::Kind::frames; }
    std::uint64_t end() const {
      const bool moves = !is_command() || event.kind == Event::Kind::gap;
      return frame + (moves ? event.count : 0);
    }
  };

  explicit Script(Draw& draw) {
    for (std::uint32_t left = draw(1, 12); left > 0; --left) add(draw);
    push({.kind = Event::Kind::end});
  }

  const std::vector<Item>& items() const { return items_; }
  std::uint64_t frames() const { return frames_; }
  // The frames before this one that are not lost in a gap.
  std::uint64_t sent(std::uint64_t frame) const {
    std::uint64_t sum = 0;
    for (const Item& item : items_)
      if (!item.is_command()) sum += std::clamp(frame, item.frame, item.end()) - item.frame;
    return sum;
  }

 private:
  using Kind = Event::Kind;

  void add(Draw& draw) {
    const std::uint32_t what = draw(1, 100);
    if (what <= 55) return push({.kind = Kind::frames, .count = draw(1, 40)});
    if (what <= 70) return push({.kind = Kind::flush, .mark = mark(draw)});
    if (what <= 78) return push({.kind = Kind::reset});
    if (what <= 86) return push({.kind = Kind::gap, .count = draw(1, 30)});
    const std::string number = std::to_string(commands_);
    const bool is_set = what > 94;
    const std::string text = is_set ? "{\"k\":" + number + "}" : number;
    push({.kind = is_set ? Kind::set : Kind::message, .count = text.size()}, text);
  }

  std::optional<std::uint64_t> mark(Draw& draw) const {
    return draw.chance(70) ? std::optional(commands_) : std::nullopt;
  }

  void push(const Event& event, std::string text = {}) {
    items_.push_back({event, frames_, commands_, std::move(text)});
    if (items_.back().is_command()) ++commands_;
    frames_ = items_.back().end();
  }

  std::vector<Item> items_;
  std::uint64_t frames_ = 0, commands_ = 0;
};

// The part of a token that the stream checks.
struct ModelToken {
  std::uint32_t epoch = 0, opening = 0;
};

// A message of the service to its client.
struct FromService {
  enum class Kind : std::uint8_t { ready, ack, result, message, flushed, rejected, error, closed };
  Kind kind = Kind::ready;
  std::optional<std::uint64_t> n{};
  std::optional<ResumePoint> point{};
  ResultHead head{};                       // of a result
  std::uint64_t mark = 0;                  // of a flush
  std::uint64_t row = 0;                   // the row whose segment it ended
  std::string text{};                      // of a result or message; the code of an error
  std::uint64_t frames = 0, commands = 0;  // of ready; of closed the total of frames
  ModelToken token{};                      // in ready
  std::optional<bool> resumed{};
};

// A message of the client to the service: bytes of frames, a command or an acknowledgement.
struct ToService {
  std::vector<std::byte> bytes{};
  const Script::Item* command = nullptr;
  std::optional<std::uint64_t> ack{};
};

// A client that resumes, as docs/protocol.md asks. It has no connection and no time: it gives the
// next message, and takes those of the service.
class ModelClient {
 public:
  // It keeps at most `keep` frames, those lost in gaps not counted.
  ModelClient(const Script& script, std::uint64_t keep) : script_(script), keep_(keep) {}

  // A new connection: nothing is sent before `ready`.
  void connected() {
    is_ready_ = false;
    half_ = false;
  }

  // The next message; nullopt: it waits for the service, or has sent all.
  std::optional<ToService> next(Draw& draw) {
    skip_sent();
    if (!is_ready_ || item_ == script_.items().size()) return std::nullopt;
    const Script::Item& item = script_.items()[item_];
    if (item.is_command()) {
      ++item_;
      return ToService{.command = &item};
    }
    const std::uint64_t begin = item.frame + offset_;
    const std::uint64_t kept = script_.sent(begin) - script_.sent(place_.frames);
    if (kept >= keep_) return std::nullopt;
    const std::uint64_t most = std::min(item.end() - begin, keep_ - kept);
    return ToService{.bytes = bytes(begin, static_cast<std::uint32_t>(most), draw)};
  }

  std::optional<ToService> acknowledgement() {
    if (!is_ready_ || acknowledged_ == received_) return std::nullopt;
    acknowledged_ = received_;
    return ToService{.ack = received_};
  }

  void receive(const FromService& message) {
    using Kind = FromService::Kind;
    if (message.kind == Kind::ready) return ready(message);
    expect(is_ready_, "a message came before ready");
    if (message.point) advance(*message.point);
    if (message.kind == Kind::ack) return;
    if (!message.n) return expect(message.text == "conflict", "a message has no number");
    expect(*message.n == received_, "a message is missing or is repeated");
    expect(!is_over_, "a message came after the last one");
    ++received_;
    is_over_ = message.kind == Kind::closed || message.kind == Kind::error;
    if (message.kind == Kind::result) results_ = std::max(results_, message.head.seq + 1);
    if (message.kind == Kind::flushed) flushed_ = std::max(flushed_, message.row + 1);
    messages_.push_back(message);
  }

  // The parameters of the next connection.
  std::optional<ModelToken> token() const { return token_; }  // nullopt: it has no token yet
  std::uint64_t received() const { return received_; }
  const ResumePoint& place() const { return place_; }
  std::uint64_t results() const { return results_; }
  std::uint64_t flushed() const { return flushed_; }

  bool is_over() const { return is_over_; }
  const std::vector<FromService>& messages() const { return messages_; }

 private:
  void ready(const FromService& message) {
    expect(!is_ready_, "ready came twice");
    expect(token_ ? message.resumed.has_value() : !message.resumed, "resumed is wrong");
    expect(message.frames >= place_.frames && message.commands >= place_.commands,
           "the client no longer has what the service asks for");
    if (message.resumed && !*message.resumed)
      expect(message.frames == place_.frames && message.commands == place_.commands,
             "a stream opened anew does not begin at the place");
    is_ready_ = true;
    token_ = message.token;
    frames_ = message.frames;
    commands_ = message.commands;
    item_ = offset_ = 0;
  }

  // What follows the place is kept; the place moves forward only.
  void advance(const ResumePoint& point) {
    expect(point.seq >= place_.seq && point.frames >= place_.frames &&
               point.commands >= place_.commands && point.begin >= place_.begin,
           "a place is before an earlier one");
    place_ = point;
  }

  // Goes to the first frame or command that the service does not have.
  void skip_sent() {
    if (!is_ready_) return;
    for (; item_ < script_.items().size(); ++item_, offset_ = 0) {
      const Script::Item& item = script_.items()[item_];
      if (item.is_command()) {
        const bool moves = item.event.kind == Event::Kind::gap;
        if (item.command >= commands_) {
          expect(!moves || item.frame >= frames_, "a gap was counted, and not its command");
          return;
        }
        expect(!moves || item.end() <= frames_, "the command of a gap was counted, not its frames");
      } else if (item.end() > frames_) {
        offset_ = std::max(offset_, frames_ - std::min(frames_, item.frame));
        if (item.frame + offset_ < item.end()) return;
      }
    }
  }

  // Bytes from this frame on, of at most `frames` frames, with random ends.
  std::vector<std::byte> bytes(std::uint64_t begin, std::uint32_t frames, Draw& draw) {
    const std::uint32_t from = half_ ? 1 : 0;
    const std::uint32_t to = draw(from + 1, 2 * frames);
    std::vector<std::byte> all;
    for (std::uint32_t i = from; i < to; ++i)
      all.push_back(static_cast<std::byte>((begin + i / 2 + 1) >> 8 * (i % 2) & 0xff));
    offset_ += to / 2;
    half_ = to % 2 == 1;
    return all;
  }

  const Script& script_;
  const std::uint64_t keep_;
  bool is_ready_ = false, is_over_ = false;
  // Where it sends: the item, frames of it, and whether half of the next frame was sent.
  std::size_t item_ = 0;
  std::uint64_t offset_ = 0;
  bool half_ = false;
  std::uint64_t frames_ = 0, commands_ = 0;  // that the service had at ready
  std::optional<ModelToken> token_;
  std::uint64_t received_ = 0, acknowledged_ = 0, results_ = 0, flushed_ = 0;
  ResumePoint place_;
  std::vector<FromService> messages_;
};

}  // namespace millrace::test
