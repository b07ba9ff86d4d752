// SPDX-License-Identifier: Apache-2.0
#include "workers/library/link.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <variant>

#include "schemas/worker_protocol.h"
#include "transport/net/local_path.h"
#include "workers/library/connect_service.h"

namespace millrace {

using namespace std::chrono_literals;

namespace {

const char* sentence(FramedError error) {
  switch (error) {
    case FramedError::closed: return "the service closed the connection";
    case FramedError::lost: return "the connection to the service was lost";
    case FramedError::too_long: return "the service sent a message that is too long";
    case FramedError::descriptor:
      return "the service sent an unexpected descriptor, or this process has too many open";
    case FramedError::no_room: break;  // cannot happen: no budget is set
  }
  return "there is no memory for the service's messages";
}

}  // namespace

WorkerLink::WorkerLink(const std::string& url, const std::function<void()>& meanwhile)
    : url_(url.empty() ? default_workers_url() : url),
      socket_(connect_service(url_, meanwhile)),
      decoder_(worker_protocol::max_to_worker) {}

// If a TCP connection is closed with unread input, its last messages to the service are lost.
WorkerLink::~WorkerLink() {
  constexpr int max_reads = 1000;
  pollfd input{socket_.native_handle(), POLLIN, 0};
  for (int i = 0; i < max_reads && ::poll(&input, 1, 0) == 1 && socket_.discard_input(); ++i) {
  }
}

WorkerError WorkerLink::refusal(const std::string& what, const worker_protocol::Refused& refused,
                                const std::string& details) {
  return WorkerError(what + refused.message + " (" + refused.code + ")" + details, refused.code,
                     refused.details);
}

worker_protocol::Welcome WorkerLink::receive_welcome(Bytes first,
                                                     const std::function<void()>& meanwhile) {
  (void)try_send(first);
  const Time limit = Clock::now() + worker_protocol::handshake_limit;
  for (;;) {
    if (has_output()) flush();
    if (const auto message = receive()) {
      if (const auto* refused = std::get_if<worker_protocol::Refused>(&*message))
        throw refusal("the service refused this worker: ", *refused);
      const auto* welcome = std::get_if<worker_protocol::Welcome>(&*message);
      if (!welcome) throw WorkerError("the service did not answer with Welcome");
      if (welcome->version != worker_protocol::version)
        throw WorkerError("the service uses version " + std::to_string(welcome->version) +
                          " of the worker protocol, this worker version " +
                          std::to_string(worker_protocol::version));
      return *welcome;
    }
    const Time now = Clock::now();
    if (now >= limit) throw WorkerError("the service did not answer");
    meanwhile();
    wait(std::min(limit, now + meanwhile_interval), until_readable(), -1);
  }
}

std::optional<worker_protocol::ToWorker> WorkerLink::receive() {
  const auto bytes = socket_.try_receive();
  if (!bytes) throw_ended(bytes.error());
  if (!*bytes) return std::nullopt;
  last_received_ = Clock::now();
  has_received_ = true;
  auto message = decoder_.to_worker(**bytes);
  if (!message)
    throw WorkerError(
        "the service sent an invalid message for workers (" +
        std::string(name_of(message.error())) +
        "); workers connect to [listen] workers or workers_remote, not to a port for clients");
  return std::move(*message);
}

// Before the first message, the peer at a TCP port may be something else: a proxy of a service that
// does not run yet, or the service's listener for clients.
void WorkerLink::throw_ended(FramedError error) const {
  const std::string what = sentence(error);
  if (has_received_ || !url_.starts_with("tcp://")) throw WorkerError(what);
  if (socket_.is_within_message())
    throw WorkerError(
        what +
        "; workers connect to [listen] workers or workers_remote, not to a port for clients");
  throw ServiceAbsent("no service at " + url_ + " (" + what + ")");
}

bool WorkerLink::try_send(Bytes message) {
  const FramedSocket::Sent sent = socket_.try_send(message);
  if (sent == FramedSocket::Sent::failed) throw_ended(FramedError::lost);
  if (sent == FramedSocket::Sent::full) return false;
  last_sent_ = Clock::now();
  return true;
}

void WorkerLink::flush() {
  if (!socket_.flush()) throw_ended(FramedError::lost);
}

void WorkerLink::wait(Time deadline, Until until, int wake) const {
  constexpr short events_of[] = {POLLIN, POLLOUT, POLLIN | POLLOUT};
  const short events = events_of[static_cast<int>(until)];
  std::array<pollfd, 2> descriptors{pollfd{wake, POLLIN, 0},
                                    pollfd{socket_.native_handle(), events, 0}};
  // The difference to Time::max() would overflow. A return after an hour is allowed.
  const Time now = Clock::now();
  const Duration left = deadline > now + 1h ? Duration(1h) : std::max(deadline - now, Duration(0));
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
  ::ppoll(descriptors.data(), descriptors.size(), &limit, nullptr);
}

}  // namespace millrace
