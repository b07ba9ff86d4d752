// SPDX-License-Identifier: Apache-2.0
#include "workers/library/warm_up.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "base/file_descriptor.h"
#include "chunker/row.h"
#include "chunker/rule_json.h"
#include "workers/library/device.h"
#include "workers/library/mapped_slabs.h"
#include "workers/library/worker.h"

namespace millrace {
namespace {

using namespace worker_protocol;

constexpr std::uint8_t whole_stream =
    flag::start | flag::reset | flag::segment | flag::last | flag::end;

// The service counts its streams from 1.
StreamId stream_of(std::uint32_t row) {
  return StreamId{std::numeric_limits<std::uint64_t>::max() - row};
}

// A row of this width with the pipeline's longest body. A service that is newer than this library
// may have a rule with keys that are unknown here: the body then fills the row.
RowEntry row_in(const Welcome& pipeline, std::uint32_t width) {
  const FrameType& frames = pipeline.frames;
  const auto rule =
      rule_from_json(pipeline.chunk, {.rate = frames.rate, .features = frames.features});
  const std::uint64_t left = rule ? rule->spec.left : 0, right = rule ? rule->spec.right : 0;
  const std::uint32_t columns = width - pipeline.context;
  RowEntry row{.flags = whole_stream, .reason = static_cast<std::uint8_t>(ResetReason::start)};
  row.size = left + right < width ? static_cast<std::uint32_t>(width - left - right) : 1;
  row.size = std::min(row.size, columns);
  row.right = static_cast<std::uint32_t>(std::min<std::uint64_t>(right, columns - row.size));
  return row;
}

template <class Action>
void on_device(const WorkerDevice& device, Action action) {
  if (!device.reader()) return;
  try {
    action(*device.reader());
  } catch (const DeviceFailure& error) {
    throw WorkerError(error.what(), "device");
  }
}

// As for a worker on another machine, whose library makes the slabs.
Welcome without_slabs(Welcome pipeline) {
  pipeline.slabs = 0;
  pipeline.slab_element.reset();
  pipeline.device.reset();
  return pipeline;
}

}  // namespace

std::vector<BatchSize> warm_up_sizes(const Welcome& pipeline) {
  std::vector<std::uint32_t> rows = pipeline.row_buckets;
  if (rows.empty()) rows = {1, pipeline.rows};
  rows.erase(std::ranges::unique(rows).begin(), rows.end());
  std::vector<BatchSize> sizes;
  for (auto width = pipeline.width_buckets.rbegin(); width != pipeline.width_buckets.rend();
       ++width)
    if (*width > pipeline.context)  // no row fits into a narrower one
      for (auto each = rows.rbegin(); each != rows.rend(); ++each) sizes.push_back({*each, *width});
  return sizes;
}

struct WarmUp::Impl {
  Impl(const Welcome& of, const std::string& device_name)
      : pipeline(without_slabs(of)), slabs(pipeline, FileDescriptor()), device(device_name) {
    device.attach(pipeline, 1, {});
  }

  HandedBatch message() {
    const BatchSize& size = sizes.at(next);
    HandedBatch batch;
    batch.id = BatchId{++next};
    batch.rows = size.rows;
    batch.width = size.width;
    batch.closed = batch.copied = Clock::now();
    RowEntry row = row_in(pipeline, size.width);
    for (std::uint32_t i = 0; i < size.rows; ++i) {
      row.stream = stream_of(i);
      row.slot = i % pipeline.slots;
      batch.framed.push_back(row);
      batch.opened.push_back(
          {.stream = row.stream, .slot = row.slot, .name = "warm-up", .options = {}});
    }
    zeros.resize(std::size_t{size.rows} * size.width * pipeline.frames.bytes());
    batch.tensor = zeros;
    return batch;
  }

  const Welcome pipeline;
  const std::vector<BatchSize> sizes = warm_up_sizes(pipeline);
  std::size_t next = 0;
  std::vector<std::byte> zeros;
  MappedSlabs slabs;
  WorkerDevice device;  // closed before the slabs, which it reads
};

WarmUp::WarmUp(const Welcome& pipeline, const std::string& device)
    : impl_(std::make_unique<Impl>(pipeline, device)) {}
WarmUp::~WarmUp() = default;
WarmUp::WarmUp(WarmUp&&) noexcept = default;
WarmUp& WarmUp::operator=(WarmUp&&) noexcept = default;

std::optional<WorkerBatch> WarmUp::next() {
  if (impl_->next == impl_->sizes.size()) return std::nullopt;
  auto batch = impl_->slabs.make_batch(impl_->message());
  if (!batch) throw WorkerError("the service described impossible batches");
  batch->set_taken(Clock::now());
  on_device(impl_->device, [&](DeviceReader& reader) {
    const SlabRef& slab = batch->slab();
    batch->set_device(reader.take(slab.index, slab.shape, slab.memory));
  });
  return batch;
}

void WarmUp::use_on(const WorkerBatch& batch, DeviceStream stream) {
  on_device(impl_->device,
            [&](DeviceReader& reader) { reader.use_on(batch.slab().index, stream); });
}

void WarmUp::done(WorkerBatch& batch) {
  on_device(impl_->device, [&](DeviceReader& reader) { reader.give_back(batch.slab().index); });
  impl_->slabs.release(batch.slab());
  (void)batch.release();
}

const Welcome& WarmUp::pipeline() const { return impl_->pipeline; }
int WarmUp::ordinal() const { return impl_->device.ordinal(); }

}  // namespace millrace
