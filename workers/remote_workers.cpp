// SPDX-License-Identifier: Apache-2.0
#include "workers/remote_workers.h"

#include <boost/asio/post.hpp>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "workers/protocol.h"
#include "workers/worker_session.h"

namespace millrace {

namespace wp = worker_protocol;

class RemoteWorkers::Connection final : public WorkerConnection {
 public:
  Connection(RemoteWorkers& all, RemoteLine& to, const wp::Hello& hello)
      : line(to),
        number(++all.last_),
        name(hello.name),
        all_(all),
        max_unsent_(max_unsent(all.hub_, hello)) {}

  RemoteLine& line;
  // What is posted to the home thread may come when another line has the same address.
  const std::uint64_t number;
  const std::string name;
  std::optional<WorkerFailure> cut;  // it is given up for that, soon
  bool ended = false;                // by the hub

  void send(Bytes message, int) override {
    if (ended || cut) return;
    const std::size_t waiting = unsent(), weight = weight_of(message);
    if (waiting > 0 && waiting + weight > max_unsent_) return give_up();
    try {
      ToRemote out{&line, ZeromqMessage::copy_of(message)};
      line.unsent.fetch_add(weight, std::memory_order_relaxed);
      all_.out_.put(std::move(out));
    } catch (const std::bad_alloc&) {
      give_up();  // as local sockets do: it has let too much wait
    }
  }
  std::size_t unsent() const override { return line.unsent.load(std::memory_order_relaxed); }
  bool is_connected() const override { return !cut; }
  std::shared_ptr<PeerProcess> process(PeerProcesses&) override { return nullptr; }

  // Not at once: the hub may be in the midst of using it.
  void end() override {
    ended = true;
    net::post(all_.home_, [&all = all_, to = &line, which = number] {
      if (all.find(to, which)) all.forget(to);
    });
  }

 private:
  // Batches are bounded by its credits, and count in the slabs' budget.
  static std::size_t max_unsent(const Hub& hub, const wp::Hello& hello) {
    const FeedShape& shape = hub.settings().seats.shape;
    return worker_limits().max_outgoing + hello.credits * shape.slab_bytes(shape.format.dtype);
  }

  void give_up() {
    cut = WorkerFailure::timeout;
    net::post(all_.home_, [&all = all_, to = &line, which = number] {
      if (all.find(to, which)) all.lose(to, WorkerFailure::timeout);
    });
  }

  RemoteWorkers& all_;
  const std::size_t max_unsent_;
};

RemoteWorkers::RemoteWorkers(Hub& hub, net::io_context& home, Mailbox<ToRemote>& out)
    : hub_(hub),
      home_(home),
      out_(out),
      arrivals_(home, max_messages,
                [this](std::vector<FromRemote>& arrivals) {
                  for (FromRemote& arrival : arrivals) take(std::move(arrival));
                }),
      decoder_(wp::max_to_service) {}

RemoteWorkers::~RemoteWorkers() = default;

// What fails, for want of memory most likely, costs the worker that it is of.
void RemoteWorkers::take(FromRemote arrival) {
  try {
    if (auto* hello = std::get_if<wp::Hello>(&arrival.what)) return meet(*arrival.line, *hello);
    receive(arrival);
  } catch (const std::exception& error) {
    const auto found = connections_.find(arrival.line);
    if (found == connections_.end()) return;
    hub_.settings().log({.what = "worker's connection failed",
                         .worker = found->second->name,
                         .why = error.what(),
                         .warning = true});
    lose(arrival.line, WorkerFailure::disconnect, Blame::service);
  }
}

void RemoteWorkers::meet(RemoteLine& line, const wp::Hello& hello) {
  std::unique_ptr<Connection>* place = nullptr;
  try {
    place = &connections_[&line];
    *place = std::make_unique<Connection>(*this, line, hello);
  } catch (const std::bad_alloc& error) {
    hub_.settings().log(
        {.what = "worker refused", .worker = hello.name, .why = error.what(), .warning = true});
    connections_.erase(&line);
    return out_.put({&line, ToRemote::Ended{}});
  }
  hub_.hello(**place, hello);
}

// Of a line that is forgotten nothing may be touched but its address.
void RemoteWorkers::receive(const FromRemote& arrival) {
  const auto found = connections_.find(arrival.line);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  if (const auto* message = std::get_if<ZeromqMessage>(&arrival.what)) {
    if (!arrival.room)
      connection.line.unread.fetch_sub(weight_of(message->bytes()), std::memory_order_relaxed);
    if (!connection.ended && !connection.cut) receive(connection, message->bytes());
  } else if (const auto* malformed = std::get_if<FromRemote::Malformed>(&arrival.what)) {
    if (!connection.ended) hub_.protocol_error(connection, malformed->why);
  } else if (std::holds_alternative<FromRemote::NoRoom>(arrival.what)) {
    if (!connection.ended) hub_.no_room(connection, "there is no room for what it says");
  } else {
    lose(arrival.line, WorkerFailure::disconnect);
  }
}

void RemoteWorkers::receive(Connection& connection, Bytes message) {
  auto decoded = decoder_.to_service(message);
  if (!decoded) return hub_.protocol_error(connection, name_of(decoded.error()));
  hub_.receive(connection, std::move(*decoded));
}

RemoteWorkers::Connection* RemoteWorkers::find(RemoteLine* line, std::uint64_t number) {
  const auto found = connections_.find(line);
  return found != connections_.end() && found->second->number == number ? found->second.get()
                                                                        : nullptr;
}

void RemoteWorkers::lose(RemoteLine* line, WorkerFailure why, Blame blame) {
  const auto found = connections_.find(line);
  if (found == connections_.end()) return;
  if (!found->second->ended) hub_.lost(*found->second, found->second->cut.value_or(why), blame);
  forget(line);
}

void RemoteWorkers::forget(RemoteLine* line) {
  if (connections_.erase(line) > 0) out_.put({line, ToRemote::Ended{}});
}
}  // namespace millrace
