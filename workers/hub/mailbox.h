// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "base/queue.h"

namespace millrace {

// A bounded queue whose consumer is a thread that runs an io_context: what any thread puts in is
// taken there, all that waits at one wake-up. The memory of a burst is given back when later
// deliveries are small.
//
// put() is thread-safe; everything else belongs to the consumer's thread. It must outlive the
// run of its io_context.
template <class T>
class Mailbox {
 public:
  // `take` gets what has arrived, in order, on the thread of `io`; it may move from the values.
  Mailbox(boost::asio::io_context& io, std::size_t capacity,
          std::function<void(std::vector<T>&)> take)
      : io_(io), queue_(capacity), take_(std::move(take)) {}

  // Capacities are above what can be outstanding. A full box is a bug, and ends the process: a
  // value lost would hang its stream for ever, unseen. So does one for which there is no memory, or
  // in the midst of which `take` ends with an exception: the bounds are too high to be allocated
  // before they are needed.
  void put(T value) noexcept {
    const auto pushed = queue_.try_push(std::move(value));
    if (pushed == Queue<T>::Pushed::full) std::terminate();
    if (pushed == Queue<T>::Pushed::first) boost::asio::post(io_, [this] { deliver(); });
  }

  // Values that its memory has room for now.
  std::size_t storage() const { return queue_.storage() + arrived_.capacity(); }

 private:
  static constexpr std::size_t kept_bytes = std::size_t{256} << 10;

  void deliver() noexcept {
    queue_.drain(arrived_);
    take_(arrived_);
    // The queue gets this memory back at the next delivery, and this the queue's: so both are seen.
    if (arrived_.capacity() * sizeof(T) > kept_bytes && arrived_.size() < arrived_.capacity() / 4)
      std::vector<T>().swap(arrived_);
  }

  boost::asio::io_context& io_;
  Queue<T> queue_;
  std::function<void(std::vector<T>&)> take_;
  std::vector<T> arrived_;
};

}  // namespace millrace
