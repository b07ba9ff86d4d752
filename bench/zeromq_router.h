// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <zmq.hpp>

namespace millrace::bench {

// The bare end of a service over ZeroMQ: a ROUTER on a thread of its own. It opens every stream, of
// frames of two bytes, with credit for everything, drops frames, and closes streams that end.
class DroppingRouter {
 public:
  DroppingRouter();
  ~DroppingRouter();

  std::string url() const { return url_; }
  // Bytes of all messages that were longer than 1 KiB. Call it after the streams have ended.
  std::uint64_t bytes() const { return bytes_; }

 private:
  void serve();

  zmq::context_t context_;
  zmq::socket_t router_;
  std::string url_;
  std::uint64_t bytes_ = 0;
  std::jthread thread_;
};

}  // namespace millrace::bench
