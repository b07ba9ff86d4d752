// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/page_writer.h"

#include <new>
#include <utility>

#include "recording/writer/stream_pen.h"

namespace millrace::recording {

PageWriter::PageWriter(PagePool& pool, std::size_t thread, TapStats& stats)
    : pool_(pool), thread_(thread), stats_(stats) {}

PageWriter::~PageWriter() = default;

Page* PageWriter::with_room(std::size_t bytes) {
  if (sheds_) return nullptr;
  if (page_) {
    const auto room = page_->room();
    if (room && *room >= bytes) return page_;
    pool_.hand_over(*page_);
  }
  page_ = pool_.take(thread_);
  return page_;
}

bool PageWriter::hand_over() {
  if (sheds_) {
    pool_.release_memory(thread_);
    return true;  // pages may be long in coming
  }
  finish_pens();
  if (page_ && !page_->empty()) pool_.hand_over(*std::exchange(page_, nullptr));
  return unfinished_.empty();
}

void PageWriter::shed(bool sheds) {
  if (sheds == sheds_) return;
  hand_over();
  if (page_) pool_.hand_over(*std::exchange(page_, nullptr));
  sheds_ = sheds;
  if (sheds) pool_.release_memory(thread_);
}

void PageWriter::finish_later(std::unique_ptr<StreamPen> pen) {
  if (!pen->named() && unfinished_.size() >= most_unfinished) return;
  try {
    unfinished_.push_back(std::move(pen));
  } catch (const std::bad_alloc&) {  // the end of this stream is not recorded
  }
}

void PageWriter::finish_pens() {
  std::size_t finished = 0;
  while (finished < unfinished_.size() && unfinished_[finished]->finish()) ++finished;
  unfinished_.erase(unfinished_.begin(),
                    unfinished_.begin() + static_cast<std::ptrdiff_t>(finished));
}

}  // namespace millrace::recording
