// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/session.h"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
namespace millrace {
namespace {

using net::experimental::awaitable_operators::operator&&;
using How = Connection::Ended::How;
using Flushed = Connection::Flushed;

constexpr std::uint16_t close_normal = 1000;
constexpr std::size_t written_at_once = Connection::most_copied;  // bytes, and the last message

class Session final : SessionScope::Watched {
 public:
  Session(SessionScope& scope, Connection& connection, Conversation& conversation)
      : Watched(scope),
        scope_(scope),
        limits_(scope.limits()),
        stats_(scope.stats()),
        connection_(connection),
        conversation_(conversation),
        queue_(conversation.queue()),
        retires_(Clock::now() + scope.about(limits_.age)) {
    stats_.opened.add();
    stats_.connections.add(1);
  }

  ~Session() {
    if (!finished_) {  // it failed
      stats_.closed[Closing::internal].add();
      conversation_.lost(false, Clock::now());
    }
    if (paused_) stats_.paused.add(-1);
    stats_.connections.add(-1);
  }

  Task<> run() {
    Task<> reading = to_its_end(receive());
    Task<> writing = to_its_end(transmit());
    co_await (std::move(reading) && std::move(writing));
    co_await connection_.linger();
  }

  void check(Time now) override;
  void abort() override;
  void fail() override;

 private:
  bool is_stalled(Time now);
  void note_taken(Time now);
  bool is_to_retire(Time now) const;
  void check_client(Time now);
  void check_closing(Time now);
  void cut();
  Task<> to_its_end(Task<> part);
  Task<> receive();
  Task<> pause();
  void hear(const Connection::Message& message);
  void note_error(Time now);
  void refuse(ErrorCode code, std::string_view message, Time now);
  void finish(const Connection::Ended& ended);
  Closing closing(const Connection::Ended& ended) const;

  Task<> transmit();
  void close();
  void add_some();
  void sent_some();

  SessionScope& scope_;
  const ConnectionLimits& limits_;
  DoorStats& stats_;
  Connection& connection_;
  Conversation& conversation_;
  SessionQueue& queue_;
  const Time retires_;

  bool retired_ = false;   // by its age
  bool cut_ = false;       // by us
  bool aborted_ = false;   // by the scope
  bool over_ = false;      // the connection
  bool finished_ = false;  // and that was counted
  bool paused_ = false;
  bool half_closed_ = false;     // after its end: it hears what is left
  bool sent_all_ = false;        // the close, too
  Time message_ = Clock::now();  // the last one
  Time resumed_ = message_;      // reading, or first begun
  Time pinged_ = message_;
  std::optional<Time> closing_;  // since the peer is to close, or to hang up
  std::size_t untaken_ = 0;      // by the peer, when it was last looked at
  Time took_{};                  // when that was seen to become less
};

// Neither part waits for the other where that fails. What fails deep in the library, for want of
// memory, is thrown to the thread instead, and the coroutines that waited for it are destroyed.
Task<> Session::to_its_end(Task<> part) {
  struct Failure {
    Session* session;
    ~Failure() {
      if (session) session->fail();
    }
  } failure{this};
  co_await std::move(part);
  failure.session = nullptr;
}

Task<> Session::receive() {
  for (;;) {
    while (!cut_ && !queue_.closing() && (conversation_.paused() || queue_.full()))
      co_await pause();
    auto received = connection_.next();
    while (!received) {
      co_await connection_.readable();
      received = connection_.next();
    }
    if (const auto* ended = std::get_if<Connection::Ended>(&*received)) {
      half_closed_ = ended->how == How::half_closed && conversation_.has_ended();
      while (half_closed_ && !cut_ && !sent_all_) co_await queue_.to_read().wait();
      finish(*ended);
      co_return;
    }
    hear(std::get<Connection::Message>(*received));
  }
}

Task<> Session::pause() {
  const Time begin = Clock::now();
  paused_ = true;
  stats_.paused.add(1);
  co_await queue_.to_read().wait();
  stats_.paused.add(-1);
  paused_ = false;
  resumed_ = Clock::now();
  stats_.paused_time.add(resumed_ - begin);
}

void Session::hear(const Connection::Message& message) {
  message_ = message.arrived;
  stats_.received.add(message.bytes.size());
  if (queue_.closing()) return;
  conversation_.received(message);
  note_error(message.arrived);
}

// A failed conversation gets the same grace period for its output, however it failed.
void Session::note_error(Time now) {
  if (const auto& close = queue_.closing(); close && close->error && !closing_) closing_ = now;
}

void Session::refuse(ErrorCode code, std::string_view message, Time now) {
  // A client that has stopped reading receives the error instead of its queued results.
  if (code == ErrorCode::slow_reader) queue_.drop_untaken();
  conversation_.fail(code, message, now);
  closing_ = now;
}

void Session::finish(const Connection::Ended& ended) {
  if (over_) return;  // it failed
  over_ = true;
  closing_ = Clock::now();
  const bool is_lost = ended.how == How::lost || ended.how == How::half_closed;
  if (is_lost && !sent_all_) connection_.abort();  // a send may be stuck
  stats_.closed[closing(ended)].add();
  conversation_.lost(ended.how == How::closed && ended.code == close_normal, Clock::now());
  finished_ = true;
  queue_.to_send().notify();
}

Closing Session::closing(const Connection::Ended& ended) const {
  if (const auto& close = queue_.closing()) {
    if (close->drained) return Closing::drain;
    if (!close->error) return Closing::client;
    switch (*close->error) {
      case ErrorCode::schema: return Closing::protocol;
      case ErrorCode::idle: return Closing::idle;
      case ErrorCode::slow_reader: return Closing::slow_reader;
      case ErrorCode::internal: return Closing::internal;
      default: return Closing::policy;
    }
  }
  if (ended.how == How::too_big) return Closing::too_big;
  if (ended.how == How::protocol) return Closing::protocol;
  return aborted_ ? Closing::drain : Closing::client;
}

// Frames of coroutines are allocated while it waits only.
Task<> Session::transmit() {
  while (!over_) {
    const bool closes = queue_.empty() && queue_.closing();
    if (!closes && queue_.empty()) {
      co_await queue_.to_send().wait();
      continue;
    }
    closes ? close() : add_some();
    auto flushed = connection_.flush();
    while (flushed == Flushed::later) {
      co_await connection_.writable();
      flushed = connection_.flush();
    }
    if (flushed == Flushed::failed && !over_) co_return cut();
    if (closes) {
      sent_all_ = true;
      co_return queue_.to_read().notify();
    }
    sent_some();
  }
}

void Session::close() {
  if (!closing_) closing_ = Clock::now();
  connection_.close(queue_.closing()->code, queue_.closing()->reason);
}

// As many messages as are worth one write, so that the stream soon learns what was written of many.
void Session::add_some() {
  std::size_t bytes = 0;
  for (bool more = true; more;) {
    const auto message = queue_.next();
    connection_.add(message.kind, message.bytes);
    bytes += message.bytes.size();
    more = !queue_.empty() && bytes < written_at_once;
    if (more) queue_.sent();
  }
}

// The last of them counted as unsent until now: it may be too long to be copied.
void Session::sent_some() {
  queue_.sent();
  if (!over_ && !connection_.hung_up_since()) conversation_.written(Clock::now());
}

void Session::check(Time now) {
  note_error(now);
  if (closing_) return check_closing(now);
  // What it sent before is read by then, or waits behind a pause: nobody waits for that.
  const auto hung_up = connection_.hung_up_since();
  if (hung_up && now - *hung_up > limits_.close) return cut();
  if (is_stalled(now)) {
    if (queue_.closing()) return cut();
    return refuse(ErrorCode::slow_reader, "results are not read", now);
  }
  if (queue_.closing()) return;
  if (is_to_retire(now)) {
    retired_ = true;
    conversation_.drain(now);
  }
  if (now - std::max(connection_.heard(), pinged_) > limits_.ping) {
    pinged_ = now;
    queue_.ping();
  }
  check_client(now);
}

// At a drain of the service, the owner of the streams drains them.
bool Session::is_to_retire(Time now) const {
  if (scope_.draining() && !conversation_.stream()) return true;
  return !retired_ && !conversation_.has_ended() && now > retires_;
}

void Session::check_client(Time now) {
  if (half_closed_) return;  // it has said everything, and reads
  // What a paused client says waits where it is not read; that it is gone does not.
  if (paused_ && connection_.is_reset()) return cut();
  if (paused_) return conversation_.tick(now);
  const auto assembling = connection_.assembling_since();
  if (assembling && now - std::max(*assembling, resumed_) > limits_.assembly)
    return refuse(ErrorCode::idle, "a message was not finished in time", now);
  // After its end a client has nothing to say but pongs.
  const bool done = conversation_.has_ended() || retired_;
  const Time heard = done ? connection_.heard() : message_;
  if (now - std::max(heard, resumed_) > (done ? limits_.idle : limits_.mute))
    refuse(ErrorCode::idle, "nothing was heard for too long", now);
}

// The peer has taken nothing for too long. A write waits until the peer has taken a part of what
// was written before it: that, too, is a sign that the peer reads.
bool Session::is_stalled(Time now) {
  const auto sending = connection_.sending_since();
  if (!sending) {
    untaken_ = 0;
    return false;
  }
  note_taken(now);
  return now - std::max(*sending, took_) > limits_.write_stall;
}

void Session::note_taken(Time now) {
  const std::size_t untaken = connection_.untaken();
  if (untaken < untaken_) took_ = now;
  untaken_ = untaken;
}

// A slow client whose stream has ended well gets as long as it reads for the messages before the
// close, any other at most `limits.idle`.
void Session::check_closing(Time now) {
  note_taken(now);
  const bool ended_well = queue_.closing() && !queue_.closing()->error;
  const bool late = !ended_well && now - *closing_ > limits_.idle;
  if (late || now - std::max(*closing_, took_) > limits_.close) cut();
}

void Session::abort() {
  aborted_ = true;
  cut();
}

void Session::cut() {
  cut_ = true;
  connection_.abort();
  queue_.to_read().notify();
}

void Session::fail() {
  over_ = true;
  closing_ = Clock::now();
  cut();
  queue_.to_send().notify();
}

}  // namespace

Task<> run_session(SessionScope& scope, Connection& connection, Conversation& conversation) {
  Session session(scope, connection, conversation);
  co_await session.run();
}

}  // namespace millrace
