// SPDX-License-Identifier: Apache-2.0
// What the workers and watchers of a pipeline are sent.
#include <algorithm>
#include <unordered_set>

#include "workers/hub/attached_workers.h"

namespace millrace {

namespace wp = worker_protocol;

namespace {

// A watcher that is further behind misses batches.
constexpr std::size_t watcher_backlog = std::size_t{4} << 20;

}  // namespace

wp::Welcome AttachedWorkers::welcome() const {
  wp::Welcome welcome;
  welcome.slots = settings_.shape.slots;
  welcome.rows = settings_.shape.rows;
  welcome.width = settings_.shape.width;
  welcome.frames = settings_.frames;
  welcome.frames.element = settings_.shape.format.dtype;
  welcome.chunk = settings_.chunk;
  welcome.context = format().context;
  welcome.repeat = format().repeat;
  return welcome;
}

// Unread messages show as well as a heartbeat behind them that the service lives, and do not grow.
void AttachedWorkers::beat() {
  for_each_company([this](WorkerConnection& link, std::optional<std::uint32_t>& told,
                          std::uint32_t others) {
    if (link.unsent() > 0) return;
    const bool changed = told != others;
    told = others;
    link.send(changed ? encoder_.encode(wp::Company{others}) : encoder_.encode(wp::Heartbeat{}));
  });
}

std::size_t AttachedWorkers::tensor_bytes(const wp::HandedBatch& batch) const {
  return std::size_t{batch.rows} * batch.width * format().values * size_of(format().dtype);
}

// Workers on other machines and watchers get the tensor that a device would make of bare rows.
Bytes AttachedWorkers::tensor_of(const wp::HandedBatch& batch, Bytes slab, const RowFormat& as) {
  const std::size_t bytes = tensor_bytes(batch);
  if (!as.bare) return slab.first(bytes);
  windows_.clear();
  for (const wp::RowEntry& row : batch.framed) windows_.push_back({row.left, row.size, row.right});
  expanded_.resize(bytes);
  expand_rows(format(), slab, windows_, batch.width, expanded_);
  return expanded_;
}

void AttachedWorkers::hand(AttachedWorker& worker, const wp::HandedBatch& batch) {
  const WorkerSlabs& slabs = *worker.slabs;
  const Bytes slab = slabs.ring().slab(batch.slab);
  const bool sends = !worker.process;
  worker.link->send(
      encoder_.encode(batch, sends ? tensor_of(batch, slab, slabs.format()) : Bytes()));
  if (watchers_.empty()) return;
  if (is_taken_by_watchers(tensor_bytes(batch)))
    copy_to_watchers(batch, tensor_of(batch, slab, slabs.format()));
  else
    stats_.unwatched.add(watchers_.size());
}

// Asked before a copy is made: it may be of hundreds of megabytes.
bool AttachedWorkers::is_taken_by_watchers(std::size_t tensor) const {
  return tensor <= max_sent_tensor && std::ranges::any_of(watchers_, [&](const Watcher& watcher) {
           const std::size_t unsent = watcher.link->unsent();
           return unsent == 0 || unsent + tensor <= watcher_backlog;
         });
}

void AttachedWorkers::copy_to_watchers(const wp::HandedBatch& batch, Bytes tensor) {
  wp::HandedBatch copy = batch;
  // Which openings a watcher has missed nobody knows: it came later, or was slow.
  std::unordered_set<StreamId> named;
  for (const wp::OpenedStream& stream : batch.opened) named.insert(stream.stream);
  const auto name_rows = [&](const std::vector<wp::RowEntry>& rows) {
    for (const wp::RowEntry& row : rows)
      if (named.insert(row.stream).second)
        copy.opened.push_back({row.stream, row.slot, std::string(stream_name_(row.stream)), {}});
  };
  name_rows(batch.framed);
  name_rows(batch.marks);
  const Bytes message = encoder_.encode(copy, tensor);
  for (const Watcher& watcher : watchers_) {
    const std::size_t unsent = watcher.link->unsent();
    if (unsent == 0 || unsent + message.size() <= watcher_backlog)
      watcher.link->send(message);
    else
      stats_.unwatched.add();
  }
}

// Each worker and watcher, how many others it has been told of, and how many others take new
// streams. Of workers that leave for each other the first stays: the later ones do not count for
// it.
template <class Tell>
void AttachedWorkers::for_each_company(Tell tell) {
  std::uint32_t staying = 0, alone = 0;
  for (const auto& [lane, worker] : workers_) {
    staying += !worker.leaving;
    alone += !worker.leaving && worker.alone;
  }
  for (auto& [lane, worker] : workers_) {
    alone -= !worker.leaving && worker.alone;  // the later ones are left
    tell(*worker.link, worker.told, staying - !worker.leaving - (worker.alone ? alone : 0));
  }
  for (Watcher& watcher : watchers_) tell(*watcher.link, watcher.told, staying);
}

// At once where it matters, whether there is another. Numbers that change otherwise take the place
// of a heartbeat: with many workers each attachment would send a message to each of them.
void AttachedWorkers::announce_company() {
  for_each_company(
      [this](WorkerConnection& link, std::optional<std::uint32_t>& told, std::uint32_t others) {
        if (told && (*told == 0) == (others == 0)) return;
        told = others;
        link.send(encoder_.encode(wp::Company{others}));
      });
}

}  // namespace millrace
