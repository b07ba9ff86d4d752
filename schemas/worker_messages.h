// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/answer.h"
#include "base/bytes.h"
#include "base/device_handles.h"
#include "base/frame_type.h"
#include "base/ids.h"
#include "base/time.h"

namespace millrace {

// The messages between the service and a worker (docs/worker_protocol.md), as plain structs. The
// codec (worker_codec.h) turns them into FlatBuffers and back.
namespace worker_protocol {

inline constexpr std::uint32_t version = 1;
inline constexpr std::uint32_t max_credits = 1024;

// worker -> service, first.
struct Hello {
  std::uint32_t version = worker_protocol::version;
  std::string pipeline = "default";
  std::string name;           // for logs
  std::uint32_t credits = 2;  // batches that it takes before the first is done
  std::string device = "host";
  bool watch = false;  // wants copies of rows only: no slots, no credits, may lose some
  bool alone = false;  // leaves when another takes batches; of several such, the first stays
  bool operator==(const Hello&) const = default;
};

// service -> worker. With slabs comes the descriptor of the shared memory that holds them, slab i
// at i * slab_bytes.
struct Welcome {
  std::uint32_t version = worker_protocol::version;
  std::uint32_t slots = 0;  // state places; padding rows have slot = slots
  std::uint32_t rows = 0;   // of a batch at most
  std::uint32_t width = 0;  // columns at most
  FrameType frames;         // of the tensor: `element` is the pipeline's dtype
  std::string chunk;        // the chunk rule, a JSON object
  std::uint32_t slabs = 0;  // 0: tensors come inline
  std::uint64_t slab_bytes = 0;
  // What lies in them where it is not the tensor: rows of frames of which the worker's device makes
  // it, with so many columns before the body, and frames or zeros around the windows.
  std::optional<Element> slab_element = {};
  std::uint32_t context = 0;
  bool repeat = false;
  std::optional<DeviceHandles> device = {};  // their copies on the worker's device
  bool operator==(const Welcome&) const = default;
};

// A row of a batch, in the order of the tensor; marker rows behind. Padding rows are not listed.
struct RowEntry {
  StreamId stream{};
  std::uint64_t seq = 0;
  std::uint64_t begin = 0;
  std::uint64_t gap = 0;
  std::int64_t mark = -1;  // -1: none
  std::uint32_t slot = 0;
  std::uint32_t left = 0, size = 0, right = 0;
  std::uint8_t flags = 0;
  std::uint8_t reason = 0;
  bool operator==(const RowEntry&) const = default;
};

// A stream of which this worker sees its first row in this batch.
struct OpenedStream {
  StreamId stream{};
  std::uint32_t slot = 0;
  std::string name;
  std::string options;  // the client's JSON object, or empty
  bool operator==(const OpenedStream&) const = default;
};

// service -> worker.
struct HandedBatch {
  BatchId id{};
  std::uint32_t slab = 0;  // where its tensor lies; unused where `tensor` holds it
  std::uint32_t rows = 0;  // of the tensor, padding rows included
  std::uint32_t width = 0;
  std::uint8_t trigger = 0;  // why it closed: full, complete, deadline, drain
  Time closed, copied;
  std::vector<RowEntry> framed;
  std::vector<RowEntry> marks;
  std::vector<OpenedStream> opened;
  Bytes tensor;  // inline, without slabs: a view; of a decoded batch, of the message it came in
};

// worker -> service, in the order of the batches.
struct Done {
  BatchId batch{};
  std::vector<Answer> answers;       // of the framed rows in order; empty: none for any
  std::vector<Answer> mark_answers;  // of the marker rows; empty: none for any
  Time taken, done;                  // on the worker's clock; meaningless from another machine
  bool operator==(const Done&) const = default;
};

// Both ways, when nothing else was sent for a while.
struct Heartbeat {
  bool operator==(const Heartbeat&) const = default;
};

// worker -> service: give me no new streams, move mine, then end the connection.
// service -> worker: no batch will come any more.
struct Bye {
  bool operator==(const Bye&) const = default;
};

// worker -> service: the device slabs of the welcome cannot be opened, it copies from the others.
struct Unmapped {
  bool operator==(const Unmapped&) const = default;
};

// service -> worker: how many others take batches of this pipeline, after Welcome and whenever it
// changes. To a worker that is here only while it is alone, those like it that came later are none.
struct Company {
  std::uint32_t workers = 0;
  bool operator==(const Company&) const = default;
};

// service -> worker, then the connection ends.
struct Refused {
  std::string code;
  std::string message;
  bool operator==(const Refused&) const = default;
};

using ToService = std::variant<Hello, Done, Heartbeat, Bye, Unmapped>;
using ToWorker = std::variant<Welcome, HandedBatch, Heartbeat, Bye, Company, Refused>;

}  // namespace worker_protocol
}  // namespace millrace
