// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "gpu/cuda/kernels.h"

namespace millrace::test {

inline constexpr std::byte poison{0x77};

// Memory for kernels, initially all poison.
class KernelMemory {
 public:
  virtual ~KernelMemory() = default;

  virtual std::byte* at() const = 0;
  virtual void write(Bytes bytes) = 0;
  virtual std::vector<std::byte> read() const = 0;
  // True if the bytes around the memory are still poison, as far as they can be read.
  virtual bool kept() const = 0;
};

// Runs kernels on the host, thread by thread, or on a device. Each call returns when its kernel is
// done.
class KernelMachine {
 public:
  virtual ~KernelMachine() = default;

  virtual std::string name() const = 0;
  // Allocates memory at an address of a multiple of 16 plus `offset`.
  virtual std::unique_ptr<KernelMemory> memory(std::size_t bytes, std::size_t offset) = 0;

  virtual void expand(const cuda::SlabRows& rows, const RowFormat& format, std::byte* tensor) = 0;
  virtual void reset_rows(const cuda::Arena& arena, const std::int32_t* slot,
                          const std::uint8_t* reset, std::uint32_t rows) = 0;
  virtual void gather_rows(const cuda::Arena& arena, const std::int32_t* slot, std::uint32_t rows,
                           std::byte* to) = 0;
  virtual void scatter_rows(const cuda::Arena& arena, const std::int32_t* slot, std::uint32_t rows,
                            const std::byte* from) = 0;
};

// Values in the memory of a machine.
template <class T>
class Placed {
 public:
  Placed(KernelMachine& machine, const std::vector<T>& values, std::size_t offset = 0)
      : memory_(machine.memory(values.size() * sizeof(T), offset)) {
    memory_->write(std::as_bytes(std::span(values)));
  }

  T* at() const { return reinterpret_cast<T*>(memory_->at()); }
  std::vector<std::byte> read() const { return memory_->read(); }
  bool kept() const { return memory_->kept(); }

 private:
  std::unique_ptr<KernelMemory> memory_;
};

}  // namespace millrace::test
