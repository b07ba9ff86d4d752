// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace millrace {

// Slots in order of age, oldest first; equal ages in the order of insertion. A linked list in one
// array with a link per slot. Ages arrive almost in order, so most insertions are at the end: O(1).
// Any other insertion searches from the place of the last such insertion: older slots in ascending
// order, such as those of a lost worker, take O(1) each too.
//
// Confined to one thread.
class AgeList {
 public:
  // For slots 0 <= slot < slots.
  explicit AgeList(std::uint32_t slots) : links_(slots + 1), end_(slots), near_(slots) {
    links_[end_] = {Time::max(), end_, end_};
  }

  std::uint32_t size() const { return size_; }

  // The age of the oldest slot; Time::max() if empty.
  Time oldest() const { return links_[links_[end_].next].age; }

  // Requires: `slot` is not in the list.
  void insert(std::uint32_t slot, Time age) {
    assert(age < Time::max());
    std::uint32_t before = links_[end_].previous;
    if (before != end_ && links_[before].age > age) {
      before = find_before(age);
      near_ = slot;
    }
    const std::uint32_t behind = links_[before].next;
    links_[slot] = {age, before, behind};
    links_[before].next = links_[behind].previous = slot;
    ++size_;
  }

  // Requires: `slot` is in the list.
  void erase(std::uint32_t slot) {
    assert(size_ > 0 && slot != end_);
    const Link& link = links_[slot];
    links_[link.previous].next = link.next;
    links_[link.next].previous = link.previous;
    if (slot == near_) near_ = link.previous;
    --size_;
  }

  // Removes and returns the oldest slot. Requires: not empty.
  std::uint32_t pop() {
    const std::uint32_t slot = links_[end_].next;
    erase(slot);
    return slot;
  }

 private:
  struct Link {
    Time age;
    std::uint32_t previous = 0, next = 0;
  };

  // The youngest slot that is not younger than `age`; end_ if all slots are younger.
  std::uint32_t find_before(Time age) const {
    std::uint32_t before = near_;
    while (before != end_ && links_[before].age > age) before = links_[before].previous;
    while (links_[links_[before].next].age <= age) before = links_[before].next;
    return before;
  }

  std::vector<Link> links_;  // one per slot, and `end_` before the first and after the last
  std::uint32_t end_;
  std::uint32_t near_;  // where the search for an older slot begins
  std::uint32_t size_ = 0;
};

}  // namespace millrace
