// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/slab_threads.h"

#include <pthread.h>

namespace millrace {

SlabThreads::SlabThreads(std::size_t devices) {
  for (std::size_t i = 0; i <= devices; ++i)
    net::post(threads_.emplace_back(1),
              [] { ::pthread_setname_np(::pthread_self(), "millrace-slabs"); });
}

SlabThreads::~SlabThreads() {
  for (net::thread_pool& thread : threads_) thread.join();
}

}  // namespace millrace
