// SPDX-License-Identifier: Apache-2.0
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <exception>
#include <iterator>
#include <string>

#include "tools/gpu_probe/probes.h"
#include "tools/gpu_probe/report.h"

namespace millrace::probe {

namespace {

using Launcher = std::vector<std::string>;

constexpr std::size_t bytes = 2 << 20;
constexpr int pattern = 0x5A;

enum class Role : std::uint8_t { service, worker, limited };

// Child processes of `unshare` end with it.
const Launcher own_pids = {"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"};
const Launcher own_ipc = {"unshare", "--ipc"};
const Launcher own_shm = {"unshare", "--mount", "sh", "-c",
                          R"(mount -t tmpfs tmpfs /dev/shm && exec "$0" "$@")"};
const Launcher own_users = {"unshare", "--user", "--map-current-user"};

struct Handles {
  cudaIpcMemHandle_t memory{};
  cudaIpcEventHandle_t event{};
};

// The handles that a worker could open.
struct Shared {
  cudaError_t memory = cudaSuccess, event = cudaSuccess;
  bool same = false;  // it read what the service had written

  bool all() const { return memory == cudaSuccess && event == cudaSuccess && same; }
};

// A process of this probe. Throws if it cannot be started in its namespaces.
class Part {
 public:
  Part(Role role, const Launcher& launcher) : peer_("N", launcher) {
    channel().send(role);
    (void)channel().receive<bool>();
  }
  Channel& channel() { return peer_.channel(); }

 private:
  Peer peer_;
};

Handles handles_of(Part& service) {
  service.channel().send(true);
  Handles handles;
  handles.memory = service.channel().receive<cudaIpcMemHandle_t>();
  (void)service.channel().receive<std::uint32_t>();
  handles.event = service.channel().receive<cudaIpcEventHandle_t>();
  return handles;
}

// The parts of the sentences that documents need.
struct Verdict {
  std::string share, share_not, not_tried;
  const char* events = "was not tested with own /dev/shm";
  const char* limit = "RLIMIT_MEMLOCK was not tested";

  static void add(std::string& list, const char* name) {
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
};

std::string text_of(cudaError_t code) {
  return code == cudaSuccess ? "works" : std::string("fails with ") + cudaGetErrorName(code);
}

// Prints what a worker can open of the service that has these handles.
Shared try_worker(const char* name, const Handles& handles, const Launcher& launcher,
                  Verdict& verdict) {
  Part worker(Role::worker, launcher);
  worker.channel().send(handles);
  const auto shared = worker.channel().receive<Shared>();
  say("%s: memory handle %s%s, event handle %s", name, text_of(shared.memory).c_str(),
      shared.memory == cudaSuccess && !shared.same ? " with WRONG bytes" : "",
      text_of(shared.event).c_str());
  Verdict::add(shared.all() ? verdict.share : verdict.share_not, name);
  return shared;
}

// Runs a case of the probe, which may lack the permission to make a namespace.
template <class Case>
void attempt(const char* name, Verdict& verdict, const Case& one) try {
  one(name);
} catch (const std::exception& failure) {
  say("%s: not tried: %s", name, failure.what());
  Verdict::add(verdict.not_tried, name);
}

void try_workers(Verdict& verdict) {
  Part service(Role::service, {});
  const Handles handles = handles_of(service);
  const auto worker = [&](const Launcher& launcher) {
    return [&](const char* name) { return try_worker(name, handles, launcher, verdict); };
  };
  attempt("same namespaces", verdict, worker({}));
  attempt("worker with own PID namespace", verdict, worker(own_pids));
  attempt("worker with own IPC namespace", verdict, worker(own_ipc));
  attempt("worker with own /dev/shm", verdict, [&](const char* name) {
    const Shared shared = worker(own_shm)(name);
    verdict.events = shared.all() ? "holds without a common /dev/shm"
                     : shared.memory == cudaSuccess
                         ? "needs the service's /dev/shm, which words in shared memory do not"
                         : "needs the service's /dev/shm, even for memory";
  });
}

void try_services(Verdict& verdict) {
  attempt("service and worker both PID 1", verdict, [&](const char* name) {
    Part service(Role::service, own_pids);
    (void)try_worker(name, handles_of(service), own_pids, verdict);
  });
  attempt("service in own user namespace", verdict, [&](const char* name) {
    Part service(Role::service, own_users);
    (void)try_worker(name, handles_of(service), {}, verdict);
  });
}

// The outcome of a process with a limit of 64 KiB of locked memory.
struct Limited {
  bool limited = false;  // mlock() refuses
  cudaError_t registered = cudaSuccess;
};

void try_limit(Verdict& verdict) {
  Part part(Role::limited, {});
  const auto found = part.channel().receive<Limited>();
  if (!found.limited) return say("64 MiB beyond RLIMIT_MEMLOCK: not tried: mlock ignores it too");
  say("64 MiB beyond RLIMIT_MEMLOCK, without CAP_IPC_LOCK: cudaHostRegister %s",
      text_of(found.registered).c_str());
  verdict.limit =
      found.registered == cudaSuccess ? "RLIMIT_MEMLOCK does not matter" : "RLIMIT_MEMLOCK matters";
}

void print(const Verdict& verdict) {
  const auto list = [](const std::string& names) { return names.empty() ? "none" : names.c_str(); };
  say("docs/workers.md, docs/deploy.md and open_slabs must say: shared with %s; not shared with "
      "%s; "
      "unknown: %s",
      list(verdict.share), list(verdict.share_not), list(verdict.not_tried));
  if (verdict.share.empty()) return say("means: nothing, because not even one namespace works");
  say("means: decision 12 %s; %s", verdict.events, verdict.limit);
}

void serve(Channel& channel) {
  (void)channel.receive<bool>();
  const Exported exported(bytes, 1);
  cuda::check(cudaMemsetAsync(exported.memory.get(), pattern, bytes, exported.stream.get()),
              "writing");
  cuda::check(cudaEventRecord(exported.events.front().get(), exported.stream.get()), "recording");
  cuda::check(cudaStreamSynchronize(exported.stream.get()), "writing");
  exported.send(channel);
  (void)channel.receive<bool>();  // never comes: the service is killed
}

bool has_pattern(const void* memory) {
  const cuda::Stream stream = cuda::make_stream();
  std::byte last{};
  cuda::check(cudaMemcpyAsync(&last, static_cast<const std::byte*>(memory) + bytes - 1, 1,
                              cudaMemcpyDeviceToHost, stream.get()),
              "reading");
  cuda::check(cudaStreamSynchronize(stream.get()), "reading");
  return last == std::byte{pattern};
}

void work(Channel& channel) {
  const auto handles = channel.receive<Handles>();
  Shared shared;
  void* memory = nullptr;
  shared.memory = cudaIpcOpenMemHandle(&memory, handles.memory, cudaIpcMemLazyEnablePeerAccess);
  (void)cudaGetLastError();
  shared.same = shared.memory == cudaSuccess && has_pattern(memory);
  cudaEvent_t event = nullptr;
  shared.event = cudaIpcOpenEventHandle(&event, handles.event);
  if (shared.event == cudaSuccess) shared.event = cudaEventQuery(event);
  (void)cudaGetLastError();
  channel.send(shared);
  (void)channel.receive<bool>();  // never comes: the worker is killed
}

// Root has a capability that the limit does not apply to.
void limit_locked_memory() {
  constexpr rlimit limit{64 << 10, 64 << 10};
  (void)::setrlimit(RLIMIT_MEMLOCK, &limit);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
  (void)::syscall(SYS_capget, &header, sets);
  for (auto* set : {&sets[0].effective, &sets[0].permitted, &sets[0].inheritable})
    *set &= ~(1u << CAP_IPC_LOCK);
  (void)::syscall(SYS_capset, &header, sets);
}

void lock_beyond_limit(Channel& channel) {
  limit_locked_memory();
  cuda::check(cudaFree(nullptr), "selecting a device");
  const SharedMemory pages = SharedMemory::create(64 << 20);
  Limited found;
  found.limited = ::mlock(pages.bytes().data(), pages.bytes().size()) != 0;
  found.registered =
      cudaHostRegister(pages.bytes().data(), pages.bytes().size(), cudaHostRegisterDefault);
  channel.send(found);
  (void)channel.receive<bool>();  // never comes: this process is killed
}

}  // namespace

bool probe_namespaces(const Settings&) {
  Verdict verdict;
  attempt("workers in other namespaces", verdict, [&](const char*) { try_workers(verdict); });
  try_services(verdict);
  attempt("RLIMIT_MEMLOCK", verdict, [&](const char*) { try_limit(verdict); });
  print(verdict);
  return true;
}

void peer_of_namespaces(Channel& channel) {
  const auto role = channel.receive<Role>();
  channel.send(true);
  switch (role) {
    case Role::service: return serve(channel);
    case Role::worker: return work(channel);
    case Role::limited: return lock_beyond_limit(channel);
  }
}

}  // namespace millrace::probe
