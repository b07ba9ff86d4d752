// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "transport/http_message.h"
#include "transport/net.h"

namespace millrace {

// Answers GET requests, for the people who run the service: one request per connection, at most
// four connections at a time (more wait in the backlog), each for a limited time. Confined to one
// thread, which `answer` is called on; both outlive what serve() gives.
class HttpServer {
 public:
  using Answer = std::function<HttpAnswer(const HttpQuery&)>;

  HttpServer(Acceptor acceptor, Answer answer, Duration time_limit = std::chrono::seconds(2));

  // Runs until stop().
  Task<> serve();
  void stop();

  Tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

 private:
  Task<> serve_one_by_one();
  Task<> serve(Socket socket);
  Task<> read_and_answer(Socket& socket);
  HttpAnswer answer_or_apology(const HttpQuery& query) const;

  Acceptor acceptor_;
  Answer answer_;
  Duration time_limit_;
};

}  // namespace millrace
