// SPDX-License-Identifier: Apache-2.0
// A second process with simulated devices, for tests. Executes a command per line of its input, and
// prints a line as the answer: CUDA's code, or the result.
//
//   memory HEX | close | event HEX           opens and closes memory and events of the test
//   wait N | record N | query N | destroy N  uses the N-th event that was opened
//   allocate BYTES | devices                 allocates memory; prints the numbers of its devices
//   default                                  breaks a rule: uses the default stream
#include <cuda_runtime_api.h>

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "gpu/cuda/cuda.h"

namespace {

template <class Handle>
Handle handle_of(const std::string& hex) {
  Handle handle{};
  for (std::size_t i = 0; i < sizeof handle.reserved; ++i)
    handle.reserved[i] = static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return handle;
}

class Peer {
 public:
  std::string answer(const std::string& command, const std::string& argument) {
    if (command == "memory")
      return code(cudaIpcOpenMemHandle(&memory_, handle_of<cudaIpcMemHandle_t>(argument),
                                       cudaIpcMemLazyEnablePeerAccess));
    if (command == "close") return code(cudaIpcCloseMemHandle(memory_));
    if (command == "event") return open_event(argument);
    if (command == "allocate") return code(cudaMalloc(&own_, std::stoul(argument)));
    if (command == "devices") return devices();
    if (command == "default") return code(cudaMemsetAsync(own_, 0, 1, nullptr));
    return on_event(command, events_.at(std::stoul(argument)));
  }

 private:
  static std::string code(cudaError_t error) { return std::to_string(error); }

  // Created at its first use.
  cudaStream_t stream() {
    if (!stream_) (void)cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    return stream_;
  }

  std::string open_event(const std::string& hex) {
    cudaEvent_t event = nullptr;
    const cudaError_t error = cudaIpcOpenEventHandle(&event, handle_of<cudaIpcEventHandle_t>(hex));
    events_.push_back(event);
    return code(error);
  }

  std::string on_event(const std::string& command, cudaEvent_t event) {
    if (command == "wait") return code(cudaStreamWaitEvent(stream(), event, 0));
    if (command == "record") return code(cudaEventRecord(event, stream()));
    if (command == "query") return code(cudaEventQuery(event));
    if (command == "destroy") return code(cudaEventDestroy(event));
    return "?";
  }

  static std::string devices() {
    std::string text;
    for (const auto& device : millrace::cuda::find_devices().devices)
      text += device.uuid.substr(38) + ' ';
    return text;
  }

  void *memory_ = nullptr, *own_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::vector<cudaEvent_t> events_;
};

}  // namespace

int main() {
  static Peer peer;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, argument;
    words >> command >> argument;
    std::cout << peer.answer(command, argument) << std::endl;
  }
}
