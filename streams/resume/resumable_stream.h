// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "schemas/stream_request.h"
#include "streams/resume/client_shelf.h"
#include "streams/stream.h"

namespace millrace {

class ClientLink;
class ResumableStream;

// The owner of resumable streams.
class ResumeHome {
 public:
  // The stream has lost its connection, and waits for the next one. False: it must not wait.
  virtual bool keeps(ResumableStream& stream, Time now) = 0;
  // A waiting stream has a connection again.
  virtual void returned(ResumableStream& stream) = 0;
  // Destroys the stream, which aborts if it is not over.
  virtual void remove(ResumableStream& stream) = 0;

 protected:
  ~ResumeHome() = default;
};

// A stream that outlives its connections: it stands between the stream and the connection that it
// has at the moment. As the stream's ClientOutput it numbers all messages and keeps them until the
// client acknowledges them. A connection receives a StreamHandle from attach(), which ends with the
// connection. Without a connection the stream continues: its results are kept.
//
// A connection is given messages, in order, only while it is not full(), and those that wait for
// room while it has_room(). So it has few that are kept here too, also after attach().
//
// While more than `buffer` bytes are kept it is full(), so the stream gives no row to the lane. If
// the client then acknowledges nothing for `stall`, the stream fails. This time continues over the
// client's connections; time without a connection does not count. Until then its client is read
// while the stream holds less than `held` bytes: the acknowledgement comes after frames. It is not
// read after rejections of `excess` bytes more, because each of its messages may be rejected.
//
// Confined to one thread.
class alignas(64) ResumableStream final : public ClientOutput {
 public:
  static constexpr std::size_t excess = 64 << 10;  // bytes

  struct Settings {
    StreamKey key{};
    std::size_t parameters = 0;    // a hash of the parameters that it was opened with
    std::uint32_t epoch = 0;       // the connection that opens it has this one
    std::uint32_t opening = 0;     // a random number: the tokens of this stream have it
    std::uint32_t opened_by = 0;   // the same number of the token that opens it anew
    std::uint64_t n = 0;           // number of its first message
    std::uint64_t results = 0;     // results of rows before this number are not given
    std::uint64_t flushed = 0;     // the same for `flushed`
    std::size_t buffer = 1 << 20;  // bytes
    Duration stall = std::chrono::seconds(10);
    std::uint64_t keep = 0;                                      // StreamReady::keep
    std::size_t held = std::numeric_limits<std::size_t>::max();  // bytes
  };

  // `home` outlives it.
  ResumableStream(const Settings& settings, ResumeHome& home);
  // As the stream has then continued elsewhere, a connection that still stands gets `conflict`.
  ~ResumableStream() override;
  ResumableStream(const ResumableStream&) = delete;
  ResumableStream& operator=(const ResumableStream&) = delete;

  // The stream, whose output is this object. Call it once, before attach().
  void take(Stream& stream);

  const StreamKey& key() const { return settings_.key; }
  std::size_t parameters() const { return settings_.parameters; }
  std::uint32_t opening() const { return settings_.opening; }
  Stream& stream() const { return *stream_; }
  // It was opened anew, and its client may not know that yet: it has sent nothing since.
  bool is_new() const { return settings_.epoch > 0 && !has_input_; }
  // The stream has ended or failed: its last messages wait to be acknowledged.
  bool is_over() const { return over_; }
  std::size_t kept_bytes() const { return shelf_.bytes(); }
  // Since when it has had no connection; nullopt while it has one.
  std::optional<Time> detached_since() const { return detached_since_; }

  // How a token with this epoch and opening can be used: it continues the stream; it was used
  // before; or the stream has continued elsewhere since its last connection here.
  enum class Epoch : std::uint8_t { continues, used, newer };
  Epoch check(std::uint32_t epoch, std::uint32_t opening) const;
  // The parameter of a resumption that does not fit the stream; empty if all fit.
  std::string_view misfit(const Resumption& resumption) const;

  // Connects the stream to a client, after its token with this epoch was checked. A connection that
  // still stands receives the error `conflict`. The client receives `ready` with `token`, the next
  // one, then the messages from number `n` on, which fits. `resumed`: see StreamReady. The handle
  // ends with the connection; `client` outlives it.
  StreamHandle attach(ClientOutput& client, std::uint32_t epoch, std::uint64_t n,
                      std::string_view token, std::optional<bool> resumed, Time now);

  // From the stream.
  std::string peer() const override { return client_ ? client_->peer() : std::string(); }
  void ready(const StreamReady&) override {}  // attach() gives it
  void result(const ResultHead& head, const Answer& answer) override;
  void message(const MessageHead& head, const Answer& message) override;
  bool full() const override;
  void flushed(std::uint64_t mark, std::uint64_t seq) override;
  void rejected(ErrorCode code, std::string_view message, std::uint64_t frames) override;
  void warning(ErrorCode code, std::string_view message) override;
  void goaway() override;
  void error(ErrorCode code, std::string_view message) override;
  void closed(std::uint64_t frames, std::uint64_t chunks, bool drained) override;
  void drop_queued() override;
  std::size_t reclaimable() const override;
  void resume() override;
  void credit_available() override;

 private:
  friend class ClientLink;

  // Gives a new connection `ready`.
  void greet(ClientOutput& client, std::string_view token, std::optional<bool> resumed);
  void keep(const auto& message, const Answer& text = {});
  // Gives the connection the next messages that it has room for.
  void give_some();
  void has_acknowledged(std::uint64_t n);
  bool needs_acknowledgement() const { return shelf_.bytes() >= settings_.buffer; }
  // A connection that still stands receives the error `conflict`, and is no longer used.
  void take_from_client();
  // From the link of the current connection.
  void used(std::uint32_t epoch);
  // A result follows soon: has the memory that it uses fetched into the cache meanwhile.
  void expect_result() const {
    __builtin_prefetch(&acknowledged_, 1);
    shelf_.expect_message();
  }
  void fail(ErrorCode code, std::string_view message, Time now);
  void acknowledge(std::uint64_t n, Time now);
  void check(Time now);
  void check_stall(Time now);
  bool paused() const {
    if (!needs_acknowledgement()) return stream_->paused();
    const bool waits = stream_->held_bytes() < settings_.held && !stream_->overrun();
    return (stream_->paused() && !waits) || rejected_bytes_ >= excess;
  }
  bool overrun() const { return stream_->overrun() || rejected_bytes_ >= excess; }
  void written(std::size_t results, Time now);
  void connection_ended(ConnectionEnd how, Time now);
  void report_written(std::size_t results, Time now) {
    unreported_ -= static_cast<std::uint32_t>(results);
    stream_->written(results, now);
  }
  void send_ack(Time now);
  bool waits(ConnectionEnd how) const;

  // Each result uses these. They fill four lines of the cache, because a stream is in no cache when
  // its result comes.
  std::uint32_t unreported_ = 0;  // results given to the stream's client, not reported written
  const Settings settings_;
  ClientOutput* client_ = nullptr;  // null while it has no connection
  Stream* stream_ = nullptr;
  ClientShelf shelf_;
  // The place that the client has received last. Its frame follows from its position, except
  // if lost frames changed no position.
  ResumePoints::Place acknowledged_;
  Time ack_due_{};              // when to look for the next acknowledgement
  std::uint32_t repeated_ = 0;  // the next written results were reported before
  std::uint32_t dropped_ = 0;   // results that were not given, and count as written

  ResumeHome& home_;
  ClientLink* link_ = nullptr;  // the connection's handle; null without a connection
  StreamHandle handle_;
  std::size_t rejected_bytes_ = 0;  // rejections kept while it needs an acknowledgement
  std::uint32_t given_ = 0;         // the epoch of the newest token
  std::uint32_t used_ = 0;          // the highest epoch that was used
  bool has_input_ = false;          // something was received since it was opened here
  bool over_ = false;               // error() or closed() was called
  std::optional<Time> detached_since_;
  // Since when the client has had to acknowledge, moved by the time without a connection.
  std::optional<Time> full_since_;
};

}  // namespace millrace
