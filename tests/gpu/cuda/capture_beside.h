// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>
#include <thread>

namespace millrace::test {

// Another thread that captures a graph while this object lives, in the mode of torch.cuda.graph.
class CaptureBeside {
 public:
  CaptureBeside() { begun_.get_future().wait(); }
  ~CaptureBeside() { (void)end(); }
  CaptureBeside(const CaptureBeside&) = delete;
  CaptureBeside& operator=(const CaptureBeside&) = delete;

  // Ends the capture. True if no call of this process has broken it.
  bool end();

 private:
  void capture();

  std::promise<void> begun_, ending_;
  bool whole_ = false;
  std::thread thread_{[this] { capture(); }};
};

}  // namespace millrace::test
