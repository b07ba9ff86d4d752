// SPDX-License-Identifier: Apache-2.0
#include "transport/zeromq/router.h"

#include <sys/socket.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/net/acknowledged.h"
#include "transport/net/endless_task.h"
#include "transport/net/listener.h"
#include "transport/net/peer_address.h"
#include "transport/zeromq/bind.h"
#include "transport/zeromq/connection.h"
#include "transport/zeromq/flushes.h"
#include "transport/zeromq/linger.h"

namespace millrace {

class ZeromqRouter::Bound {
 public:
  Bound(Executor executor, const ZeromqBinding& binding, Budget& budget, ZeromqStats& stats)
      : executor_(executor),
        max_message_(binding.max_message),
        max_first_(std::min(binding.max_first, binding.max_message)),
        max_connections_(binding.max_connections),
        memory_short_(binding.memory_short),
        times_(binding.times),
        ping_(zmtp_ping(binding.times.silence)),
        budget_(budget),
        stats_(stats),
        acceptor_(listen_on_zeromq(executor, binding.endpoint)),
        buffer_(read_at_once) {}
  ~Bound() { write_remaining(connections_); }

  void start(ZeromqSink& sink) {
    sink_ = &sink;
    accepting_.start();
  }

  // Calls `message` for the message if it is accepted.
  template <class Message>
  Sent send(ZeromqPeer id, Message message) {
    Connection* const connection = find(id);
    if (!connection || connection->cut) return Sent::no_peer;
    if (connection->blocked) return Sent::full;
    if (connection->output.is_full()) {
      connection->blocked = true;
      stats_.would_block.add();
      return Sent::full;
    }
    flush_soon(id, *connection);
    connection->output.add_message(message());
    return Sent::accepted;
  }

  std::string address(ZeromqPeer id) {
    Connection* const connection = find(id);
    return connection ? peer_text(connection->peer) : std::string();
  }

  std::uint64_t acknowledged(ZeromqPeer id) {
    Connection* const connection = find(id);
    return connection ? acknowledged_bytes(connection->socket.native_handle()) : 0;
  }

  bool is_written(ZeromqPeer id) {
    Connection* const connection = find(id);
    return !connection || connection->output.empty();
  }
  bool has_all(ZeromqPeer id) {
    Connection* const connection = find(id);
    return !connection || connection->cut ||
           acknowledged(id) >= connection->output.end_of_messages();
  }

  // The shutdown makes the socket readable; receive() then removes the connection.
  void cut(ZeromqPeer id) noexcept {
    Connection* const connection = find(id);
    if (!connection) return;
    connection->cut = true;
    connection->output.clear();
    ::shutdown(connection->socket.native_handle(), SHUT_RDWR);
  }

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  using Connection = ZeromqConnection;
  using Found = ZmtpReader::Found;
  using Error = boost::system::error_code;

  Task<> accept_all() {
    while (auto socket = co_await accept(acceptor_)) add_connection(std::move(*socket));
  }

  void add_connection(Socket socket) {
    if (memory_short_ && memory_short_->load(std::memory_order_relaxed))
      return refuse(socket, Refusal::overload, "the service is short of memory");
    Share share;
    if (!max_connections_ || connections_.size() < *max_connections_) share = Share(budget_, 1);
    if (!share)
      return refuse(socket, Refusal::limit_global,
                    "the service has reached its limit of connections");
    const ZeromqPeer id{++last_};
    Connection& connection =
        connections_.try_emplace(id, std::move(socket), std::move(share), max_first_, Clock::now())
            .first->second;
    count();
    guard(id, [&] {
      const auto greeting = zmtp_greeting();
      connection.output.add_raw({greeting.data(), greeting.size()});
      flush(id, connection);
      wait_readable(id, connection);
      wait_due(id, connection);
      return true;
    });
  }

  void refuse(const Socket& socket, Refusal reason, std::string_view why) {
    stats_.refused[reason].add();
    stats_.disconnected.add();
    sink_->connection_refused(peer_of(socket), reason, why);
  }

  // Runs a handler of a connection. Removes the connection if `work` returns false or throws.
  template <class Work>
  void guard(ZeromqPeer id, Work work) {
    bool continues = false;
    try {
      continues = work();
    } catch (...) {
      remove(id);
      throw;
    }
    if (!continues) remove(id);
  }

  // Waits for the connection's next turn if it has work, else until it is readable.
  void wait_readable(ZeromqPeer id, Connection& connection) {
    if (connection.has_work()) return wait_turn(id, connection);
    if (std::exchange(connection.listens, true)) return;
    connection.socket.async_wait(Socket::wait_read, [this, id](Error cancelled) {
      Connection* const readable = cancelled ? nullptr : find(id);
      if (!readable) return;
      readable->listens = false;
      if (!readable->turn.waits()) take_turn(id, *readable);
    });
  }
  void wait_turn(ZeromqPeer id, Connection& connection) {
    if (connection.turn.waits()) return;
    // Small enough to need no allocation.
    connection.turn.end_early([this, id] { take_turn(id, *find(id)); });
  }
  void take_turn(ZeromqPeer id, Connection& connection) {
    guard(id, [&] {
      if (!receive(id, connection)) return false;
      wait_readable(id, connection);
      return true;
    });
  }

  void wait_due(ZeromqPeer id, Connection& connection) {
    connection.timer.expires_at(connection.next_due(times_));
    connection.timer.async_wait([this, id](Error cancelled) {
      Connection* const due = cancelled ? nullptr : find(id);
      if (!due) return;
      guard(id, [&] {
        if (!is_in_time(id, *due)) return false;
        wait_readable(id, *due);
        due->ping_when_due(times_, ping_, Clock::now());
        if (!due->output.empty()) flush(id, *due);  // its place in flushes_ may be lost
        wait_due(id, *due);
        return true;
      });
    });
  }

  // After a stall of this process, reads what has arrived meanwhile before a time limit applies.
  bool is_in_time(ZeromqPeer id, Connection& connection) {
    for (std::size_t left = max_message_ / read_at_once + 2; left > 0; --left) {
      if (!connection.late(times_, Clock::now())) return true;
      if (!receive(id, connection)) return false;
    }
    connection.why = connection.late(times_, Clock::now()).value_or(connection.why);
    return false;
  }

  // A turn of the connection. False if it has ended or must end.
  bool receive(ZeromqPeer id, Connection& connection) {
    if (connection.cut) return false;
    auto bytes = connection.read(buffer_);
    if (!bytes) return false;
    Time now = Clock::now();
    connection.turn.begin(now);
    while (connection.unfinished || !bytes->empty()) {
      if (!process_one(id, connection, *bytes, now) || connection.cut) return false;
      if (!connection.unfinished && bytes->empty()) break;
      now = Clock::now();
      if (connection.turn.is_over(now)) break;
    }
    connection.turn.end();
    connection.keep(*bytes);
    connection.note_progress(now);
    return true;
  }

  bool process_one(ZeromqPeer id, Connection& connection, Bytes& bytes, Time now) {
    if (!connection.unfinished) return handle(connection.next(bytes), id, connection, now);
    connection.unfinished = sink_->proceed(id);
    return true;
  }

  bool handle(Found found, ZeromqPeer id, Connection& connection, Time now) {
    switch (found) {
      case Found::nothing: return true;
      case Found::greeting: return true;
      case Found::ready: begin(id, connection); break;
      case Found::message: deliver(id, connection, now); return true;
      case Found::ping: connection.answer_ping(); break;
      case Found::parts: deliver_malformed(id, connection); return true;
      case Found::endless:
        stats_.malformed.add();
        connection.why = "a message has too many parts";
        return false;
      case Found::wrong: return connection.why = connection.reader.fault(), false;
    }
    flush_soon(id, connection);
    return true;
  }

  void begin(ZeromqPeer id, Connection& connection) {
    connection.output.add_command(zmtp_ready());
    connection.ready = true;
    connection.pinged = Clock::now();
    stats_.opened.add();
    wait_due(id, connection);
  }

  void deliver(ZeromqPeer id, Connection& connection, Time now) {
    connection.reported = true;
    connection.reader.set_max_message(max_message_);
    connection.unfinished = sink_->received(id, connection.reader.take_message(), now);
  }
  void deliver_malformed(ZeromqPeer id, Connection& connection) {
    connection.reported = true;
    stats_.malformed.add();
    sink_->malformed(id);
  }

  void flush_soon(ZeromqPeer id, Connection& connection) {
    if (connection.flush_due || connection.waiting) return;
    flushes_.add(id);
    connection.flush_due = true;
  }
  void flush_now(ZeromqPeer id) {
    Connection* const connection = find(id);
    if (!connection) return;
    connection->flush_due = false;
    guard(id, [&] { return flush(id, *connection), true; });
  }

  void flush(ZeromqPeer id, Connection& connection) {
    const auto written = connection.output.write(connection.socket.native_handle());
    if (written == ZmtpOutput::Written::failed) return cut(id);
    if (written == ZmtpOutput::Written::some) wait_writable(id, connection);
    if (!connection.blocked || connection.output.is_full()) return;
    connection.blocked = false;
    sink_->writable(id);
  }
  void wait_writable(ZeromqPeer id, Connection& connection) {
    if (std::exchange(connection.waiting, true)) return;
    connection.socket.async_wait(Socket::wait_write, [this, id](Error cancelled) {
      Connection* const writable = cancelled ? nullptr : find(id);
      if (!writable) return;
      writable->waiting = false;
      guard(id, [&] { return flush(id, *writable), true; });
    });
  }

  Connection* find(ZeromqPeer id) {
    const auto found = connections_.find(id);
    return found == connections_.end() ? nullptr : &found->second;
  }
  void remove(ZeromqPeer id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const Connection& connection = found->second;
    const auto [reported, peer] = std::pair(connection.reported, connection.peer);
    const std::string_view why = connection.why;
    const bool is_check = connection.is_check();
    connections_.erase(found);
    stats_.disconnected.add();
    count();
    if (reported) return sink_->lost(id);
    if (is_check) return;
    stats_.refused[Refusal::handshake].add();
    sink_->connection_refused(peer, Refusal::handshake, why);
  }
  void count() { stats_.connections.set(static_cast<std::int64_t>(connections_.size())); }

  const Executor executor_;
  const std::size_t max_message_, max_first_;
  const std::atomic<std::uint64_t>* const max_connections_;
  const std::atomic<bool>* const memory_short_;
  const ZeromqTimes times_;
  const std::string ping_;
  Budget& budget_;
  ZeromqStats& stats_;
  ZeromqSink* sink_ = nullptr;
  Acceptor acceptor_;
  std::vector<std::byte> buffer_;  // bytes just received from one connection
  ZeromqConnections connections_;
  ZeromqFlushes flushes_{executor_, [this](ZeromqPeer id) { flush_now(id); }};
  std::uint64_t last_ = 0;
  EndlessTask accepting_{executor_, [this] { return accept_all(); }};
};

ZeromqRouter::ZeromqRouter(Executor executor, const ZeromqBinding& binding, Budget& connections,
                           ZeromqStats& stats)
    : bound_(std::make_unique<Bound>(executor, binding, connections, stats)) {}
ZeromqRouter::~ZeromqRouter() = default;

void ZeromqRouter::start(ZeromqSink& sink) { bound_->start(sink); }
ZeromqRouter::Sent ZeromqRouter::send(ZeromqPeer peer, ZeromqMessage& message) {
  return bound_->send(peer, [&] { return std::move(message); });
}
ZeromqRouter::Sent ZeromqRouter::send(ZeromqPeer peer, Bytes message) {
  return bound_->send(peer, [&] { return ZeromqMessage::copy_of(message); });
}
std::string ZeromqRouter::address(ZeromqPeer id) const { return bound_->address(id); }
std::uint64_t ZeromqRouter::acknowledged(ZeromqPeer id) const { return bound_->acknowledged(id); }
bool ZeromqRouter::is_written(ZeromqPeer id) const { return bound_->is_written(id); }
bool ZeromqRouter::has_all(ZeromqPeer id) const { return bound_->has_all(id); }
void ZeromqRouter::cut(ZeromqPeer peer) noexcept { bound_->cut(peer); }
std::uint16_t ZeromqRouter::port() const { return bound_->port(); }

}  // namespace millrace
