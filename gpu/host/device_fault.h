// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "base/enum_names.h"

namespace millrace {

// What went wrong on a device.
enum class DeviceFault : std::uint8_t {
  out_of_memory,
  ecc,             // memory that lost its content
  illegal_access,  // somebody's kernel, or a copy, touched what it must not
  launch,          // a kernel could not be started, or failed
  timeout,
  lost,   // the device is gone, or was reset
  other,  // no driver, no such device, and what has no name here
};

// A call to the device failed.
class DeviceFailure : public std::runtime_error {
 public:
  DeviceFailure(DeviceFault fault, const std::string& what)
      : DeviceFailure(fault, what,
                      fault == DeviceFault::out_of_memory || fault == DeviceFault::other) {}
  // For a caller that knows whether the error passes.
  DeviceFailure(DeviceFault fault, const std::string& what, bool passes)
      : std::runtime_error(what), fault_(fault), passes_(passes) {}

  DeviceFault fault() const { return fault_; }
  // Whether this process can go on using the device. Where it can not, every later call fails too.
  bool passes() const { return passes_; }

 private:
  DeviceFault fault_;
  bool passes_;
};

}  // namespace millrace
