// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/frame_type.h"
#include "commands/output/row_lines.h"

namespace millrace {

// The values of the frames that later rows may need. Values of type s16 are printed as integers,
// others as decimal numbers. Confined to one thread.
class FrameWindow final : public FrameValues {
 public:
  explicit FrameWindow(const FrameType& type) : type_(type) {}

  // Appends the stream's next frames.
  void add(Bytes frames) { bytes_.insert(bytes_.end(), frames.begin(), frames.end()); }
  // Forgets the frames before `position`, which are not needed any more.
  void drop_before(std::uint64_t position);

  void print(std::ostream& out, std::uint64_t position) const override;
  void print_zero(std::ostream& out) const override;

 private:
  template <class Value>
  void print_frame(std::ostream& out, Value value) const;

  const FrameType type_;
  std::uint64_t begin_ = 0;  // position of the first frame in bytes_
  std::vector<std::byte> bytes_;
};

}  // namespace millrace
