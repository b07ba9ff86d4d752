// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "gpu/cuda/calls.h"
#include "gpu/host/shared_memory.h"

namespace millrace::probe {

// One end of the socket between the two processes of a probe. Throws std::runtime_error if the
// other process has ended. Owns its descriptor. Confined to one thread.
class Channel {
 public:
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  template <class T>
  void send(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    write(&value, sizeof value);
  }
  template <class T>
  T receive() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    read(&value, sizeof value);
    return value;
  }
  // True if receive() would not wait.
  bool has_message() const;

 private:
  void write(const void* from, std::size_t bytes);
  void read(void* to, std::size_t bytes);

  int descriptor_;
};

// The other process of a probe: a second process of this program. Start it before this process
// calls CUDA for the first time. The destructor kills it.
class Peer {
 public:
  // Starts `gpu_probe --peer ROLE`, or the program `launcher` with this command as its last
  // arguments. A launcher that does not become this command must kill it when it is killed itself.
  explicit Peer(const std::string& role, std::vector<std::string> launcher = {});
  ~Peer() { kill(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  Channel& channel() { return channel_; }
  // Sends SIGKILL, and waits for the end of the process.
  void kill();
  // Waits for the end of the process.
  void wait();

 private:
  Peer(std::vector<std::string> command, std::array<int, 2> ends);

  Channel channel_;
  pid_t process_ = -1;
};

// Memory of the current device, events that can be shared, and locked pages, as the service has
// them for a worker. `Opened` is the worker's side.
struct Exported {
  Exported(std::size_t bytes, std::size_t count);
  // Sends the handles to the other process.
  void send(Channel& channel) const;

  SharedMemory pages;
  cuda::LockedPages locked;
  cuda::Memory memory;
  std::vector<cuda::Event> events;
  cuda::Stream stream = cuda::make_stream();
};

struct Opened {
  explicit Opened(Channel& channel);

  struct Close {
    void operator()(std::byte* memory) const { cuda::ignore(cudaIpcCloseMemHandle(memory)); }
  };
  std::unique_ptr<std::byte, Close> memory;
  std::vector<cuda::Event> events;
  cuda::Stream stream = cuda::make_stream();
};

}  // namespace millrace::probe
