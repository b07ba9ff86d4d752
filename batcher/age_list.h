// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace millrace {

// Slots in the order of their ages, oldest first; of equal ages the one inserted first. A list
// that lies in one array, a link per slot. Ages come almost in order, so that an insertion behind
// the youngest is the usual one: O(1). Any other searches from where the last such insertion was:
// older slots that come in order among themselves, as those of a lost worker, cost O(1) each, too.
//
// Confined to one thread.
class AgeList {
 public:
  // For slots 0 <= slot < slots.
  explicit AgeList(std::uint32_t slots) : links_(slots + 1), end_(slots), near_(slots) {
    links_[end_] = {Time::max(), end_, end_};
  }

  std::uint32_t size() const { return size_; }

  // The age of the oldest; Time::max() when empty.
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

  // Takes the oldest. Requires: not empty.
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

  // The youngest slot that is not younger than `age`; end_ if there is none.
  std::uint32_t find_before(Time age) const {
    std::uint32_t before = near_;
    while (before != end_ && links_[before].age > age) before = links_[before].previous;
    while (links_[links_[before].next].age <= age) before = links_[before].next;
    return before;
  }

  std::vector<Link> links_;  // and one more, `end_`, before the first and behind the last
  std::uint32_t end_;
  std::uint32_t near_;  // where the search for an older slot begins
  std::uint32_t size_ = 0;
};

}  // namespace millrace
