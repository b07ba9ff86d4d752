// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace::python {

// 64-bit FNV-1a over numbers and texts; a text's length counts, so that texts do not run together.
class ContentDigest {
 public:
  void add(std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) step(static_cast<unsigned char>(number >> (8 * byte)));
  }
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    for (const char character : text) step(static_cast<unsigned char>(character));
  }
  std::uint64_t value() const { return value_; }

 private:
  void step(unsigned char byte) { value_ = (value_ ^ byte) * 0x100'0000'01b3; }

  std::uint64_t value_ = 0xcbf2'9ce4'8422'2325;
};

}  // namespace millrace::python
