// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/unseen.h"

// Functions of ThreadSanitizer's runtime; null without it.
extern "C" {
[[gnu::weak]] void AnnotateIgnoreReadsBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreReadsEnd(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesEnd(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreSyncBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreSyncEnd(const char* file, int line);
}

namespace millrace::test::simulated_cuda {

bool races_are_found() { return AnnotateIgnoreSyncBegin != nullptr; }

Unseen::Unseen() {
  if (!races_are_found()) return;
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

Unseen::~Unseen() {
  if (!races_are_found()) return;
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}

}  // namespace millrace::test::simulated_cuda
