// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "base/event.h"
#include "base/message_room.h"
#include "base/trigger.h"
#include "schemas/json_text.h"
#include "schemas/text.h"
#include "schemas/wire.h"
#include "schemas/worker_codec.h"
#include "schemas/worker_values.h"
#include "worker_generated.h"

namespace millrace::worker_protocol {
namespace {

std::optional<std::vector<DeviceHandle>> read_handles(const flatbuffers::Vector<std::uint8_t>* in,
                                                      std::uint32_t count) {
  std::vector<DeviceHandle> handles(count);
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(handles));
  if (in->size() != bytes.size()) return std::nullopt;
  std::ranges::copy(wire::bytes_of(in), bytes.begin());
  return handles;
}

// The handles of this number of slabs.
std::optional<DeviceHandles> read(const wire::DeviceSlabs& in, std::uint32_t slabs) {
  const auto memory = read_handles(in.memory(), 1);
  auto copied = read_handles(in.copied(), slabs);
  auto finished = read_handles(in.finished(), slabs);
  if (!memory || !copied || !finished) return std::nullopt;
  return DeviceHandles{memory->front(), std::move(*copied), std::move(*finished)};
}

// Returns an empty vector unless these ascend from 1 or more to `most`.
std::vector<std::uint32_t> read_buckets(const flatbuffers::Vector<std::uint32_t>& in,
                                        std::uint32_t most) {
  std::vector<std::uint32_t> buckets(in.begin(), in.end());
  const bool ascend =
      std::ranges::adjacent_find(buckets, std::ranges::greater_equal()) == buckets.end();
  if (buckets.empty() || buckets.front() < 1 || buckets.back() != most || !ascend) return {};
  return buckets;
}

constexpr std::uint8_t the_tensor = 255;  // slab_element if the slabs have the tensor itself

std::optional<Welcome> read(const wire::Welcome& in) {
  const bool possible =
      fits(in.slots(), 1, max_count) && fits(in.rows(), 1, max_count) &&
      fits(in.width(), 1, max_count) && in.element() < count_of<Element>() &&
      fits(in.values(), 1, 65535) && std::isfinite(in.rate()) && in.rate() > 0 &&
      in.chunk()->size() <= max_chunk && is_json(wire::view(in.chunk())) &&
      in.slabs() <= max_credits + 1 &&
      (in.slabs() == 0 || in.slab_bytes() <= max_position / in.slabs()) &&
      (in.slab_element() < count_of<Element>() || in.slab_element() == the_tensor) &&
      in.context() <= in.width();
  if (!possible) return std::nullopt;
  Welcome welcome{.version = in.version(),
                  .slots = in.slots(),
                  .rows = in.rows(),
                  .width = in.width(),
                  .frames = {.element = static_cast<Element>(in.element()),
                             .values = in.values(),
                             .rate = in.rate(),
                             .features = in.features()},
                  .chunk = in.chunk()->str(),
                  .slabs = in.slabs(),
                  .slab_bytes = in.slab_bytes(),
                  .context = in.context(),
                  .repeat = in.repeat(),
                  .width_buckets = read_buckets(*in.width_buckets(), in.width())};
  if (welcome.width_buckets.empty() || welcome.width_buckets.size() > max_width_buckets)
    return std::nullopt;
  if (in.row_buckets()) {
    welcome.row_buckets = read_buckets(*in.row_buckets(), in.rows());
    if (welcome.row_buckets.empty()) return std::nullopt;
  }
  if (in.slab_element() != the_tensor)
    welcome.slab_element = static_cast<Element>(in.slab_element());
  if (in.device()) {
    welcome.device = read(*in.device(), in.slabs());
    if (!welcome.device) return std::nullopt;
  }
  if (in.plan()) {
    if (in.plan()->size() > max_plan || !is_json_object(wire::view(in.plan()))) return std::nullopt;
    welcome.plan = in.plan()->str();
  }
  return welcome;
}

bool possible(const wire::RowEntry& row, std::uint32_t width) {
  const std::uint64_t window = std::uint64_t{row.left()} + row.size() + row.right();
  return row.flags() <= all_flags && row.reason() < count_of<ResetReason>() &&
         ((row.flags() & reset_flag) != 0) == (row.reason() != 0) && row.mark() >= -1 &&
         row.mark() <= max_mark && row.begin() <= max_position && row.gap() <= max_position &&
         row.left() <= row.begin() && window <= width;
}

using Rows = flatbuffers::Vector<const wire::RowEntry*>;

// Reads rows with frames, or marker rows. A vector must not have both.
bool read_rows(const Rows* in, bool frames, std::uint32_t width, std::vector<RowEntry>& out) {
  out.clear();
  if (!in) return true;
  if (!wire::is_aligned(*in)) return false;
  out.reserve(in->size());
  for (const wire::RowEntry* row : *in) {
    if (!possible(*row, width) || (row->size() > 0) != frames) return false;
    out.push_back({.stream = StreamId{row->stream()},
                   .seq = row->seq(),
                   .begin = row->begin(),
                   .gap = row->gap(),
                   .mark = row->mark(),
                   .slot = row->slot(),
                   .left = row->left(),
                   .size = row->size(),
                   .right = row->right(),
                   .flags = row->flags(),
                   .reason = row->reason()});
  }
  return true;
}

// Names in a plan are often the paths of files, which may have any bytes.
bool is_valid_name(std::string_view name, bool plan) {
  return plan ? !name.empty() && name.size() <= max_catalog_name : is_stream_name(name);
}

bool read_opened(const wire::Batch& in, std::vector<OpenedStream>& out) {
  const bool plan = in.steps() > 0;
  const std::size_t longest = plan ? max_meta : max_options;
  out.clear();
  Pieces pieces(wire::text_of(in.opened_text()));
  const auto* const rooms = in.rooms();
  if (rooms && (!in.opened() || rooms->size() != in.opened()->size())) return false;
  if (!in.opened()) return pieces.empty();
  if (!wire::is_aligned(*in.opened())) return false;
  for (const wire::OpenedStream* stream : *in.opened()) {
    const auto name = pieces.next(stream->name_length());
    const auto options = pieces.next(stream->options_length());
    if (!name || !options || !is_valid_name(*name, plan) || options->size() > longest ||
        !(options->empty() || is_json(*options)))
      return false;
    out.push_back({.stream = StreamId{stream->stream()},
                   .slot = stream->slot(),
                   .name = std::string(*name),
                   .options = std::string(*options)});
    if (!rooms) continue;
    out.back().room = rooms->Get(static_cast<flatbuffers::uoffset_t>(out.size() - 1));
    if (out.back().room > stream_room) return false;
  }
  return pieces.empty();
}

bool read_posts(const wire::Batch& in, std::vector<Post>& out) {
  out.clear();
  Pieces pieces(wire::text_of(in.posts_text()));
  if (!in.posts()) return pieces.empty();
  if (!wire::is_aligned(*in.posts())) return false;
  for (const wire::PostEntry* post : *in.posts()) {
    const auto data = pieces.next(post->length());
    if (!data || post->seq() > max_position || post->position() > max_position ||
        !(post->set() ? is_json_object(*data) : is_json(*data)))
      return false;
    out.push_back({.stream = StreamId{post->stream()},
                   .seq = post->seq(),
                   .position = post->position(),
                   .data = std::string(*data),
                   .set = post->set()});
  }
  return pieces.empty();
}

// A batch of a plan is a step of its epoch; other batches have zeros.
bool has_position(const wire::Batch& in) {
  const bool none = in.epoch() == 0 && in.step() == 0 && in.steps() == 0 && in.body() == 0;
  return none || (in.epoch() <= max_position && in.step() < in.steps() &&
                  in.steps() <= max_position && in.body() >= 1 && in.body() <= in.width());
}

bool read(const wire::Batch& in, HandedBatch& out) {
  out.id = BatchId{in.id()};
  out.slab = in.slab();
  out.rows = in.rows();
  out.width = in.width();
  out.trigger = in.trigger();
  out.closed = from_wire(in.closed());
  out.copied = from_wire(in.copied());
  out.tensor = wire::bytes_of(in.tensor());
  out.epoch = in.epoch();
  out.step = in.step();
  out.steps = in.steps();
  out.body = in.body();
  out.failed = wire::view(in.failed());
  return in.trigger() < count_of<Trigger>() && has_position(in) && in.rows() <= max_count &&
         in.width() <= max_count && read_rows(in.framed(), true, in.width(), out.framed) &&
         read_rows(in.marks(), false, in.width(), out.marks) && read_opened(in, out.opened) &&
         read_posts(in, out.posts) && out.framed.size() <= in.rows() &&
         (out.failed.empty() || is_json(without_bytes(out.failed))) &&
         (out.framed.size() + out.marks.size() > 0 || (in.steps() > 0 && in.rows() > 0));
}

std::optional<Refused> read(const wire::Refused& in) {
  if (!is_printable(wire::view(in.code()), max_name) ||
      !is_printable(wire::view(in.message()), max_refusal))
    return std::nullopt;
  Refused refused{.code = in.code()->str(), .message = in.message()->str()};
  if (in.details()) {
    if (in.details()->size() > max_details ||
        !is_json_object(without_bytes(wire::view(in.details()))))
      return std::nullopt;
    refused.details = in.details()->str();
  }
  return refused;
}

}  // namespace

Result<ToWorker, WireError> Decoder::to_worker(Bytes message) {
  if (message.size() > max_size_) return WireError::too_long;
  const auto* root =
      wire::verified<wire::WorkerMessage>(aligned_.of(message), wire::WorkerMessageIdentifier());
  if (!root) return WireError::malformed;
  switch (root->body_type()) {
    case wire::WorkerBody::Welcome:
      return checked<Welcome, ToWorker>(read(*root->body_as_Welcome()));
    case wire::WorkerBody::Refused:
      return checked<Refused, ToWorker>(read(*root->body_as_Refused()));
    case wire::WorkerBody::Heartbeat: return ToWorker(Heartbeat{});
    case wire::WorkerBody::Bye: return ToWorker(Bye{});
    case wire::WorkerBody::Company: {
      const wire::Company& in = *root->body_as_Company();
      return ToWorker(
          Company{.workers = in.workers(), .moved = in.moved(), .waiting = in.waiting()});
    }
    case wire::WorkerBody::Room: {
      const wire::Room& room = *root->body_as_Room();
      if (room.bytes() > stream_room) return WireError::meaning;
      return ToWorker(Room{StreamId{room.stream()}, room.bytes()});
    }
    case wire::WorkerBody::Batch: {
      HandedBatch batch = fresh_batch();
      if (!read(*root->body_as_Batch(), batch)) return WireError::meaning;
      return ToWorker(std::move(batch));
    }
    default: return WireError::unknown;
  }
}

HandedBatch Decoder::fresh_batch() {
  if (batches_.empty()) return {};
  HandedBatch batch = std::move(batches_.back());
  batches_.pop_back();
  return batch;
}

}  // namespace millrace::worker_protocol
