// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <exception>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/queue.h"

namespace millrace {

// A bounded queue whose consumer is a thread that runs an io_context. One wake-up delivers all
// values that are queued. The memory of a burst is freed when later deliveries are small.
//
// put() is thread-safe; everything else is confined to the consumer's thread. The mailbox must
// outlive the run of its io_context.
template <class T>
class Mailbox {
 public:
  // `on_values` is called on the thread of `io` with the queued values in order, from which it may
  // move. `capacity` is in values.
  Mailbox(boost::asio::io_context& io, std::size_t capacity,
          std::function<void(std::vector<T>&)> on_values)
      : io_(io), queue_(capacity), on_values_(std::move(on_values)) {}

  // Ends the process if the mailbox is full. The capacity is above the number of values that can be
  // outstanding, so a full mailbox is a bug, and a lost value would hang its stream without notice.
  // Also ends the process if there is no memory for the value, or if `on_values` throws: the
  // capacity is too high to allocate it in advance.
  void put(T value) noexcept { deliver_if_first(queue_.try_push(std::move(value))); }
  // The same for several values, from which it moves. Requires: there is one.
  void put_all(std::span<T> values) noexcept { deliver_if_first(queue_.try_push(values)); }

  // The number of values for which memory is allocated.
  std::size_t storage() const { return queue_.storage() + arrived_.capacity(); }

 private:
  static constexpr std::size_t kept_bytes = std::size_t{256} << 10;

  void deliver_if_first(typename Queue<T>::Pushed pushed) {
    if (pushed == Queue<T>::Pushed::full) std::terminate();
    if (pushed == Queue<T>::Pushed::first) boost::asio::post(io_, [this] { deliver(); });
  }

  void deliver() noexcept {
    queue_.drain(arrived_);
    on_values_(arrived_);
    // The two vectors change places at each delivery, so both are checked.
    if (arrived_.capacity() * sizeof(T) > kept_bytes && arrived_.size() < arrived_.capacity() / 4)
      std::vector<T>().swap(arrived_);
  }

  boost::asio::io_context& io_;
  Queue<T> queue_;
  std::function<void(std::vector<T>&)> on_values_;
  std::vector<T> arrived_;
};

}  // namespace millrace
