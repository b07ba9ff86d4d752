// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace millrace {

// Why a stream of a client is none, or is none any more: one of the three below. What is thrown for
// a stream once is thrown by each later call for it.
class ClientError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The service did not open it.
class StreamRefused : public ClientError {
 public:
  StreamRefused(const std::string& what, std::string code, std::string parameter,
                std::optional<std::chrono::milliseconds> retry_after)
      : ClientError(what),
        code_(std::move(code)),
        parameter_(std::move(parameter)),
        retry_after_(retry_after) {}

  const std::string& code() const { return code_; }            // of docs/protocol.md: no_room …
  const std::string& parameter() const { return parameter_; }  // at fault; or empty
  std::optional<std::chrono::milliseconds> retry_after() const { return retry_after_; }

 private:
  std::string code_;
  std::string parameter_;
  std::optional<std::chrono::milliseconds> retry_after_;
};

// The service ended it: it cannot go on. Or it was over when something was sent, or was closed here
// (both "closed").
class StreamFailed : public ClientError {
 public:
  StreamFailed(std::string code, const std::string& message)
      : ClientError(code + ": " + message), code_(std::move(code)) {}

  const std::string& code() const { return code_; }  // of docs/protocol.md: no_worker …
  std::string message() const { return std::string(what()).substr(code_.size() + 2); }

 private:
  std::string code_;
};

// The service could not be reached, or is gone, or speaks another protocol.
class ConnectionLost : public ClientError {
 public:
  using ClientError::ClientError;
};

}  // namespace millrace
