// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/ids.h"

namespace millrace {

// A resume token is signed by the service, and lets its client take up a stream over a new
// connection (ResumeKeys). Each connection of a stream has an epoch, one more than the connection
// before it, so that the service knows which token of a stream is the newest. Two services may give
// tokens with the same epoch, if the client has lost one of them: they differ in `opening`.
struct ResumeToken {
  std::uint32_t epoch = 0;
  std::uint32_t opening = 0;  // a random number, drawn each time the stream is opened, anew or not
  StreamKey stream;

  bool operator==(const ResumeToken&) const = default;
};

// The stream that a token is signed for. A token is wrong for any other one.
struct ResumeSubject {
  std::string_view name;      // as the client knows it
  std::string_view pipeline;  // its pipeline
  std::string_view tenant;    // its tenant; empty without one
};

// Characters of a token.
inline constexpr std::size_t resume_token_size = 86;
// Older tokens are refused. A connection lives at most 4 h 24 min (ConnectionLimits::age), and its
// stream waits at most 10 min for the next one: the newest token of a stream is never too old.
inline constexpr std::chrono::hours longest_resume_age{5};

// Why a token is refused. In this order: the first one that applies.
enum class ResumeFault : std::uint8_t {
  malformed,    // not 86 characters of base64url, as sign() writes them
  unknown_key,  // signed by a key that is not known here: the service was restarted, or its keys
                // were replaced
  wrong_mac,    // made up, changed, or of another stream
  too_old,      // right, but issued more than longest_resume_age ago
};

}  // namespace millrace
