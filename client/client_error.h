// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace millrace {

// Base of the three errors of a stream: refused, failed, connection lost. A stream that has failed
// throws the same error from each later call.
class ClientError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The service refused to open the stream.
class StreamRefused : public ClientError {
 public:
  StreamRefused(const std::string& what, std::string code, std::string parameter,
                std::optional<std::chrono::milliseconds> retry_after)
      : ClientError(what),
        code_(std::move(code)),
        parameter_(std::move(parameter)),
        retry_after_(retry_after) {}

  // A code of docs/protocol.md, such as no_room.
  const std::string& code() const { return code_; }
  // The parameter at fault, or empty.
  const std::string& parameter() const { return parameter_; }
  // Time after which a retry may succeed; nullopt if the service gave none.
  std::optional<std::chrono::milliseconds> retry_after() const { return retry_after_; }

 private:
  std::string code_;
  std::string parameter_;
  std::optional<std::chrono::milliseconds> retry_after_;
};

// The stream has ended with an error: one of the service, or `slow_reader`
// (ClientSettings::taking). Also thrown, with the code "closed", if the program has closed the
// stream, or sends to a stream that is over.
class StreamFailed : public ClientError {
 public:
  StreamFailed(std::string code, const std::string& message)
      : ClientError(code + ": " + message), code_(std::move(code)) {}

  // A code of docs/protocol.md, such as no_worker.
  const std::string& code() const { return code_; }
  std::string message() const { return std::string(what()).substr(code_.size() + 2); }

 private:
  std::string code_;
};

// The service could not be reached, the connection was lost, or the service sent an invalid
// message.
class ConnectionLost : public ClientError {
 public:
  using ClientError::ClientError;
};

}  // namespace millrace
