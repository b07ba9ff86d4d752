// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/session.h"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <string>

#include "transport/sessions/client_pace.h"
#include "transport/sessions/read_progress.h"
#include "transport/sessions/waiting_place.h"
#include "transport/websocket/frame_head.h"

namespace millrace {
namespace {

using net::experimental::awaitable_operators::operator&&;
using How = Connection::Ended::How;
using Flushed = Connection::Flushed;

constexpr std::size_t written_at_once = Connection::most_copied;  // bytes, and the last message

class Session final : SessionScope::Watched {
 public:
  Session(SessionScope& scope, ClientGate& gate, Connection& connection, Conversation& conversation)
      : Watched(scope),
        scope_(scope),
        limits_(scope.limits()),
        stats_(scope.stats()),
        connection_(connection),
        conversation_(conversation),
        queue_(conversation.queue()),
        waiting_(gate, stats_),
        retire_at_(Clock::now() + scope.jittered(limits_.age)) {
    stats_.opened.add();
    stats_.connections.add(1);
  }

  ~Session() {
    if (!finished_) {  // an exception ended the session
      stats_.closed[Closing::internal].add();
      conversation_.disconnected(ConnectionEnd::lost, Clock::now());
    }
    if (paused_) stats_.paused.add(-1);
    stats_.connections.add(-1);
  }

  Task<> run() {
    Task<> reading = run_part(receive());
    Task<> writing = run_part(transmit());
    co_await (std::move(reading) && std::move(writing));
    co_await connection_.linger();
  }

  void check(Time now) override;
  void abort() override {
    aborted_ = true;
    cut();
  }
  void fail() override {
    over_ = true;
    closing_ = Clock::now();
    cut();
    queue_.to_send().notify();
  }

 private:
  bool must_retire(Time now) const;
  void check_client(Time now);
  void check_closing(Time now);
  void cut() {
    cut_ = true;
    connection_.abort();
    queue_.to_read().notify();
  }
  Task<> run_part(Task<> part);
  Task<> receive();
  Task<> pause();
  void handle(const Connection::Message& message);
  bool is_unfinished() const { return !cut_ && !queue_.closing() && conversation_.is_unfinished(); }
  void note_error(Time now);
  void fail_conversation(ErrorCode code, std::string_view message, Time now);
  void give_up_client(ErrorCode code, std::string_view message, Time now);
  void finish(const Connection::Ended& ended);
  Closing closing(const Connection::Ended& ended) const;

  Task<> transmit();
  void close() {
    if (!closing_) closing_ = Clock::now();
    connection_.close(queue_.closing()->code, queue_.closing()->reason);
  }
  void add_some();
  void sent_some();

  SessionScope& scope_;
  const ConnectionLimits& limits_;
  TransportStats& stats_;
  Connection& connection_;
  Conversation& conversation_;
  SessionQueue& queue_;
  WaitingPlace waiting_;
  ClientPace pace_{limits_};
  ReadProgress progress_{connection_};
  const Time retire_at_;

  bool retired_ = false;   // drained because of its age
  bool cut_ = false;       // we have cut the connection
  bool aborted_ = false;   // the scope has aborted the session
  bool over_ = false;      // the connection has ended
  bool finished_ = false;  // the end was counted
  bool paused_ = false;
  bool half_closed_ = false;          // the client has ended its direction, after its `end`
  bool sent_all_ = false;             // everything was sent, including the close
  Time last_message_ = Clock::now();  // when the last message arrived
  Time resumed_ = last_message_;      // when reading began or last resumed
  Time last_sent_ = last_message_;    // when the last message was written
  Time pinged_ = last_message_;
  std::optional<Time> closing_;             // when the wait for the end of the connection began
  std::optional<std::uint64_t> judged_at_;  // examined bytes from which a late client is ended
};

// If one part throws, the other must not wait for it. If an allocation fails inside Asio, the
// exception reaches the thread instead, and both coroutines are destroyed; `Failure` covers that
// too.
Task<> Session::run_part(Task<> part) {
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
    while (!cut_ && !queue_.closing() &&
           (conversation_.paused() || queue_.full() || pace_.is_exceeded()))
      co_await pause();
    auto received = connection_.next();
    while (!received) {
      co_await connection_.readable();
      pace_.add_controls(connection_.controls(), connection_.last_received());
      while (!cut_ && !queue_.closing() && (conversation_.is_ending() || pace_.is_exceeded()))
        co_await pause();
      received = connection_.next();
    }
    if (const auto* ended = std::get_if<Connection::Ended>(&*received)) {
      half_closed_ = ended->how == How::half_closed && conversation_.has_ended();
      if (half_closed_ && !queue_.closing()) queue_.ping();  // if the client is gone, it is reset
      while (half_closed_ && !cut_ && !sent_all_) co_await queue_.to_read().wait();
      finish(*ended);
      co_return;
    }
    handle(std::get<Connection::Message>(*received));
    while (is_unfinished()) {
      while (is_unfinished() && conversation_.paused()) co_await pause();
      while (connection_.is_turn_over()) co_await connection_.readable();
      if (is_unfinished()) conversation_.proceed();
    }
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

void Session::handle(const Connection::Message& message) {
  last_message_ = message.arrived;
  pace_.add_message(message.arrived);
  stats_.received.add(message.bytes.size());
  if (queue_.closing()) return;
  conversation_.received(message);
  note_error(message.arrived);
}

// A failed conversation gets the same time to send its output, however it failed.
void Session::note_error(Time now) {
  if (const auto& close = queue_.closing(); close && close->error && !closing_) closing_ = now;
}

void Session::fail_conversation(ErrorCode code, std::string_view message, Time now) {
  // A client that has stopped reading receives the error instead of its queued results.
  if (code == ErrorCode::slow_reader) queue_.drop_queued();
  conversation_.fail(code, message, now);
  closing_ = now;
}

// The line may be lost without a sign of it: then a stream that resumes waits for its client.
void Session::give_up_client(ErrorCode code, std::string_view message, Time now) {
  const StreamInput* const stream = conversation_.stream();
  if (stream && stream->outlives_connection()) return cut();
  fail_conversation(code, message, now);
}

void Session::finish(const Connection::Ended& ended) {
  if (over_) return;  // fail() was called
  over_ = true;
  closing_ = Clock::now();
  const bool is_lost = ended.how == How::lost || ended.how == How::half_closed;
  if (is_lost && !sent_all_) connection_.abort();  // a send may be stuck
  stats_.closed[closing(ended)].add();
  conversation_.disconnected(end_of(ended), Clock::now());
  finished_ = true;
  queue_.to_send().notify();
}

Closing Session::closing(const Connection::Ended& ended) const {
  if (const auto& close = queue_.closing(); close && close->drained) return Closing::drain;
  if (const auto& close = queue_.closing())
    return close->error ? closing_of(*close->error) : Closing::client;
  if (ended.how == How::too_big) return Closing::too_big;
  if (ended.how == How::protocol) return Closing::protocol;
  return aborted_ ? Closing::drain : Closing::client;
}

// Coroutine frames are allocated only for waits.
Task<> Session::transmit() {
  while (!over_) {
    const bool closes = queue_.empty() && queue_.closing();
    if (!closes && queue_.empty()) {
      co_await queue_.to_send().wait();
      if (queue_.has_sent_results()) conversation_.written(Clock::now());
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

// Adds messages for one write. The size is limited, so that the stream soon learns what was
// written.
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

// The last added message counts as unsent until now, because a long one is not copied.
void Session::sent_some() {
  queue_.sent();
  last_sent_ = Clock::now();
  if (!over_ && !connection_.peer_closed_since()) conversation_.written(Clock::now());
}

void Session::check(Time now) {
  note_error(now);
  if (pace_.recovers(now)) queue_.to_read().notify();
  if (closing_) return check_closing(now);
  // Earlier messages of the client have been read by then. During a pause they are lost unread.
  const auto peer_closed = connection_.peer_closed_since();
  if (peer_closed && now - *peer_closed > limits_.close) return cut();
  const bool stalled = progress_.is_stalled(now, limits_.write_stall);
  if (queue_.closing()) return stalled ? cut() : void();
  if (stalled)
    return give_up_client(ErrorCode::slow_reader,
                          "the client read no results for " + seconds_of(limits_.write_stall) +
                              ": read results while you send",
                          now);
  if (must_retire(now)) {
    retired_ = true;
    conversation_.drain(now);
  }
  if (now - std::max(connection_.last_received(), pinged_) > limits_.ping ||
      now - std::max(last_sent_, pinged_) > limits_.quiet) {
    pinged_ = now;
    queue_.ping();
  }
  conversation_.check(now);
  if (const auto why = waiting_.check(conversation_, now)) return queue_.close(*why);
  check_client(now);
}

// Without a stream, a drain of the service ends the connection; streams are drained by their owner.
bool Session::must_retire(Time now) const {
  if (scope_.draining() && !conversation_.stream()) return true;
  return !retired_ && !conversation_.has_ended() && now > retire_at_;
}

void Session::check_client(Time now) {
  // A paused client is not read, and a half-closed one only reads, but a reset must be noticed.
  if ((paused_ || half_closed_) && connection_.is_reset()) return cut();
  if (half_closed_) return;
  if (paused_) return conversation_.tick(now);
  const auto assembling = connection_.assembling_since();
  const bool unfinished = assembling && now - std::max(*assembling, resumed_) > limits_.assembly;
  // After its end, a client sends only pongs.
  const bool done = conversation_.has_ended() || retired_;
  const Time last_received = done ? connection_.last_received() : last_message_;
  const auto limit = done ? limits_.idle : limits_.message_idle;
  const bool silent =
      (conversation_.stream() || done) && now - std::max(last_received, resumed_) > limit;
  if (!unfinished && !silent) return judged_at_.reset();
  // The thread may be late, and not the client, until all bytes are examined that had arrived when
  // the client was first found late.
  if (!judged_at_) judged_at_ = connection_.examined() + connection_.unexamined();
  if (connection_.unexamined() > 0 && connection_.examined() < *judged_at_) return;
  if (!unfinished && conversation_.outlives_silence(now)) return;
  const std::string why =
      unfinished ? "a message was not finished within " + seconds_of(limits_.assembly)
                 : "nothing was received for " + seconds_of(limit) +
                       (done ? ", not even a pong" : "; send keepalive (pings do not count)");
  const bool answers = now - connection_.last_received() <= limits_.ping * 3 / 2;
  if (!unfinished && answers) return fail_conversation(ErrorCode::idle, why, now);
  give_up_client(ErrorCode::idle, why, now);
}

// The client must acknowledge a byte every `limits.close`. After an error it must also close within
// `limits.idle`; without an error there is no limit, so that a slow client can read all results.
void Session::check_closing(Time now) {
  progress_.note(now);
  const bool ended_well = queue_.closing() && !queue_.closing()->error;
  const bool late = !ended_well && now - *closing_ > limits_.idle;
  if (late || now - std::max(*closing_, progress_.last()) > limits_.close) cut();
}

}  // namespace

Task<> run_session(SessionScope& scope, ClientGate& gate, Connection& connection,
                   Conversation& conversation) {
  Session session(scope, gate, connection, conversation);
  co_await session.run();
}

}  // namespace millrace
