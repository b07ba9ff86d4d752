// SPDX-License-Identifier: Apache-2.0
// Probes how a device treats events and memory that two processes share:
//
//   gpu_probe [--quick] [--limit SECONDS] [PROBE…]     runs all probes, or those named
//
// Each probe runs in separate processes, for a limited time. Exits with 1 if a probe failed, and
// with 77 if there is no device.
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpu/cuda/cuda.h"
#include "tools/gpu_probe/probes.h"
#include "tools/gpu_probe/report.h"

namespace millrace::probe {

namespace {

constexpr int wrong_arguments = 2, no_device = 77;

struct Probe {
  std::string name;
  const char* title;
  int limit_s;  // the default of --limit
  std::function<bool(const Settings&)> run;
  std::function<void(Channel&)> peer;
};

// In the order in which they run. F comes last: it may make the driver wait for itself.
const Probe probes[] = {
    {"A", "events that a worker records", 20,
     [](const Settings& settings) { return probe_events(settings, false); },
     [](Channel& channel) { peer_of_events(channel, false); }},
    {"B", "copies that a worker waits for", 20, probe_copies, peer_of_copies},
    {"G", "copies while a worker runs kernels", 20, probe_busy_device, peer_of_busy_device},
    {"C", "a worker that is killed in a kernel", 15, probe_killed_worker, peer_killed_worker},
    {"C2", "a worker that ends after it has recorded", 8, probe_ended_worker, peer_ended_worker},
    {"D", "a service that is killed in a copy", 15, probe_killed_service, peer_killed_service},
    {"E", "how long CUDA's slow calls take", 12, probe_times, peer_of_times},
    {"X", "contexts", 10, probe_contexts, peer_of_contexts},
    {"N", "namespaces and limits", 25, probe_namespaces, peer_of_namespaces},
    {"F", "events of a worker that captures graphs, loads modules and allocates", 30,
     [](const Settings& settings) { return probe_events(settings, true); },
     [](Channel& channel) { peer_of_events(channel, true); }},
};

struct Arguments {
  Settings settings;
  int limit_s = 0;        // per probe; 0: the probe's default
  std::string run, peer;  // run this half of a probe in this process
  int socket = -1;
  std::vector<std::string> names;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return std::string(++i < argc ? argv[i] : ""); };
    if (word == "--quick")
      arguments.settings.quick = true;
    else if (word == "--limit")
      arguments.limit_s = std::atoi(value().c_str());
    else if (word == "--run")
      arguments.run = value();
    else if (word == "--peer")
      arguments.peer = value();
    else if (word == "--socket")
      arguments.socket = std::atoi(value().c_str());
    else if (word != "--full")
      arguments.names.push_back(word);
  }
  return arguments;
}

const Probe* find(const std::string& name) {
  for (const Probe& probe : probes)
    if (probe.name == name) return &probe;
  return nullptr;
}

int run_here(const Probe& probe, const Arguments& arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing is left if the whole program is killed
  const bool is_peer = !arguments.peer.empty();
  // Closed after a failure is printed: closing it ends both processes.
  std::optional<Channel> channel;
  if (is_peer) channel.emplace(arguments.socket);
  try {
    if (!is_peer) {
      Settings settings = arguments.settings;
      settings.limit = std::chrono::seconds(arguments.limit_s);
      return probe.run(settings) ? 0 : 1;
    }
    probe.peer(*channel);
    return 0;
  } catch (const std::exception& failure) {
    say("%s: %s", is_peer ? "the other process failed" : "failed", failure.what());
    if (!is_peer) say("means: nothing, because the probe could not be finished");
    return 1;
  }
}

// Waits for the end of a probe. Returns its status; -1 if it was killed after `limit_s`, with its
// peer.
int wait_for(pid_t process, int limit_s) {
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  pollfd ended{descriptor, POLLIN, 0};
  const bool in_time = ::poll(&ended, 1, limit_s * 1000) == 1;
  ::kill(-process, SIGKILL);
  // Do not wait longer: a process may hang in its driver forever.
  constexpr int death_ms = 5000;
  const bool gone = in_time || ::poll(&ended, 1, death_ms) == 1;
  ::close(descriptor);
  int status = 0;
  if (gone) ::waitpid(process, &status, 0);
  return in_time ? status : -1;
}

pid_t start(const Probe& probe, bool quick, int limit_s) {
  std::string words[] = {"gpu_probe", "--run",
                         probe.name,  quick ? "--quick" : "--full",
                         "--limit",   std::to_string(limit_s)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t process = -1;
  const int failed =
      ::posix_spawn(&process, "/proc/self/exe", nullptr, &attributes, arguments.data(), ::environ);
  ::posix_spawnattr_destroy(&attributes);
  return failed == 0 ? process : -1;
}

bool run_beside(const Probe& probe, const Arguments& arguments) {
  const bool quick = arguments.settings.quick;
  const int usual_s = quick ? 60 : probe.limit_s;
  const int limit_s = arguments.limit_s > 0 ? arguments.limit_s : usual_s;
  std::printf("probe %s: %s\n", probe.name.c_str(), probe.title);
  std::fflush(stdout);
  const pid_t process = start(probe, quick, limit_s);
  const int status = process < 0 ? 1 : wait_for(process, limit_s);
  if (status == -1)
    say("FAIL: it has not ended after %d s", limit_s);
  else if (status != 0 && WIFSIGNALED(status))
    say("FAIL: signal %d", WTERMSIG(status));
  else
    say(status == 0 ? "PASS" : "FAIL");
  return status == 0;
}

int run_all(const Arguments& arguments) {
  for (const std::string& name : arguments.names)
    if (!find(name)) {
      std::fprintf(stderr, "gpu_probe: no probe %s\n", name.c_str());
      return wrong_arguments;
    }
  const cuda::Machine machine = cuda::find_devices();
  if (machine.devices.empty()) {
    std::fprintf(stderr, "gpu_probe: no device: %s\n", machine.why_none.c_str());
    return no_device;
  }
  int failed = 0;
  for (const Probe& probe : probes) {
    const auto& names = arguments.names;
    if (names.empty() || std::find(names.begin(), names.end(), probe.name) != names.end())
      failed += run_beside(probe, arguments) ? 0 : 1;
  }
  return failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace millrace::probe

int main(int argc, char** argv) {
  using namespace millrace::probe;
  const Arguments arguments = parse(argc, argv);
  const Probe* half = find(arguments.peer.empty() ? arguments.run : arguments.peer);
  return half ? run_here(*half, arguments) : run_all(arguments);
}
