// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "base/budget.h"
#include "base/result.h"
#include "transport/http/message.h"
#include "transport/net/endless_task.h"
#include "transport/net/net.h"
#include "transport/net/retry_times.h"

namespace millrace {

// Answers GET requests, for the people who run the service: one request per connection, 64
// connections at a time (more wait in the backlog). A header has to be there within 200 ms, so that
// connections that send nothing do not hold up others; sending the answer may take 2 s, and 200
// ms later the connection is closed, if the client has not done it. Of answers that do not fit in
// the socket, four are sent at a time; a fifth is refused with 503, to come again in 1 to 5 s. On a
// loopback address only requests for a loopback host are answered. Confined to one thread, which
// `answer` is called on; `large` and `answer` outlive the io_context.
class HttpServer {
 public:
  using Answer = std::function<HttpAnswer(const HttpQuery&)>;

  struct TimeLimits {
    Duration header = std::chrono::milliseconds(200);
    Duration answer = std::chrono::seconds(2);
    Duration end = std::chrono::milliseconds(200);
  };
  static constexpr std::uint64_t most_large = 4;

  // `large` has most_large places.
  HttpServer(Acceptor acceptor, Answer answer, Budget& large, TimeLimits limits);
  HttpServer(Acceptor acceptor, Answer answer, Budget& large)
      : HttpServer(std::move(acceptor), std::move(answer), large, TimeLimits()) {}

  // Serves until stop().
  void start();
  void stop();

  Tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

 private:
  using Received = std::optional<Result<HttpQuery, HttpFault>>;  // nullopt: there was no memory

  Task<> serve_one_by_one();
  Task<> serve(Socket socket);
  Task<Received> receive(Socket& socket);
  Task<> reply(Socket& socket, const Result<HttpQuery, HttpFault>& query);
  HttpAnswer answer_to_query(const HttpQuery& query) const;
  HttpAnswer answer_or_apology(const HttpQuery& query) const;

  Acceptor acceptor_;
  Answer answer_;
  Budget& large_;
  const TimeLimits limits_;
  const bool loopback_;
  RetryTimes retry_times_;
  std::deque<EndlessTask> serving_;
};

}  // namespace millrace
