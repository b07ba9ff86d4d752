// SPDX-License-Identifier: Apache-2.0
#include "workers/worker_link.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <string_view>

#include "transport/local_path.h"
#include "workers/protocol.h"
#include "workers/worker.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

LocalSocket connect(const std::string& url) {
  const std::string target = url.empty() ? default_workers_url() : url;
  if (target.starts_with("tcp://"))
    throw WorkerError(target + ": workers on other machines are not built yet");
  const auto path = local_path(target);
  if (!path)
    throw WorkerError(target + ": not a worker url; unix:PATH with a path of 1 to 107 bytes");
  try {
    check_directory_owner(*path);
    return LocalSocket::connect(*path, {.max_message = worker_protocol::max_to_worker,
                                        .max_outgoing = 2 * worker_protocol::max_to_service,
                                        .takes_descriptor = true});
  } catch (const std::exception& error) {
    throw WorkerError("no service at " + target + " (" + error.what() + ")");
  }
}

std::string sentence(LocalError error) {
  switch (error) {
    case LocalError::closed: return "the service closed the connection";
    case LocalError::lost: return "the connection to the service broke";
    case LocalError::too_long: return "the service sent a message that is too long";
    case LocalError::descriptor:
      return "the service sent a descriptor that nobody asked for, or this process has too many";
  }
  return "";
}

}  // namespace

WorkerLink::WorkerLink(const std::string& url)
    : socket_(connect(url)), decoder_(worker_protocol::max_to_worker) {}

std::optional<worker_protocol::ToWorker> WorkerLink::receive() {
  const auto bytes = socket_.try_receive();
  if (!bytes) throw WorkerError(sentence(bytes.error()));
  if (!*bytes) return std::nullopt;
  heard_ = Clock::now();
  auto message = decoder_.to_worker(**bytes);
  if (!message)
    throw WorkerError("the service sent what is no message: " +
                      std::string(name_of(message.error())));
  return std::move(*message);
}

bool WorkerLink::try_send(Bytes message) {
  switch (socket_.try_send(message)) {
    case LocalSocket::Sent::failed: throw WorkerError(sentence(LocalError::lost));
    case LocalSocket::Sent::full: return false;
    case LocalSocket::Sent::taken: sent_ = Clock::now(); return true;
  }
  return false;
}

void WorkerLink::flush() {
  if (!socket_.flush()) throw WorkerError(sentence(LocalError::lost));
}

void WorkerLink::wait(Time deadline, bool output, int wake) const {
  const short events = output ? POLLIN | POLLOUT : POLLIN;
  std::array<pollfd, 2> descriptors{pollfd{socket_.native_handle(), events, 0},
                                    pollfd{wake, POLLIN, 0}};
  // The difference to Time::max() would overflow; whoever waits that long comes again.
  const Time now = Clock::now();
  const Duration left = deadline > now + 1h ? Duration(1h) : std::max(deadline - now, Duration(0));
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
  ::ppoll(descriptors.data(), descriptors.size(), &limit, nullptr);
}

}  // namespace millrace
