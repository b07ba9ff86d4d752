// SPDX-License-Identifier: Apache-2.0
#include "service/admin/live_lists.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstddef>
#include <future>
#include <optional>

#include "service/admin/admin_pages.h"
#include "service/admin/stream_walk.h"
#include "transport/websocket/upgrade.h"

namespace millrace {

namespace {

// A page is cached for this long after it was collected. A refusal is cached for longer, because
// the caller must wait to detect that an io thread does not answer.
constexpr auto page_lifetime = std::chrono::milliseconds(100);
constexpr auto refusal_lifetime = std::chrono::seconds(1);
constexpr auto collect_timeout = std::chrono::milliseconds(250);
constexpr std::size_t most_pages = 4;  // kept pages of the list of streams
constexpr std::size_t most_collections = 20;
constexpr auto collection_period = std::chrono::seconds(1);

template <class Part>
using Promise = std::shared_ptr<std::promise<Part>>;

// Calls `begin` for each part, to start making it on its thread, and waits for all parts. Returns
// nullopt if one is not ready after collect_timeout.
template <class Part, class Begin>
std::optional<std::vector<Part>> collect(std::size_t count, Begin begin) {
  std::vector<std::future<Part>> parts;
  for (std::size_t i = 0; i < count; ++i) {
    auto part = std::make_shared<std::promise<Part>>();
    parts.push_back(part->get_future());
    begin(i, std::move(part));
  }
  const Time deadline = Clock::now() + collect_timeout;
  std::vector<Part> all;
  for (auto& part : parts) {
    if (part.wait_until(deadline) != std::future_status::ready) return std::nullopt;
    all.push_back(part.get());
  }
  return all;
}

// Posts the next slice of the walk, so that the thread does its other work before it.
void post_step(IoThread& thread, std::shared_ptr<StreamWalk> walk, Promise<StreamList> list) {
  thread.post([&thread, walk = std::move(walk), list = std::move(list)]() mutable {
    if (walk->step(thread.admission().table()))
      list->set_value(walk->take());
    else
      post_step(thread, std::move(walk), std::move(list));
  });
}

HttpAnswer no_answer() {
  return answer_to(RequestError{.status = 503, .message = "an io thread does not answer"});
}

HttpAnswer too_often() {
  return answer_to(RequestError{.status = 503,
                                .message = "too many different lists were requested in a second",
                                .retry_after = collection_period});
}

}  // namespace

template <class Collect>
const HttpAnswer& LiveLists::cached(Page& page, Time now, Collect collect) {
  if (now < page.until) return page.answer;
  std::erase_if(collections_, [&](Time at) { return at + collection_period <= now; });
  if (now < paused_until_) {
    page.answer = no_answer();
  } else if (collections_.size() < most_collections) {
    collections_.push_back(now);
    page.answer = collect();
  } else {
    page.answer = too_often();
  }
  page.until =
      Clock::now() + (page.answer.status == 200 ? Duration(page_lifetime) : refusal_lifetime);
  return page.answer;
}

HttpAnswer LiveLists::timed_out() {
  paused_until_ = Clock::now() + refusal_lifetime;
  return no_answer();
}

LiveLists::Page& LiveLists::page_of(const StreamQuery& query) {
  const auto found = std::ranges::find(streams_, query, &std::pair<StreamQuery, Page>::first);
  if (found != streams_.end()) return found->second;
  if (streams_.size() == most_pages) streams_.pop_front();
  return streams_.emplace_back(query, Page()).second;
}

bool LiveLists::is_pipeline(std::string_view name) const {
  return std::ranges::any_of(pipelines_, [&](const auto& one) { return one->name() == name; });
}

HttpAnswer LiveLists::streams(std::string_view target, Time now) {
  const auto query = parse_stream_query(target);
  if (!query) return answer_to(query.error());
  if (!query->pipeline.empty() && !is_pipeline(query->pipeline))
    return answer_to(RequestError{
        .status = 404, .parameter = "pipeline", .message = "there is no such pipeline"});
  return cached(page_of(*query), now, [&] { return collect_streams(*query, now); });
}

HttpAnswer LiveLists::workers(Time now) {
  return cached(workers_, now, [&] { return collect_workers(now); });
}

HttpAnswer LiveLists::collect_streams(const StreamQuery& query, Time now) {
  auto parts = collect<StreamList>(threads_.size(), [&](std::size_t i, auto list) {
    post_step(*threads_[i], std::make_shared<StreamWalk>(query, now), std::move(list));
  });
  return parts ? streams_page(query, std::move(*parts)) : timed_out();
}

HttpAnswer LiveLists::collect_workers(Time now) {
  const auto parts = collect<WorkerList>(pipelines_.size(), [&](std::size_t i, auto list) {
    net::post(pipelines_[i]->home(), [&pipeline = *pipelines_[i], list, now] {
      list->set_value({pipeline.name(), pipeline.hub().workers(now)});
    });
  });
  return parts ? workers_page(*parts) : timed_out();
}

}  // namespace millrace
