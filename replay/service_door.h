// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client/client.h"
#include "transport/net/net.h"

namespace millrace {

// A client of a service whose streams are served by an io_context. Confined to its thread.
class ServiceDoor {
 public:
  // Calls `changed` with the number of each stream that has changed. `changed` may not destroy this
  // object. Throws std::invalid_argument, std::system_error.
  ServiceDoor(Executor executor, const std::string& url, const ClientSettings& settings,
              const ServiceAccess& access,
              std::function<void(ServiceDoor&, std::uint64_t stream)> changed)
      : changed_(std::move(changed)),
        client_(url, settings, access),
        descriptor_(executor, client_.descriptor()) {
    wait();
  }
  ~ServiceDoor() { descriptor_.release(); }  // the client closes it
  ServiceDoor(const ServiceDoor&) = delete;
  ServiceDoor& operator=(const ServiceDoor&) = delete;

  Client& client() { return client_; }

 private:
  void wait() {
    descriptor_.async_wait(net::posix::descriptor_base::wait_read,
                           [this, alive = std::weak_ptr<bool>(alive_)](auto error) {
                             if (error || alive.expired()) return;
                             for (const std::uint64_t stream : client_.changed())
                               changed_(*this, stream);
                             wait();
                           });
  }

  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  const std::function<void(ServiceDoor&, std::uint64_t)> changed_;
  Client client_;
  net::posix::basic_stream_descriptor<Executor> descriptor_;
};

}  // namespace millrace
