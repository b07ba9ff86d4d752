// SPDX-License-Identifier: Apache-2.0
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "transport/zeromq_dealer.h"
#include "workers/protocol.h"
#include "workers/worker.h"
#include "workers/worker_wire.h"

namespace millrace {
namespace {

// How long the service may take to read what it was told last, before this end goes away.
constexpr auto last_words = std::chrono::milliseconds(1000);

// Host and port of "tcp://HOST:PORT", "tcp://[::1]:5556".
struct Place {
  std::string host, port;
};

Place place_of(const std::string& url) {
  const std::string rest = url.substr(std::string_view("tcp://").size());
  const std::size_t colon = rest.rfind(':');
  const std::string host = rest.substr(0, colon);
  const bool v6 = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (colon == rest.npos || host.empty() || colon + 1 == rest.size())
    throw std::invalid_argument("\"" + url + "\" must be tcp://HOST:PORT");
  return {v6 ? host.substr(1, host.size() - 2) : host, rest.substr(colon + 1)};
}

// libzmq would look up a name in its own thread, and never say that there is none.
std::vector<std::string> endpoints_of(const std::string& url) {
  const Place place = place_of(url);
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  const int error = ::getaddrinfo(place.host.c_str(), place.port.c_str(), &wanted, &found);
  if (error != 0) throw ServiceAbsent("no service at " + url + " (" + ::gai_strerror(error) + ")");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  std::vector<std::string> endpoints;
  for (const addrinfo* each = found; each; each = each->ai_next) {
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (::getnameinfo(each->ai_addr, each->ai_addrlen, host, sizeof host, port, sizeof port,
                      NI_NUMERICHOST | NI_NUMERICSERV) != 0)
      throw WorkerError("no service at " + url + " (its address cannot be read)");
    const std::string address = each->ai_family == AF_INET6 ? "[" + std::string(host) + "]" : host;
    endpoints.push_back("tcp://" + address + ":" + port);
  }
  return endpoints;
}

FileDescriptor event() {
  FileDescriptor made(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made) throw WorkerError(std::string("no descriptor: ") + std::strerror(errno));
  return made;
}

// Why there is no connection by then; "" where there is one.
std::string await(ZeromqDealer& dealer, Time limit, const std::function<void()>& meanwhile) {
  for (;;) {
    const auto state = dealer.follow();
    if (state == ZeromqDealer::State::connected) return "";
    if (state == ZeromqDealer::State::ended) return dealer.reason();
    meanwhile();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit - Clock::now());
    if (left.count() <= 0) return "it does not answer";
    if (dealer.is_news(false, false)) continue;
    const auto descriptors = dealer.descriptors();
    std::array<pollfd, 2> waits{pollfd{descriptors[0], POLLIN, 0},
                                pollfd{descriptors[1], POLLIN, 0}};
    const auto wait = std::min(left, meanwhile_interval);
    ::poll(waits.data(), waits.size(), static_cast<int>(wait.count()));
  }
}

// Tries all addresses of a name, one after another, each for its part of the time that is left.
std::unique_ptr<ZeromqDealer> connect_to(const std::string& url,
                                         const std::function<void()>& meanwhile) {
  std::vector<std::string> endpoints = endpoints_of(url);
  const Time limit = Clock::now() + worker_protocol::handshake_limit;
  std::string reason;
  bool tried = false;
  for (std::size_t left = endpoints.size(); left > 0; --left) {
    const Time now = Clock::now();
    std::unique_ptr<ZeromqDealer> dealer;
    try {
      dealer = std::make_unique<ZeromqDealer>(endpoints[endpoints.size() - left],
                                              worker_protocol::max_to_worker,
                                              worker_protocol::Heartbeats().silence, last_words);
    } catch (const std::exception& error) {
      reason = error.what();
      continue;
    }
    tried = true;
    reason = await(*dealer, now + (limit - now) / left, meanwhile);
    if (reason.empty()) return dealer;
  }
  const std::string what = "no service at " + url + " (" + reason + ")";
  if (tried) throw ServiceAbsent(what);
  throw WorkerError(what);
}

// libzmq's descriptors tell of news once. One thread may take the news in with a heartbeat that it
// sends while another waits: it writes to an event of ours then, which both wait for.
class RemoteWire final : public WorkerWire {
 public:
  RemoteWire(const std::string& url, const std::function<void()>& meanwhile)
      : dealer_(connect_to(url, meanwhile)), descriptors_(dealer_->descriptors()), news_(event()) {}

  std::optional<Bytes> receive() override {
    forget_news();
    do {
      const bool ended = dealer_->follow() == ZeromqDealer::State::ended;
      if (auto message = dealer_->receive()) {
        message_ = std::move(*message);
        return message_.bytes();
      }
      if (ended) throw_ended();
    } while (dealer_->is_news(true, false));
    if (full_ && dealer_->is_news(false, true)) tell_news();  // to who waits for room
    return std::nullopt;
  }
  FileDescriptor take_descriptor() override { return FileDescriptor(); }

  bool try_send(Bytes message) override {
    if (dealer_->follow() == ZeromqDealer::State::ended) {
      tell_news();
      throw_ended();
    }
    forget_news();
    const bool sent = dealer_->send(message);
    const bool was_full = std::exchange(full_, !sent);
    if ((was_full && sent) || dealer_->is_news(sent, !sent)) tell_news();
    return sent;
  }
  // libzmq's own thread does.
  void flush() override {}
  bool has_output() const override { return false; }
  // The news stay, whoever waits.
  void end() override {
    dealer_.reset();
    tell_news();
  }

  Waits waits(Until) const override {
    return {pollfd{descriptors_[0], POLLIN, 0}, pollfd{descriptors_[1], POLLIN, 0},
            pollfd{news_.get(), POLLIN, 0}};
  }

 private:
  [[noreturn]] void throw_ended() {
    throw WorkerError("the connection to the service ended: " + dealer_->reason());
  }

  void tell_news() {
    const std::uint64_t one = 1;
    if (!std::exchange(told_, true)) [[maybe_unused]]
      const ssize_t written = ::write(news_.get(), &one, sizeof one);
  }
  void forget_news() {
    std::uint64_t count = 0;
    if (std::exchange(told_, false)) [[maybe_unused]]
      const ssize_t got = ::read(news_.get(), &count, sizeof count);
  }

  std::unique_ptr<ZeromqDealer> dealer_;  // null: ended here
  const std::array<int, 2> descriptors_;
  const FileDescriptor news_;
  bool told_ = false;
  bool full_ = false;  // somebody waits for room, and nobody for messages
  ZeromqMessage message_;
};

}  // namespace

std::unique_ptr<WorkerWire> connect_remote(const std::string& url,
                                           const std::function<void()>& meanwhile) {
  return std::make_unique<RemoteWire>(url, meanwhile);
}

}  // namespace millrace
