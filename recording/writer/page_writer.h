// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/time.h"
#include "recording/writer/page_pool.h"
#include "recording/writer/stats.h"

namespace millrace::recording {

class StreamPen;

// The pages of one io thread, which its pens write. Confined to that thread.
class PageWriter {
 public:
  // While this many streams wait for a page for their last record, streams that end and that no
  // record names yet are not recorded at all.
  static constexpr std::size_t most_unfinished = 4096;

  // `pool` and `stats` must outlive it. `thread` is the index of the thread.
  PageWriter(PagePool& pool, std::size_t thread, TapStats& stats);
  ~PageWriter();

  // The page for a record of this many bytes; null while all pages are in use. Requires: an empty
  // page has room for it.
  Page* with_room(std::size_t bytes);
  Page* current() { return page_; }  // may be null
  // The reason why there is no page.
  DropReason reason() const { return sheds_ ? DropReason::memory : DropReason::queue_full; }

  // Notes in the page when its first record was written, for an event that was read at `at`: the
  // latest instant at which any event of the thread was read, because events of a stream may have
  // waited before its chunker.
  void begin(Page& page, Time at) {
    newest_ = std::max(newest_, at);
    if (!page.begun) page.begun = newest_;
  }

  // Gives the current page to the recorder. Call it every half of `commit`, and when the thread has
  // finished its streams: again while it is false, because last records wait for a page.
  bool hand_over();
  // While `sheds`, there are no pages, and their memory is given back.
  void shed(bool sheds);

  // Takes a pen that is closed but not finished() until it is.
  void finish_later(std::unique_ptr<StreamPen> pen);
  std::size_t unfinished() const { return unfinished_.size(); }

  TapStats& stats() { return stats_; }

 private:
  void finish_pens();

  PagePool& pool_;
  const std::size_t thread_;
  TapStats& stats_;
  Page* page_ = nullptr;
  bool sheds_ = false;
  Time newest_ = Time::min();
  std::vector<std::unique_ptr<StreamPen>> unfinished_;
};

}  // namespace millrace::recording
