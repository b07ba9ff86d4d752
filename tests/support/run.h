// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>

#include "tests/support/patience.h"
#include "transport/net/net.h"

namespace millrace {

// Runs one coroutine to its end and returns its result. Other work of the context runs meanwhile.
// Throws if it takes too long.
template <class T>
T run(net::io_context& context, Task<T> task) {
  // Shared with the coroutine, which continues after this function has thrown.
  struct Outcome {
    std::optional<T> value;
    std::exception_ptr thrown;
  };
  const auto outcome = std::make_shared<Outcome>();
  net::co_spawn(context, std::move(task), [&context, outcome](std::exception_ptr error, T result) {
    outcome->thrown = error;
    if (!error) outcome->value.emplace(std::move(result));
    context.stop();
  });
  context.restart();
  context.run_for(patience);
  if (outcome->thrown) std::rethrow_exception(outcome->thrown);
  if (!outcome->value) throw std::runtime_error("took too long");
  return std::move(*outcome->value);
}

}  // namespace millrace
