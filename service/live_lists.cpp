// SPDX-License-Identifier: Apache-2.0
#include "service/live_lists.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <cstddef>
#include <future>
#include <optional>
#include <utility>

#include "service/admin_pages.h"

namespace millrace {

namespace {

// For which a page is kept from when it is collected. A refusal is kept for longer: to find out
// that an io thread does not answer takes the time of the caller.
constexpr auto kept = std::chrono::milliseconds(100);
constexpr auto kept_refusal = std::chrono::seconds(1);
constexpr auto patience = std::chrono::milliseconds(250);

// What `ask` gives on the context of each place below `count`; nothing where one is too late.
template <class Part, class ContextOf, class Ask>
std::optional<std::vector<Part>> collect(std::size_t count, ContextOf context_of, Ask ask) {
  std::vector<std::future<Part>> parts;
  for (std::size_t i = 0; i < count; ++i) {
    auto part = std::make_shared<std::promise<Part>>();
    parts.push_back(part->get_future());
    net::post(context_of(i), [part, ask, i] { part->set_value(ask(i)); });
  }
  const Time deadline = Clock::now() + patience;
  std::vector<Part> all;
  for (auto& part : parts) {
    if (part.wait_until(deadline) != std::future_status::ready) return std::nullopt;
    all.push_back(part.get());
  }
  return all;
}

HttpAnswer too_late() {
  return {.status = 503,
          .type = "application/json",
          .body = "{\"error\":{\"message\":\"an io thread does not answer\"}}\n"};
}

}  // namespace

HttpAnswer LiveLists::recent(Page& page, Time now, const std::function<HttpAnswer()>& collect) {
  if (now >= page.until) {
    page.answer = collect();
    page.until = Clock::now() + (page.answer.status == 200 ? Duration(kept) : kept_refusal);
  }
  return page.answer;
}

HttpAnswer LiveLists::streams(Time now) {
  return recent(streams_, now, [&]() -> HttpAnswer {
    auto parts = collect<StreamList>(
        threads_.size(), [&](std::size_t i) -> net::io_context& { return threads_[i]->context(); },
        [threads = threads_, now](std::size_t i) {
          return list_streams(threads[i]->door().table(), now);
        });
    return parts ? streams_page(std::move(*parts)) : too_late();
  });
}

HttpAnswer LiveLists::workers(Time now) {
  return recent(workers_, now, [&]() -> HttpAnswer {
    const auto parts = collect<WorkerList>(
        pipelines_.size(), [&](std::size_t i) -> net::io_context& { return pipelines_[i]->home(); },
        [pipelines = pipelines_, now](std::size_t i) {
          return WorkerList{pipelines[i]->name(), pipelines[i]->hub().workers(now)};
        });
    return parts ? workers_page(*parts) : too_late();
  });
}

}  // namespace millrace
