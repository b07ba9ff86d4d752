// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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
#include "base/message_room.h"
#include "base/time.h"

namespace millrace {

// The messages between the service and a worker (docs/worker_protocol.md), as plain structs. The
// codec (worker_codec.h) turns them into FlatBuffers and back.
namespace worker_protocol {

inline constexpr std::uint32_t version = 1;
inline constexpr std::uint32_t max_credits = 1024;
inline constexpr std::uint32_t max_width_buckets = 16;

// Limits on texts of a plan, in bytes: Welcome::plan, and the name and meta of an opened stream.
inline constexpr std::size_t max_plan = std::size_t{1} << 20;
inline constexpr std::size_t max_catalog_name = 4096;
inline constexpr std::size_t max_meta = std::size_t{1} << 20;

// The position of a trainer: it gets every `stride`-th step of its rank, from (epoch, step) on.
struct TrainerHello {
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t stride = 1;
  bool resets = false;     // it has lost the states of its slots: its first rows have RESET
  bool plan_only = false;  // it receives no batch: only Welcome, and Bye
  bool operator==(const TrainerHello&) const = default;
};

// worker -> service: the first message.
struct Hello {
  std::uint32_t version = worker_protocol::version;
  std::string pipeline = "default";
  std::string name;           // for logs
  std::uint32_t credits = 2;  // batches that it accepts before the first is done
  std::string device = "host";
  // A watcher: receives only copies of rows, possibly not all; has no slots and no credits.
  bool watch = false;
  // Leaves when another worker is attached; the first of several such workers stays.
  bool alone = false;
  std::optional<TrainerHello> trainer = {};  // only for a server of batches for training
  bool operator==(const Hello&) const = default;
};

// worker -> service: in place of Hello. Asks for the Welcome of a pipeline, and attaches nothing:
// the service ends the connection after its answer.
struct Describe {
  std::uint32_t version = worker_protocol::version;
  std::string pipeline = "default";
  std::string name;  // for logs
  bool operator==(const Describe&) const = default;
};

// service -> worker: the answer to Hello. With slabs, it comes with the descriptor of their shared
// memory, in which slab i is at i * slab_bytes. As the answer to Describe it has no slabs.
struct Welcome {
  std::uint32_t version = worker_protocol::version;
  std::uint32_t slots = 0;  // slots of the worker; padding rows have slot = slots
  std::uint32_t rows = 0;   // most rows of a batch
  std::uint32_t width = 0;  // most columns of a row
  FrameType frames;         // type of the tensor: `element` is the pipeline's dtype
  std::string chunk;        // the chunk rule, a JSON object
  std::uint32_t slabs = 0;  // 0: tensors are in the messages
  std::uint64_t slab_bytes = 0;
  // If given, slabs have rows of frames of this type, from which the worker's device makes the
  // tensor. Nullopt: they have the tensor.
  std::optional<Element> slab_element = {};
  std::uint32_t context = 0;  // columns before a row's body in that tensor
  bool repeat = false;  // the first and last frame fill the columns around a window, not zeros
  std::optional<DeviceHandles> device = {};  // copies of the slabs on the worker's device
  // The widths that batches may have, ascending: 1 to max_width_buckets of them, the last is
  // `width`.
  std::vector<std::uint32_t> width_buckets = {};
  std::string plan = {};  // to a trainer: the plan, a JSON object; empty otherwise
  // The rows that batches may have, ascending: the last is `rows`. Empty: any number up to `rows`,
  // or the service is older than this field.
  std::vector<std::uint32_t> row_buckets = {};
  bool operator==(const Welcome&) const = default;
};

// A row of a batch, with the values of Row (chunker/row.h). Padding rows have no entry.
struct RowEntry {
  StreamId stream{};
  std::uint64_t seq = 0;
  std::uint64_t begin = 0;
  std::uint64_t gap = 0;
  std::int64_t mark = -1;  // -1: no mark
  std::uint32_t slot = 0;
  std::uint32_t left = 0, size = 0, right = 0;
  std::uint8_t flags = 0;
  std::uint8_t reason = 0;
  bool operator==(const RowEntry&) const = default;
};

// A stream whose first row at this worker is in this batch.
struct OpenedStream {
  StreamId stream{};
  std::uint32_t slot = 0;
  std::string name;
  std::string options;  // the client's JSON object, or empty; in a plan, the `meta` of the stream
  std::uint32_t room = stream_room;  // for messages to its client (base/message_room.h)
  bool operator==(const OpenedStream&) const = default;
};

// A message of a client to the worker, which a row of the batch carries.
struct Post {
  StreamId stream{};
  std::uint64_t seq = 0;       // number of the row
  std::uint64_t position = 0;  // position of its stream when it arrived
  std::string data;            // a JSON value
  bool set = false;            // it is an object with new values of the stream's options
  bool operator==(const Post&) const = default;
};

// service -> worker: a batch is handed over.
struct HandedBatch {
  BatchId id{};
  std::uint32_t slab = 0;    // index of the slab with its tensor; unused with `tensor`
  std::uint32_t rows = 0;    // rows of the tensor, with padding rows
  std::uint32_t width = 0;   // one of Welcome::width_buckets
  std::uint8_t trigger = 0;  // why it closed, a Trigger
  Time closed, copied;
  std::vector<RowEntry> framed;  // rows with frames, in the order of the tensor
  std::vector<RowEntry> marks;   // marker rows
  std::vector<OpenedStream> opened;
  std::vector<Post> posts = {};  // those of a stream in the order in which they were sent
  Bytes tensor;  // without slabs: a view, in a decoded batch of its message; companions follow it
  // For batches of a plan; 0 otherwise.
  std::uint64_t epoch = 0, step = 0;
  std::uint64_t steps = 0;  // number of steps of the epoch
  std::uint32_t body = 0;   // most frames of a body: determines the entries of companions
  // Streams that are skipped from this batch on: a JSON array of objects with stream, name,
  // message, fault, epoch and step. Empty: there are none.
  std::string failed;
};

// worker -> service: a batch is done. Batches are returned in their order; by trainers in any.
struct Done {
  BatchId batch{};
  std::vector<Answer> answers;       // answers to the framed rows in order; empty: no row has one
  std::vector<Answer> mark_answers;  // answers to the marker rows; empty: no row has one
  Time taken, done;                  // on the worker's clock; meaningless from another machine
  bool operator==(const Done&) const = default;
};

// worker -> service: a message for the client of a stream that has a slot of this worker. It uses
// the stream's room (base/message_room.h).
struct Send {
  StreamId stream{};
  std::uint64_t seq = 0;  // number of the stream's newest row that the worker has taken
  Answer message;         // json, text or bytes, of at most longest_message bytes
  bool operator==(const Send&) const = default;
};

// worker -> service: the answer to a row whose answer in Done was `pending`.
struct LateAnswer {
  StreamId stream{};
  std::uint64_t seq = 0;
  Answer answer;  // not pending
  bool operator==(const LateAnswer&) const = default;
};

// service -> worker: messages to the client of this stream were written, whose room is free again.
// Without bytes: the stream, to which the worker sent a message, is not at this worker any more.
struct Room {
  StreamId stream{};
  std::uint32_t bytes = 0;
  bool operator==(const Room&) const = default;
};

// Both ways: sent when nothing else was sent for a while.
struct Heartbeat {
  bool operator==(const Heartbeat&) const = default;
};

// worker -> service: the service must send no new streams, move the worker's streams, and then end
// the connection. service -> worker: no further batch follows.
struct Bye {
  bool operator==(const Bye&) const = default;
};

// worker -> service: it cannot open the device slabs of Welcome, and copies from the other slabs.
struct Unmapped {
  bool operator==(const Unmapped&) const = default;
};

// service -> worker: other workers are attached. Sent after Welcome and when the number changes.
struct Company {
  // Number of other workers that accept new streams of this pipeline. For an `alone` worker,
  // without the `alone` workers that attached later.
  std::uint32_t workers = 0;
  // To a worker that sent Bye: its streams that have moved to other workers since then, and those
  // that it still has.
  std::uint32_t moved = 0, waiting = 0;
  bool operator==(const Company&) const = default;
};

// service -> worker: the answer to Hello, or the reason why the connection ends.
struct Refused {
  std::string code;
  std::string message;
  std::string details = {};  // a JSON object, or empty; to a trainer: the stream and the step
  bool operator==(const Refused&) const = default;
};

using ToService = std::variant<Hello, Done, Heartbeat, Bye, Unmapped, Send, LateAnswer, Describe>;
using ToWorker = std::variant<Welcome, HandedBatch, Heartbeat, Bye, Company, Refused, Room>;

}  // namespace worker_protocol
}  // namespace millrace
