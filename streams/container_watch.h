// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "input/containers/container_name.h"

namespace millrace {

// Detects bytes that are plainly not samples: a stream that begins with the signature of a
// container, such as a whole WAV file, and a message that is a JSON command, which must be text.
// Their samples would be noise. Confined to one thread.
class ContainerWatch {
 public:
  // Looks at a message of frames. Returns a warning at most once per stream, otherwise an empty
  // text.
  std::string add(Bytes message) {
    if (warned_) return {};
    if (begun_ < beginning_.size()) {
      const std::size_t count = std::min<std::size_t>(message.size(), beginning_.size() - begun_);
      std::ranges::copy(message.first(count),
                        beginning_.begin() + static_cast<std::ptrdiff_t>(begun_));
      begun_ = static_cast<std::uint8_t>(begun_ + count);
      const std::string_view found = container_name(Bytes(beginning_).first(begun_));
      warned_ = !found.empty();
      if (warned_)
        return "the stream begins like a file in the container " + std::string(found) +
               ", not with samples: send the audio in it, decoded; docs/audio.md";
    }
    warned_ = is_json(message);
    if (!warned_) return {};
    return "a message of samples is a JSON command: send commands in text messages; docs/audio.md";
  }

  // The container that the stream or this message begins with. Empty: none.
  std::string_view container(Bytes message) const {
    const std::string_view found = container_name(message);
    return found.empty() ? container_name(Bytes(beginning_).first(begun_)) : found;
  }

 private:
  // True for a text in braces. So short a text in samples is improbable.
  static bool is_json(Bytes message) {
    const auto is_text = [](std::byte byte) {
      return (byte >= std::byte{' '} && byte <= std::byte{'~'}) || byte == std::byte{'\n'} ||
             byte == std::byte{'\r'} || byte == std::byte{'\t'};
    };
    constexpr std::size_t least = 8, most = 4096;
    if (message.size() < least || message.size() > most || message.front() != std::byte{'{'})
      return false;
    return std::ranges::all_of(message, is_text) &&
           std::ranges::find(message, std::byte{'}'}) != message.end();
  }

  std::array<std::byte, longest_signature> beginning_{};
  std::uint8_t begun_ = 0;  // number of these bytes
  bool warned_ = false;
};

}  // namespace millrace
