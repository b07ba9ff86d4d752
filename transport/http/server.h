// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/files/current.h"
#include "base/result.h"
#include "transport/http/message.h"
#include "transport/net/endless_task.h"
#include "transport/net/net.h"
#include "transport/net/retry_times.h"
#include "transport/net/tls/stream_socket.h"
#include "transport/net/tls/tls_context.h"

namespace millrace {

// Answers GET and HEAD requests to the admin address: one request per connection, 64 connections at
// a time (further ones wait in the backlog). Only requests for an allowed host are answered,
// because of DNS rebinding: on a loopback address for a loopback host, else as is_for_listener()
// says.
//
// With TLS, the handshake may take 2 s. The header must arrive within 200 ms, so that silent
// connections do not delay others. Sending the answer may take 2 s. 200 ms later, the connection is
// closed if the client has not closed it. At most four large answers (over 64 KiB) are sent at a
// time; further ones are replaced by 503, with a Retry-After of 1 to 5 s.
//
// Confined to one thread, on which `answer` is called. `large`, `tls` and the objects that `answer`
// refers to outlive the io_context.
class HttpServer {
 public:
  using Answer = std::function<HttpAnswer(const HttpQuery&)>;

  struct TimeLimits {
    Duration header = std::chrono::milliseconds(200);
    Duration answer = std::chrono::seconds(2);
    Duration end = std::chrono::milliseconds(200);
  };
  static constexpr std::uint64_t most_large = 4;

  // `large` has the limit most_large. `names` are allowed hosts, in lower case. `tls`: of servers,
  // for the next connections; null: without TLS.
  HttpServer(Acceptor acceptor, Answer answer, Budget& large, std::vector<std::string> names,
             const Current<TlsContext>* tls = nullptr);
  // For tests, which use other time limits.
  HttpServer(Acceptor acceptor, Answer answer, Budget& large, TimeLimits limits);

  // Serves until stop().
  void start();
  void stop();

  Tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

 private:
  using Received = std::optional<Result<HttpQuery, HttpFault>>;  // nullopt: an allocation failed

  Task<> serve_one_by_one();
  Task<> serve(Socket socket);
  Task<bool> shake_hands(StreamSocket& socket);
  Task<Received> receive(StreamSocket& socket);
  Task<> reply(StreamSocket& socket, const Result<HttpQuery, HttpFault>& query);
  bool is_allowed(const HttpQuery& query) const;
  HttpAnswer answer_to_query(const HttpQuery& query) const;
  HttpAnswer answer_or_internal_error(const HttpQuery& query) const;

  Acceptor acceptor_;
  Answer answer_;
  Budget& large_;
  const TimeLimits limits_;
  const std::vector<std::string> names_;
  const Current<TlsContext>* const tls_ = nullptr;
  const bool loopback_;
  RetryTimes retry_times_;
  std::deque<EndlessTask> serving_;
};

}  // namespace millrace
