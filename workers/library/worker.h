// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/answer.h"
#include "base/frame_type.h"
#include "base/row_columns.h"
#include "base/time.h"
#include "schemas/worker_protocol.h"
#include "workers/library/worker_batch.h"

namespace millrace {

// Prints a line on standard error: `why`, and that the worker waits for up to `wait`.
void print_wait(const std::string& why, Duration wait);

// Settings of a worker. `pipeline` and `name` are printable text of at most 256 bytes.
struct WorkerSettings {
  std::string pipeline = "default";  // the pipeline of the service to attach to
  std::string name = {};             // for logs; empty: the program's name and process id
  // Most batches that the worker holds at once, 1 to 1024. With 2, the service builds the next
  // batch while the worker computes.
  std::uint32_t credits = 2;
  // The device on which the model computes: host, cuda (the first device), or cuda:N in the
  // numbering of this process.
  std::string device = "host";
  // The worker only watches: it receives copies of the batches of other workers, has no slots, and
  // sends no answers. If it is slow, it misses batches.
  bool watch = false;
  // The worker calls bye() itself as soon as another worker takes batches of the pipeline. If
  // there are several such workers, the first one stays.
  bool alone = false;
  // The worker is a trainer: it receives the batches of a plan from a server of batches, from this
  // position on. `credits` limits the batches that it keeps. It returns them in any order, without
  // answers and without a time limit.
  std::optional<worker_protocol::TrainerHello> trainer = {};
  // Longest time for which the constructor of Worker waits for a service that does not listen yet.
  Duration wait = std::chrono::seconds(30);
  // Called once when this wait begins, with the reason.
  std::function<void(const std::string& why, Duration wait)> on_wait = print_wait;
  worker_protocol::Heartbeats heartbeats = {};  // only tests use shorter ones
};

// The service could not be reached, refused the worker, or was lost; or the device failed.
class WorkerError : public std::runtime_error {
 public:
  explicit WorkerError(const std::string& what, std::string code = {}, std::string details = {})
      : std::runtime_error(what), code_(std::move(code)), details_(std::move(details)) {}

  // The reason as a code. If the service refused or disconnected the worker: a code of `Refused` in
  // docs/worker_protocol.md. `device` if the worker's own device failed or does not exist. Empty
  // otherwise.
  const std::string& code() const { return code_; }
  // A JSON object of the service, or empty. To a trainer whose stream cannot be delivered: stream,
  // name, epoch and step.
  const std::string& details() const { return details_; }

 private:
  std::string code_, details_;
};

// No service listens at the url.
class ServiceAbsent : public WorkerError {
 public:
  using WorkerError::WorkerError;
};

// A message cannot be sent: its stream has no slot of this worker. It has ended, has moved to
// another worker, or was never here, or the service is lost.
class StreamGone : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Asks the service for the properties of a pipeline before a worker attaches: slots, the shapes and
// the type of batches, the chunk rule. Attaches nothing, and takes no slot. `url`, `settings`
// (pipeline, name, wait and on_wait), `meanwhile` and the errors are as for Worker. The code of the
// error is `version` if the service is too old for this question.
worker_protocol::Welcome describe(
    const std::string& url = "", const WorkerSettings& settings = {},
    const std::function<void()>& meanwhile = [] {});

// A worker's connection to the service: receives the batches of a pipeline and returns them with
// answers.
//
//   Worker worker("", {.pipeline = "vad"});
//   while (auto batch = worker.next()) {
//     std::vector<Answer> answers = …;           // one for each of batch->framed(), or none
//     worker.done(*batch, answers);
//   }
//
// The model keeps one state per slot. The state of a row's slot must be initialized before the row
// if the row's flags have RESET. Batches must be returned in the order in which they were taken.
//
// On a device, the tensor of a batch is in the device's memory and is used on CUDA streams of the
// worker:
//
//   worker.use_on(*batch, stream);             // kernels that are launched later find the batch
//   model<<<…, stream>>>(batch->device()->tensor, …);
//   worker.done(*batch, answers);              // allowed before the kernels have finished
//
// A thread of this class sends heartbeats, and reads from the connection while no thread waits in
// next(). So the model may compute for as long as the pipeline allows (answer_wait).
// After an error or an end, attach again with a new Worker. If a Worker is destroyed without bye(),
// the service counts the worker as lost.
//
// A trainer (WorkerSettings::trainer) that loses its server takes the batches that it has received
// before the loss is thrown.
//
// next(), next_until(), use_on(), done() and fail() are confined to one thread. Everything else is
// thread-safe.
class Worker {
 public:
  // Attaches to the service at `url`: "unix:PATH", or "tcp://HOST:PORT" for a service on another
  // machine, which makes no other difference. Empty: $MILLRACE_WORKERS, or, if that is not set, the
  // default path (docs/worker_protocol.md).
  //
  // Waits up to settings.wait for the service to listen, up to 10 s for the connection, and up to
  // 10 s for the service's answer. Meanwhile it calls `meanwhile` at least every 100 ms, except
  // during a look-up of a host name. An exception of `meanwhile` ends the attempt and is passed on.
  //
  // Throws std::invalid_argument if the url or a setting is invalid, and WorkerError otherwise.
  explicit Worker(
      const std::string& url = "", const WorkerSettings& settings = {},
      const std::function<void()>& meanwhile = [] {});
  ~Worker();
  Worker(Worker&&) noexcept;
  Worker& operator=(Worker&&) noexcept;

  // Waits for the next batch, and takes it. Returns nullopt if the connection has ended as agreed,
  // after bye() or close() or a Bye of the service (ended() is true then), or if interrupt() was
  // called. Throws WorkerError if the service is lost or the device fails.
  std::optional<WorkerBatch> next() { return next_until(Time::max()); }
  // The same, but also returns nullopt if no batch was received before `deadline`.
  std::optional<WorkerBatch> next_until(Time deadline);

  // Makes a CUDA stream wait for the batch. Must be called for each stream that reads the batch on
  // the device, before the read. The stream must live until done(). Does nothing on the host.
  // Throws WorkerError if the device fails.
  void use_on(const WorkerBatch& batch, DeviceStream stream);

  // Returns the batch to the service. The batch and its arrays are invalid afterwards. `answers`
  // has one answer for each of framed(), or is empty; `mark_answers` the same for marks(). If an
  // answer is called JSON or text and is not, the service replaces it by an error of its row. In a
  // pipeline whose workers end segments, an answer with `endpoint` ends the segment of its row, if
  // no LAST row of the stream was cut since then; in mark_answers it has no effect. The answer to a
  // row that is `pending` follows with answer(), after this call.
  //
  // Throws std::invalid_argument if a number of answers is wrong, or if all answers together, with
  // 16 bytes for each, are longer than 64 MiB − 4 KiB. Throws std::logic_error if this is not the
  // oldest batch that was taken (for a trainer: none that it holds), and WorkerError if the service
  // is lost or the device fails.
  void done(WorkerBatch& batch, std::span<const Answer> answers = {},
            std::span<const Answer> mark_answers = {});

  // Returns a batch that could not be computed. The answer to each of its rows, marker rows
  // included, is the error `why`, which the service logs. `why` is cut to longest_error bytes, or
  // to its share of the limit of done(). The states of the batch's slots may be half updated, so in
  // the batches that are taken later, the next row with frames in each of these slots carries RESET
  // with the reason worker_lost, unless it carries RESET already. Throws as done() does.
  static constexpr std::size_t longest_error = 1000;  // bytes
  void fail(WorkerBatch& batch, const std::string& why);

  // Sends a message to the client of a stream that has a slot of this worker, from its first row
  // until its END row is done. The client receives it after the results and messages that were
  // sent before. `message` is json, text or bytes, of at most longest_message bytes
  // (base/message_room.h).
  //
  // The bytes that are not written to the client are limited for each stream (stream_room). Without
  // room for the message, waits until `deadline`, and returns false if it still does not fit, or
  // after interrupt() if no thread waits for a batch. Throws std::invalid_argument for another
  // kind, invalid JSON or text, or a longer message, and StreamGone.
  bool send(StreamId stream, const Answer& message, Time deadline = Time::min());

  // Gives the answer to a row whose answer in done() was `pending`: at most `answer_wait` of the
  // pipeline later, from any thread. Results of later rows of the stream wait for it. After that
  // time the row has failed, and the answer is ignored.
  //
  // Throws std::invalid_argument if the row is not pending, for an answer that is `pending`,
  // invalid or too long; and StreamGone.
  void answer(StreamId stream, std::uint64_t seq, const Answer& answer);

  // Asks the service for no new streams. The service moves this worker's streams to other workers,
  // if there are any, and ends the connection when no stream is left. Until then batches are
  // received.
  void bye();

  // Ends the connection at once. Batches that were received and not taken are dropped. Without a
  // bye() before, the service counts the worker as lost. The arrays of taken batches stay readable
  // as long as this object lives.
  void close();

  // Makes the waiting next() return nullopt; if no thread waits, the next call of it. May be called
  // in a signal handler.
  void interrupt() noexcept;

  // True if no more batches will be received.
  bool ended() const;

  // The number of other workers that take batches of this pipeline, as the service sent it last.
  std::uint32_t company() const;
  // After bye(): how many streams of this worker have moved to other workers since then, and how
  // many it still has. As the service sent it last, every 2 s if it has changed; 0 before.
  std::uint32_t moved_streams() const;
  std::uint32_t waiting_streams() const;

  // Properties of the pipeline, fixed while attached.
  std::uint32_t slots() const;       // states that the model keeps; padding rows have slot = slots
  std::uint32_t rows() const;        // most rows of a batch's tensor
  std::uint32_t width() const;       // most columns of a row; a column is a frame
  std::uint32_t values() const;      // values of a frame: channels of audio, dim of features
  Element dtype() const;             // element type of the tensor
  double rate() const;               // frames per second
  const FrameType& frames() const;   // values, dtype, rate, and whether frames are features
  const std::string& chunk() const;  // the pipeline's chunk rule, a JSON object
  // The rows that batches may have, ascending; the last is rows(). Empty: any number up to rows().
  const std::vector<std::uint32_t>& row_buckets() const;
  // The widths that batches may have, ascending; the last is width().
  const std::vector<std::uint32_t>& width_buckets() const;
  // To a trainer, the plan as a JSON object (docs/worker_protocol.md); empty otherwise.
  const std::string& plan() const;
  RowColumns columns() const;         // where a window lies in its row
  const std::string& device() const;  // host, or cuda:N
  int ordinal() const;                // number of the CUDA device; -1: the host
  // All of them, as from describe(), and the slabs.
  const worker_protocol::Welcome& welcome() const;

 private:
  std::unique_ptr<class Attachment> attachment_;
};

}  // namespace millrace
