// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "load/clients/due_cuts.h"
#include "load/clients/load_transport.h"
#include "load/streams/load_stream_id.h"
#include "load/streams/outcome.h"

namespace millrace::load {

// The simulated clients of one thread: those with index i, i % stride == offset. Opens their
// streams, and sends each packet when it is due and not earlier, even if the service is late (an
// open loop). Ends streams, cuts connections, replaces streams that have a life, and counts the
// results.
//
// The caller passes the current time in; the clock is read only to record when something was sent.
// Confined to one thread.
class SimulatedClients final : public ClientSink {
 public:
  SimulatedClients(const RunFacts& run, std::uint32_t offset, std::uint32_t stride,
                   LoadTransport& transport);

  // Opens streams, a bounded number at a time. False once each stream is open or refused. If none
  // is opened or refused for 10 s, the pending ones count as refused.
  bool continue_opening(Time now);
  // Sends and opens everything that is due. Returns when something is due next; nullopt once the
  // schedule and all streams are over.
  std::optional<Time> advance(Time now);
  // Disconnects the streams that have not ended, and counts them as broken.
  void abort_remaining(Time now);

  ClientOutcome& outcome() { return outcome_; }

  void opened(std::uint32_t client, Time now) override;
  void refused(std::uint32_t client, std::string_view why, Time now) override;
  void writable(std::uint32_t client) override;
  void received(std::uint32_t client, const ReceivedResult& result, Time now) override;
  void text(std::uint32_t client, std::optional<double> end, Time now) override;
  void finished(std::uint32_t client, Time due, bool failed, Time now) override;
  void message(std::uint32_t client, std::uint64_t number) override;
  void rejected(std::uint32_t client, std::uint64_t frames) override;
  void closed(std::uint32_t client, std::optional<StreamTotals> totals, Time now) override;
  void resumed(std::uint32_t client, bool kept, Time now) override;
  void broken(std::uint32_t client, std::string_view why, Time now) override;

 private:
  enum class State : std::uint8_t { none, opening, open, ending };
  struct Client {
    State state = State::none;
    std::uint64_t first = 0;  // first packet of its stream
    std::uint64_t next = 0;   // packet to send next
    std::uint64_t last = 0;   // packet after the last one of its life
    Time opened{};
    std::uint64_t begin = 0;       // least position of the next result
    std::uint64_t seq = 0;         // least number of the next result
    std::uint64_t answered = 0;    // rows with frames
    std::uint64_t messages = 0;    // messages of the worker
    std::uint64_t covered = 0;     // packets of its stream that text covers
    std::uint64_t committed = 0;   // packet after the last commit
    std::uint32_t unfinished = 0;  // commits that the service has not finished
    std::uint64_t rejected = 0;    // frames
    bool gap = false;              // a result had the flag GAP
    bool late = false;             // send() was false for the next packet
    std::optional<Cut> cut{};      // for the next packet
    std::optional<Time> returns_from{},
        recovers_from{};  // the first cut before resumed(), a result
  };
  LoadStreamId stream_of(std::uint32_t client) { return {client, at(client).first}; }
  using Turn = std::pair<Time, std::uint32_t>;

  Client& at(std::uint32_t client) { return clients_[client / stride_]; }
  std::uint64_t sent(const Client& client) const;  // frames
  void open(std::uint32_t client, std::uint64_t first);
  void refuse_pending(Time now);
  void run_cuts(Time now);
  void count_cut(Client& client, Time now);
  void run_turn(std::uint32_t client, Time now);
  void commit(std::uint32_t client, Time due);
  void finish(std::uint32_t client, Time due, Time now);
  void add_totals(Client& client, const StreamTotals& totals);
  void over(std::uint32_t client, Time now);

  const RunFacts& run_;
  const std::uint32_t offset_, stride_;
  LoadTransport& transport_;
  std::vector<Client> clients_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  DueCuts cuts_;
  std::uint32_t to_open_;  // next client that never had a stream
  std::size_t opening_ = 0;
  Time progress_ = Time::max();  // when a stream was last opened or refused
  std::size_t live_ = 0;         // opening, open or ending
  std::vector<std::byte> packet_;
  std::string answer_;
  ClientOutcome outcome_;
};

}  // namespace millrace::load
