// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "gpu/devices.h"
#include "transport/net.h"

namespace millrace {

// Makes devices ready on a thread of its own: a driver may take seconds for the first worker of a
// device, and those are not to be the seconds of all streams.
//
// Thread-safe.
class DeviceStart {
 public:
  // `devices` outlives it, as do the contexts of those who wait, which no longer run at its end. It
  // ends when a driver that is at work has.
  explicit DeviceStart(Devices& devices);

  // Whether nobody has to wait for the device of this name.
  bool is_ready(std::string_view device) const { return devices_.is_ready(device); }
  // Requires that somebody has to. Waits until it is ready; else gives why it cannot be.
  Task<std::optional<DeviceFailure>> make_ready(std::string device);

 private:
  Devices& devices_;
  std::optional<net::thread_pool> thread_;  // none where there is nothing to make ready
};

}  // namespace millrace
