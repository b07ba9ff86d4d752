// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "load/clients/load_transport.h"
#include "load/clients/simulated_clients.h"

namespace millrace::load {

using namespace std::chrono_literals;

inline const Time first_time{1h};

// Records the calls of the clients; the test calls the clients as their sink.
class ScriptedTransport final : public LoadTransport {
 public:
  void open(std::uint32_t client, const std::string& name) override { opened[client] = name; }
  bool send(std::uint32_t client, Bytes) override {
    if (full.contains(client)) return false;
    ++sent[client];
    if (std::exchange(part_pending, false)) ++sent_with_cut;
    return true;
  }
  bool cut(std::uint32_t client, const Cut& cut) override {
    if (full.contains(client)) return false;
    ++cuts[client];
    if (cut.part) ++parts;
    part_pending = cut.part.has_value();
    return true;
  }
  void commit(std::uint32_t client, Time due) override { commits[client].push_back(due); }
  void end(std::uint32_t client) override { ended.push_back(client); }
  void disconnect(std::uint32_t client) override { disconnected.push_back(client); }
  void poll(Time, ClientSink&) override {}

  std::map<std::uint32_t, std::string> opened;
  std::map<std::uint32_t, int> sent, cuts;
  bool part_pending = false;
  int parts = 0, sent_with_cut = 0;  // cuts within a packet, and the packets that followed them
  std::map<std::uint32_t, std::vector<Time>> commits;
  std::set<std::uint32_t> full;
  std::vector<std::uint32_t> ended, disconnected;
};

struct SimulatedClientsFixture {
  explicit SimulatedClientsFixture(const LoadPlan& plan, std::uint64_t commit = 0)
      : schedule(plan),
        run{.schedule = schedule,
            .content = content,
            .name = "run",
            .answered = true,
            .transcribed = commit > 0,
            .commit = commit},
        clients(run, 0, 1, transport) {}

  // Opens every stream and starts the schedule.
  void begin() {
    while (clients.continue_opening(first_time)) open_all();
    schedule.start(first_time);
  }
  void open_all() {
    for (const auto& [client, name] : std::exchange(transport.opened, {})) {
      names.push_back(name);
      clients.opened(client, first_time);
    }
  }

  Schedule schedule;
  Content content{schedule, FrameType{}};
  RunFacts run;
  ScriptedTransport transport;
  SimulatedClients clients;
  std::vector<std::string> names;
};

inline const LoadPlan two{.streams = 2, .warm_up = 0s, .length = 1s};

}  // namespace millrace::load
