// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/queue.h"
#include "recording/writer/page.h"

namespace millrace::recording {

// The pages between the io threads and the recorder: all memory of the queue. Each io thread has an
// equal part of them. Pages are memory that the kernel provides when they are first used, and the
// page used last is used first, so the process needs only as much of it as there is in the queue.
//
// Thread-safe, but each io thread uses only its own index, and only the recorder takes from
// filled().
class PagePool {
 public:
  static constexpr std::size_t page_bytes = 64 << 10;
  static constexpr std::size_t fewest_pages = 4;  // for an io thread

  // `bytes` is the memory of the queue, `frame_bytes` the longest frame: a page has room for it.
  // Throws std::bad_alloc; no other function does.
  PagePool(std::size_t bytes, std::size_t threads, std::size_t frame_bytes);
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;
  ~PagePool();

  std::size_t pages() const { return pages_.size(); }
  std::size_t threads() const { return free_.size(); }

  // Recorder: the pages to record, in the order in which each io thread has filled them.
  Queue<Page*>& filled() { return filled_; }
  // Recorder: the page was recorded. Clears it.
  void give_back(Page& page);

  // Io thread: an empty page; null if all are in use.
  Page* take(std::size_t thread);
  // Io thread: gives a page to the recorder.
  void hand_over(Page& page);
  // Io thread: gives the memory of its empty pages back to the kernel. They can still be used. A
  // second call has only the pages that came back since.
  void release_memory(std::size_t thread);

 private:
  struct Free {
    explicit Free(std::size_t most) : returned(most) {
      returned.reserve();
      waiting.reserve(2 * most);  // `returned` takes its memory
      pages.reserve(most);
    }
    Queue<Page*> returned;       // by the recorder
    std::vector<Page*> waiting;  // taken from `returned`
    std::vector<Page*> pages;    // empty; the last one is used next
    std::size_t released = 0;    // the first of `pages`: their memory was given back
  };
  void collect(Free& free);

  MutableBytes memory_;
  std::vector<Page> pages_;
  std::vector<std::unique_ptr<Free>> free_;  // by io thread
  Queue<Page*> filled_;
};

}  // namespace millrace::recording
