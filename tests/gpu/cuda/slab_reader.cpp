// SPDX-License-Identifier: Apache-2.0
// The process that reads slabs in tests. Executes a command per line of its input, and prints a
// line as the answer:
//
//   open UUID SLAB_BYTES SLABS MEMORY COPIED… FINISHED…     opens the slabs by their handles
//   read SLAB ROWS MARKS WIDTH                              prints the tensor, of f32
//   leave SLAB                                              gives the slab back
#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "gpu/cuda/cuda.h"
#include "tests/gpu/cuda/consumer.h"
#include "tests/gpu/host/hex.h"

using namespace millrace;
using namespace millrace::test;

namespace {

DeviceHandle handle(std::istream& words) {
  std::string word;
  words >> word;
  DeviceHandle handle{};
  std::ranges::copy(bytes_of_hex(word), handle.begin());
  return handle;
}

class SlabReader {
 public:
  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "open") return open(words);
    if (what == "read") return read(words);
    std::uint32_t slab = 0;
    words >> slab;
    reader_->give_back(slab);
    return "left";
  }

 private:
  std::string open(std::istream& words) {
    std::string uuid;
    std::size_t slab_bytes = 0, slabs = 0;
    words >> uuid >> slab_bytes >> slabs;
    DeviceHandles handles{.memory = handle(words), .copied = {}, .finished = {}};
    while (handles.copied.size() < slabs) handles.copied.push_back(handle(words));
    while (handles.finished.size() < slabs) handles.finished.push_back(handle(words));
    for (const cuda::FoundDevice& device : cuda::find_devices().devices) {
      if (device.uuid != uuid) continue;
      reader_ = cuda::open_slabs(device, {.dtype = Element::f32}, slab_bytes, handles);
      model_ = consumer_on(device.name);
      return "opened";
    }
    throw std::runtime_error("no such device");
  }

  std::string read(std::istream& words) {
    std::uint32_t slab = 0;
    SlabShape shape;
    words >> slab >> shape.rows >> shape.marks >> shape.width;
    while (!reader_->has_arrived(slab)) std::this_thread::yield();
    const DeviceArrays arrays = reader_->take(slab, shape, {});
    reader_->use_on(slab, model_->stream());
    return hex_of(fetch(*model_, arrays.tensor, std::size_t{4} * shape.rows * shape.width));
  }

  std::unique_ptr<DeviceReader> reader_;
  std::unique_ptr<cuda::Fetcher> model_;
};

}  // namespace

int main() {
  SlabReader reader;
  try {
    for (std::string line; std::getline(std::cin, line);)
      std::cout << reader.answer(line) << std::endl;
    return 0;
  } catch (const std::exception& error) {
    std::cout << error.what() << std::endl;
    return 1;
  }
}
