// SPDX-License-Identifier: Apache-2.0
#include "workers/device_start.h"

#include <pthread.h>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <new>

namespace millrace {

namespace {

constexpr net::use_awaitable_t<Executor> resume{};

}  // namespace

DeviceStart::DeviceStart(Devices& devices) : devices_(devices) {
  if (devices_.all_ready()) return;
  thread_.emplace(1);
  net::post(*thread_, [] { ::pthread_setname_np(::pthread_self(), "millrace-device"); });
}

Task<std::optional<DeviceFailure>> DeviceStart::make_ready(std::string device) {
  std::optional<DeviceFailure> failed;
  const Executor home = co_await net::this_coro::executor;
  co_await net::post(net::bind_executor(thread_->get_executor(), resume));
  try {
    devices_.make_ready(device);
  } catch (const DeviceFailure& failure) {
    failed = failure;
  } catch (const std::bad_alloc&) {
    failed.emplace(DeviceFault::other, "no memory");
  }
  co_await net::post(home, resume);
  co_return failed;
}

}  // namespace millrace
