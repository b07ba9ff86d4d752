// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "client/client_error.h"

namespace millrace {

// The error of a stream, passed from the client's thread to the user's. A value, not an
// exception_ptr: two threads would share the reference count of the exception.
struct StreamFailure {
  enum class Kind { refused, failed, lost };

  static StreamFailure lost(std::string why) {
    return {.kind = Kind::lost, .message = std::move(why)};
  }
  static StreamFailure refused(std::string what, std::string code, std::string parameter,
                               std::optional<std::chrono::milliseconds> retry_after) {
    return {Kind::refused, std::move(what), std::move(code), std::move(parameter), retry_after};
  }
  static StreamFailure failed(std::string code, std::string message) {
    return {.kind = Kind::failed, .message = std::move(message), .code = std::move(code)};
  }

  [[noreturn]] void raise() const {
    switch (kind) {
      case Kind::refused: throw StreamRefused(message, code, parameter, retry_after);
      case Kind::failed: throw StreamFailed(code, message);
      case Kind::lost: break;
    }
    throw ConnectionLost(message);
  }

  Kind kind = Kind::lost;
  std::string message;
  std::string code{};
  std::string parameter{};
  std::optional<std::chrono::milliseconds> retry_after{};
};

}  // namespace millrace
