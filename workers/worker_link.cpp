// SPDX-License-Identifier: Apache-2.0
#include "workers/worker_link.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include "transport/local_path.h"
#include "workers/protocol.h"
#include "workers/worker.h"

namespace millrace {

using namespace std::chrono_literals;

std::unique_ptr<WorkerWire> connect_worker(const std::string& url,
                                           const std::function<void()>& meanwhile) {
  const std::string target = url.empty() ? default_workers_url() : url;
  return target.starts_with("tcp://") ? connect_remote(target, meanwhile) : connect_local(target);
}

WorkerLink::WorkerLink(const std::string& url, const std::function<void()>& meanwhile)
    : wire_(connect_worker(url, meanwhile)), decoder_(worker_protocol::max_to_worker) {}

std::optional<worker_protocol::ToWorker> WorkerLink::receive() {
  const auto bytes = wire_->receive();
  if (!bytes) return std::nullopt;
  heard_ = Clock::now();
  auto message = decoder_.to_worker(*bytes);
  if (!message)
    throw WorkerError("the service sent what is no message for workers (" +
                      std::string(name_of(message.error())) + "); clients have another port");
  return std::move(*message);
}

bool WorkerLink::try_send(Bytes message) {
  if (!wire_->try_send(message)) return false;
  sent_ = Clock::now();
  return true;
}

void WorkerLink::wait(Time deadline, WorkerWire::Until until, int wake) const {
  const WorkerWire::Waits wire = wire_->waits(until);
  std::array<pollfd, 4> descriptors{pollfd{wake, POLLIN, 0}};
  std::ranges::copy(wire, descriptors.begin() + 1);
  // The difference to Time::max() would overflow; whoever waits that long comes again.
  const Time now = Clock::now();
  const Duration left = deadline > now + 1h ? Duration(1h) : std::max(deadline - now, Duration(0));
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
  ::ppoll(descriptors.data(), descriptors.size(), &limit, nullptr);
}

}  // namespace millrace
