// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::python {

// Texts in one piece of memory, numbered from 0. Thread-safe after the last add().
class TextColumn {
 public:
  void add(std::string_view text) {
    texts_.append(text);
    ends_.push_back(texts_.size());
  }
  std::string_view at(std::uint64_t number) const {
    const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::string_view(texts_).substr(begin, ends_[number] - begin);
  }

 private:
  std::string texts_;
  std::vector<std::size_t> ends_;
};

}  // namespace millrace::python
