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

#include "base/answer.h"
#include "base/frame_type.h"
#include "base/time.h"
#include "schemas/worker_protocol.h"
#include "workers/library/worker_batch.h"

namespace millrace {

// Prints that a worker waits for its service.
void print_wait(const std::string& why, Duration wait);

// What a worker says of itself.
struct WorkerSettings {
  std::string pipeline = "default";
  std::string name = {};      // for logs; empty: the program's name and process id
  std::uint32_t credits = 2;  // batches that it takes before the first is done: the next is
                              // built while this one computes
  // Where it computes: host, cuda (the first device), or cuda:N as this process counts them.
  std::string device = "host";
  bool watch = false;  // copies of the rows that others take: no slots, none to answer,
                       // and some are lost when it is slow
  bool alone = false;  // says bye() as soon as another worker takes batches
  // For how long the constructor waits for a service that does not listen yet. `on_wait` is called
  // once when that begins, with the reason; by default it prints a line on standard error.
  Duration wait = std::chrono::seconds(30);
  std::function<void(const std::string& why, Duration wait)> on_wait = print_wait;
  worker_protocol::Heartbeats heartbeats = {};  // shorter ones are for tests
};

// The service could not be reached, refused the worker, or is gone.
class WorkerError : public std::runtime_error {
 public:
  explicit WorkerError(const std::string& what, std::string code = {})
      : std::runtime_error(what), code_(std::move(code)) {}

  // Where the service refused or cut the worker, why: a code of docs/worker_protocol.md. Else
  // empty.
  const std::string& code() const { return code_; }

 private:
  std::string code_;
};

// No service listens at the url.
class ServiceAbsent : public WorkerError {
 public:
  using WorkerError::WorkerError;
};

// A process's end of the worker protocol: takes the batches of a pipeline and gives them back done.
//
//   Worker worker("", {.pipeline = "vad"});
//   while (auto batch = worker.next()) {
//     std::vector<Answer> answers = …;           // one for each of batch->framed(), or none
//     worker.done(*batch, answers);
//   }
//
// A stream's state belongs to its slot, and must be fresh where flags has RESET. Batches are given
// back in the order in which they were taken.
//
// On a device, batches become tensors of it, on the worker's own streams:
//
//   worker.use_on(*batch, stream);             // what is put on the stream from here on finds it
//   model<<<…, stream>>>(batch->device()->tensor, …);
//   worker.done(*batch, answers);              // may come before the stream has done all that
//
// A thread of its own sends heartbeats and reads while nobody waits in next(), so a model may
// compute as long as it likes within the time that answers are due. Attaching again after an
// error or an end is a new Worker. Destroying one without bye() is, for the service, a lost
// worker.
//
// next, next_until, use_on and done: confined to one thread. Everything else: thread-safe.
class Worker {
 public:
  // `url` is "unix:PATH", or "tcp://HOST:PORT" of a service on another machine: nothing else
  // differs then. Empty: $MILLRACE_WORKERS, or where a service on this machine listens unless told
  // otherwise. Throws WorkerError, and std::invalid_argument for what is no url of a service.
  // Waits for the service, at most 10 s until it is connected and 10 s for its answer, and calls
  // `meanwhile` at least every 100 ms: what that throws ends the attempt, and leaves here. While a
  // host's name is looked up nothing is called.
  explicit Worker(
      const std::string& url = "", const WorkerSettings& settings = {},
      const std::function<void()>& meanwhile = [] {});
  ~Worker();
  Worker(Worker&&) noexcept;
  Worker& operator=(Worker&&) noexcept;

  // The next batch, oldest first. Nothing: the service ended the connection as agreed (ended() is
  // true), or interrupt() was called. Throws WorkerError when the service is lost.
  std::optional<WorkerBatch> next() { return next_until(Time::max()); }
  // Nothing also when no batch came until then.
  std::optional<WorkerBatch> next_until(Time deadline);

  // Must be called for each stream that reads the batch on the device. Nothing on the host. Throws
  // WorkerError when the device fails.
  void use_on(const WorkerBatch& batch, DeviceStream stream);

  // Gives the batch back; it and its arrays are invalid afterwards. An answer for each of its
  // framed() rows or none at all, and likewise for marks(). What is called JSON or text and is
  // not, the service takes for an error of that row. Throws std::invalid_argument
  // where the counts are wrong or the answers are longer than 64 MiB together, std::logic_error
  // where the order is wrong, WorkerError when the service is lost.
  void done(WorkerBatch& batch, std::span<const Answer> answers = {},
            std::span<const Answer> mark_answers = {});

  // Gives a batch back that could not be computed: each of its rows, marker rows included, gets the
  // error `why`, which the service logs. `why` is cut to longest_error, or to its share of 64 MiB.
  // The states of its streams may be half updated, so the next row with frames in each of their
  // slots carries RESET here (in a batch that is taken from now on), whether the service asks for
  // it or not; its reason is worker_lost. Throws as done() does.
  static constexpr std::size_t longest_error = 1000;  // bytes
  void fail(WorkerBatch& batch, const std::string& why);

  // No new streams: the service moves those that are here to other workers, where there are any,
  // and ends the connection when none is left. Batches come until then.
  void bye();

  // Ends the connection now; batches that were not taken are gone. Without a bye() that is for the
  // service a lost worker. The arrays of batches stay readable as long as this object lives.
  void close();

  // Makes next() return; the next call of it if none waits. Also for signal handlers.
  void interrupt() noexcept;

  // No batch will come any more.
  bool ended() const;

  // Others that take batches of this pipeline, by what the service said last.
  std::uint32_t company() const;

  // Fixed while attached.
  std::uint32_t slots() const;        // places for state; padding rows have slot = slots
  std::uint32_t rows() const;         // of a batch at most
  std::uint32_t width() const;        // columns at most
  std::uint32_t values() const;       // per column: channels of audio, dim of features
  Element dtype() const;              // of the tensor
  double rate() const;                // frames per second
  const FrameType& frames() const;    // all four
  const std::string& chunk() const;   // the pipeline's chunk rule, a JSON object
  const std::string& device() const;  // host, or cuda:N
  int ordinal() const;                // of the CUDA device; -1: the host

 private:
  std::unique_ptr<class Attachment> attachment_;
};

}  // namespace millrace
