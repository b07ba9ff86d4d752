// SPDX-License-Identifier: Apache-2.0
#include "recording/writer/page_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace millrace::recording {
namespace {

constexpr std::size_t kernel_page = 4096;

std::size_t bytes_of_page(std::size_t frame_bytes) {
  const std::size_t least = Page::head + frame_bytes;
  return std::max(PagePool::page_bytes, (least + kernel_page - 1) / kernel_page * kernel_page);
}

std::size_t pages_of_thread(std::size_t bytes, std::size_t threads, std::size_t page) {
  return std::max(PagePool::fewest_pages, bytes / threads / page);
}

MutableBytes map_memory(std::size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // A huge page would make 2 MiB of a page of 64 KiB, and could not be given back in parts.
  ::madvise(memory, bytes, MADV_NOHUGEPAGE);
  return {static_cast<std::byte*>(memory), bytes};
}

}  // namespace

PagePool::PagePool(std::size_t bytes, std::size_t threads, std::size_t frame_bytes)
    : filled_(threads * pages_of_thread(bytes, threads, bytes_of_page(frame_bytes))) {
  filled_.reserve();
  const std::size_t page = bytes_of_page(frame_bytes);
  const std::size_t each = pages_of_thread(bytes, threads, page);
  memory_ = map_memory(page * each * threads);
  pages_.reserve(each * threads);
  for (std::size_t thread = 0; thread < threads; ++thread) {
    free_.push_back(std::make_unique<Free>(each));
    for (std::size_t i = 0; i < each; ++i) {
      pages_.emplace_back(memory_.subspan(pages_.size() * page, page), thread);
      free_.back()->pages.push_back(&pages_.back());
    }
  }
}

PagePool::~PagePool() { ::munmap(memory_.data(), memory_.size()); }

void PagePool::give_back(Page& page) {
  page.clear();
  (void)free_[page.thread()]->returned.try_push(&page);  // never full: it has room for all pages
}

void PagePool::collect(Free& free) {
  free.returned.drain(free.waiting);
  free.pages.insert(free.pages.end(), free.waiting.begin(), free.waiting.end());
}

Page* PagePool::take(std::size_t thread) {
  Free& free = *free_[thread];
  collect(free);
  if (free.pages.empty()) return nullptr;
  Page* const page = free.pages.back();
  free.pages.pop_back();
  free.released = std::min(free.released, free.pages.size());
  return page;
}

void PagePool::hand_over(Page& page) {
  Page* handed = &page;
  (void)filled_.try_push(std::move(handed));  // never full: it has room for all pages
}

void PagePool::release_memory(std::size_t thread) {
  Free& free = *free_[thread];
  collect(free);
  for (; free.released < free.pages.size(); ++free.released) {
    const MutableBytes memory = free.pages[free.released]->memory();
    ::madvise(memory.data(), memory.size(), MADV_DONTNEED);
  }
}

}  // namespace millrace::recording
