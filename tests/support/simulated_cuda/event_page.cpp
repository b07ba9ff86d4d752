// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/event_page.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "tests/support/simulated_cuda/unseen.h"

namespace millrace::test::simulated_cuda {

bool map_page(Event& event) {
  void* at =
      ::mmap(nullptr, sizeof(EventPage), PROT_READ | PROT_WRITE, MAP_SHARED, event.descriptor, 0);
  if (at == MAP_FAILED) return false;
  event.page = static_cast<EventPage*>(at);
  return true;
}

bool make_page(Event& event) {
  const Unseen unseen;
  if (!event.shared()) {
    event.page = new EventPage;
    return true;
  }
  event.descriptor = ::memfd_create("simulated CUDA event", MFD_CLOEXEC);
  if (event.descriptor < 0 || ::ftruncate(event.descriptor, sizeof(EventPage)) != 0 ||
      !map_page(event))
    return false;
  std::construct_at(event.page);
  return ::getrandom(&event.page->tag, sizeof event.page->tag, 0) > 0;
}

void close_page(Event& event) {
  if (event.descriptor >= 0) ::close(std::exchange(event.descriptor, -1));
}

void drop_page(Event& event) {
  close_page(event);
  if (event.shared())
    ::munmap(event.page, sizeof(EventPage));
  else
    delete event.page;
}

}  // namespace millrace::test::simulated_cuda
