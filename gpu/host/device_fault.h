// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "base/enum_names.h"

namespace millrace {

// The kinds of errors of a device. Also a label of metrics.
enum class DeviceFault : std::uint8_t {
  out_of_memory,
  ecc,             // an uncorrectable memory error
  illegal_access,  // a kernel or a copy accessed an invalid address
  launch,          // a kernel could not be started, or failed
  timeout,         // a kernel ran for too long
  lost,            // the device is gone, or was reset
  other,           // no driver, no such device, or any other error
};

// A call to a device failed. what() has the operation that failed and the reason. Immutable after
// construction.
class DeviceFailure : public std::runtime_error {
 public:
  // Recoverable if the fault is out_of_memory or other.
  DeviceFailure(DeviceFault fault, const std::string& what)
      : DeviceFailure(fault, what,
                      fault == DeviceFault::out_of_memory || fault == DeviceFault::other) {}
  // For a caller that knows whether the error is recoverable.
  DeviceFailure(DeviceFault fault, const std::string& what, bool recoverable)
      : std::runtime_error(what), fault_(fault), recoverable_(recoverable) {}

  DeviceFault fault() const { return fault_; }
  // True if this process can continue to use the device. If false, every later call fails too.
  bool recoverable() const { return recoverable_; }

 private:
  DeviceFault fault_;
  bool recoverable_;
};

}  // namespace millrace
