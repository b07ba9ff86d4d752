// SPDX-License-Identifier: Apache-2.0
#include "transport/net/endless_task.h"

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <new>
#include <utility>

namespace millrace {
namespace {

constexpr std::size_t reserved_bytes = 16 * 1024;  // more than such a task's coroutine frames

std::unique_ptr<std::byte[]> reserve() {
  return std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[reserved_bytes]);
}

}  // namespace

// The completion handler of one run. Asio calls it when the coroutine ends; if the coroutine is
// destroyed unfinished, the handler is only destroyed.
class EndlessTask::Running {
 public:
  explicit Running(std::shared_ptr<EndlessTask*> task) : task_(std::move(task)) {}
  Running(Running&&) noexcept = default;
  Running(const Running&) = delete;
  ~Running() {
    if (task_ && *task_) (*task_)->restart();
  }

  void operator()(std::exception_ptr thrown) {
    if (!thrown) return task_.reset();
    std::rethrow_exception(thrown);
  }

 private:
  std::shared_ptr<EndlessTask*> task_;
};

EndlessTask::EndlessTask(Executor executor, Make make)
    : executor_(executor),
      make_(std::move(make)),
      self_(std::make_shared<EndlessTask*>(this)),
      reserve_(reserve()) {}

EndlessTask::~EndlessTask() { *self_ = nullptr; }

void EndlessTask::start() {
  Task<> task = make_();
  net::co_spawn(executor_, std::move(task), Running(self_));
}

void EndlessTask::restart() noexcept {
  reserve_.reset();
  start();
  reserve_ = reserve();
}

}  // namespace millrace
