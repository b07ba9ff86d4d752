// SPDX-License-Identifier: Apache-2.0
#include "workers/library/connect_service.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "schemas/worker_protocol.h"
#include "transport/net/local_path.h"
#include "workers/library/worker.h"

namespace millrace {
namespace {

constexpr std::string_view tcp_scheme = "tcp://";

FramedLimits limits(bool accepts_descriptor) {
  return {.max_message = worker_protocol::max_to_worker,
          .max_outgoing = 2 * worker_protocol::max_to_service,
          .accepts_descriptor = accepts_descriptor};
}

// True if the socket does not exist yet, or no process listens on it any more.
bool is_absence(const std::exception& error) {
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system && (system->code() == std::errc::no_such_file_or_directory ||
                    system->code() == std::errc::connection_refused);
}

// The service must run as this user or as root.
void check_service_user(int socket) {
  ucred service{};
  socklen_t size = sizeof service;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &service, &size) != 0 ||
      (service.uid != 0 && service.uid != ::geteuid()))
    throw std::runtime_error("the listener there belongs to another user");
}

FramedSocket connect_local(const std::string& url) {
  const auto path = local_path(url);
  if (!path)
    throw std::invalid_argument(
        "\"" + url + "\" must be unix:PATH, with a path of 1 to 107 bytes, or tcp://HOST:PORT");
  try {
    check_private_directory(*path);
    auto socket = FramedSocket::connect(*path, limits(true));
    check_service_user(socket.native_handle());
    return socket;
  } catch (const std::exception& error) {
    const std::string what = "no service at " + url + " (" + error.what() + ")";
    if (is_absence(error)) throw ServiceAbsent(what);
    throw WorkerError(what);
  }
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// The addresses of "tcp://HOST:PORT". An IPv6 address must be in brackets.
Addresses addresses_of(const std::string& url) {
  const std::string address = url.substr(tcp_scheme.size());
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (colon == address.npos || host.empty() || colon + 1 == address.size())
    throw std::invalid_argument("\"" + url + "\" must be tcp://HOST:PORT");
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  const int error = ::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &wanted, &found);
  if (error != 0) throw ServiceAbsent("no service at " + url + " (" + ::gai_strerror(error) + ")");
  return {found, ::freeaddrinfo};
}

using Connected = Result<FileDescriptor, std::error_code>;

std::error_code code(int error) { return {error, std::generic_category()}; }

// Waits for a connection in progress. Returns 0, or the errno value of the failure.
int await_connection(int socket, Time limit, const std::function<void()>& meanwhile) {
  for (;;) {
    meanwhile();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit - Clock::now());
    if (left.count() <= 0) return ETIMEDOUT;
    pollfd made{socket, POLLOUT, 0};
    if (::poll(&made, 1, static_cast<int>(std::min(left, meanwhile_interval).count())) != 1)
      continue;
    int error = 0;
    socklen_t size = sizeof error;
    return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
  }
}

Connected connect_to(const addrinfo& address, Time limit, const std::function<void()>& meanwhile) {
  FileDescriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return code(errno);
  int error = ::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) error = await_connection(socket.get(), limit, meanwhile);
  if (error != 0) return code(error);
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  return socket;
}

// Tries all addresses one after another, each for an equal share of the remaining time.
Connected connect_to_any(const addrinfo* address, const std::function<void()>& meanwhile) {
  const Time limit = Clock::now() + worker_protocol::handshake_limit;
  int left = 0;
  for (const addrinfo* each = address; each; each = each->ai_next) ++left;
  for (;; --left, address = address->ai_next) {
    const Time now = Clock::now();
    Connected connected = connect_to(*address, now + (limit - now) / left, meanwhile);
    if (connected || left == 1) return connected;
  }
}

FramedSocket connect_tcp(const std::string& url, const std::function<void()>& meanwhile) {
  const Addresses addresses = addresses_of(url);
  Connected connected = connect_to_any(addresses.get(), meanwhile);
  if (connected) return FramedSocket(std::move(*connected), limits(false));
  const std::error_code error = connected.error();
  const std::string what = "no service at " + url + " (" + error.message() + ")";
  if (error == std::errc::too_many_files_open || error == std::errc::too_many_files_open_in_system)
    throw WorkerError(what);
  throw ServiceAbsent(what);
}

}  // namespace

FramedSocket connect_service(const std::string& url, const std::function<void()>& meanwhile) {
  return url.starts_with(tcp_scheme) ? connect_tcp(url, meanwhile) : connect_local(url);
}

}  // namespace millrace
