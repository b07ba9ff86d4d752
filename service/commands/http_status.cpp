// SPDX-License-Identifier: Apache-2.0
#include "service/commands/http_status.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "service/address.h"
#include "transport/file_descriptor.h"

namespace millrace {

namespace {

struct Url {
  TcpAddress address;
  std::string path;
};

std::optional<Url> parse_url(std::string_view text) {
  constexpr std::string_view scheme = "http://";
  if (!text.starts_with(scheme)) return std::nullopt;
  text.remove_prefix(scheme.size());
  const auto slash = std::min(text.find('/'), text.size());
  const auto address = parse_tcp(text.substr(0, slash));
  const std::string_view path = text.substr(slash);
  const auto printable = [](char c) { return c > ' ' && c < 127; };
  if (!address || !std::ranges::all_of(path, printable)) return std::nullopt;
  return Url{*address, path.empty() ? "/" : std::string(path)};
}

// One request, over sockets that block for as long as the whole may take.
class Request {
 public:
  Request(const TcpAddress& address, Duration timeout)
      : address_(address),
        deadline_(Clock::now() + timeout),
        socket_(::socket(v6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}

  // Each is false where it failed; errno says why.
  bool connect() {
    if (!limit(SO_SNDTIMEO)) return false;
    sockaddr_in v4{
        .sin_family = AF_INET, .sin_port = htons(address_.port), .sin_addr = {}, .sin_zero = {}};
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(address_.port);
    inet_pton(AF_INET, address_.host.c_str(), &v4.sin_addr);
    inet_pton(AF_INET6, address_.host.c_str(), &v6.sin6_addr);
    const auto* to = this->v6() ? reinterpret_cast<const sockaddr*>(&v6)
                                : reinterpret_cast<const sockaddr*>(&v4);
    return ::connect(socket_.get(), to, this->v6() ? sizeof v6 : sizeof v4) == 0;
  }

  bool send(std::string_view text) {
    // Small enough for the empty buffer of a new connection.
    return ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }

  bool receive(std::string& into, std::size_t bytes) {
    while (into.size() < bytes) {
      char part[64];
      if (!limit(SO_RCVTIMEO)) return false;
      const auto length =
          ::recv(socket_.get(), part, std::min(sizeof part, bytes - into.size()), 0);
      if (length == 0) errno = ECONNRESET;
      if (length <= 0) return false;
      into.append(part, static_cast<std::size_t>(length));
    }
    return true;
  }

 private:
  bool v6() const { return address_.host.find(':') != std::string::npos; }

  bool limit(int what) {
    const auto left =
        std::chrono::duration_cast<std::chrono::microseconds>(deadline_ - Clock::now()).count();
    errno = ETIMEDOUT;
    if (left <= 0) return false;
    const timeval time{.tv_sec = left / 1'000'000, .tv_usec = left % 1'000'000};
    return ::setsockopt(socket_.get(), SOL_SOCKET, what, &time, sizeof time) == 0;
  }

  TcpAddress address_;
  Time deadline_;
  FileDescriptor socket_;
};

std::string why() {
  // How a time limit of a socket looks from outside.
  const bool late = errno == EAGAIN || errno == EINPROGRESS;
  return std::strerror(late ? ETIMEDOUT : errno);
}

}  // namespace

Result<int, std::string> http_status(const std::string& url, Duration timeout) {
  const auto target = parse_url(url);
  if (!target) return "\"" + url + "\" must be http://ADDRESS:PORT/PATH";
  const std::string request = "GET " + target->path +
                              " HTTP/1.1\r\nHost: " + readable(target->address) +
                              "\r\nConnection: close\r\n\r\n";
  constexpr std::string_view start = "HTTP/1.1 ";
  std::string answer;
  Request http(target->address, timeout);
  if (!http.connect() || !http.send(request) || !http.receive(answer, start.size() + 3))
    return url + ": " + why();
  int status = 0;
  const char* end = answer.data() + answer.size();
  if (!answer.starts_with("HTTP/1.") ||
      std::from_chars(answer.data() + start.size(), end, status).ptr != end)
    return url + ": this is no HTTP";
  return status;
}

}  // namespace millrace
