// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/random_keys.h"

#include <sys/random.h>

#include <cerrno>
#include <system_error>

namespace millrace {

MaskingKey RandomKeys::next() {
  if (used_ == keys_.size()) {
    static_assert(sizeof keys_ <= 256);  // getrandom() then returns all bytes or an error
    if (::getrandom(keys_.data(), sizeof keys_, 0) < 0)
      throw std::system_error(errno, std::generic_category(), "no random bytes");
    used_ = 0;
  }
  return keys_[used_++];
}

}  // namespace millrace
