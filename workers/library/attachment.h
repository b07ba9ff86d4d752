// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/answer.h"
#include "base/time.h"
#include "schemas/worker_codec.h"
#include "schemas/worker_messages.h"
#include "workers/library/device.h"
#include "workers/library/interruption.h"
#include "workers/library/link.h"
#include "workers/library/lost_states.h"
#include "workers/library/mapped_slabs.h"
#include "workers/library/worker.h"

namespace millrace {

// What a Worker is made of. The thread that waits in next_until reads the socket itself, so that
// a batch costs one wake-up; while it is away a second thread reads, so that the service is heard
// and its end is seen, and sends the heartbeats. They share the connection, and hence a mutex:
// two queues would cost a second wake-up for each batch.
//
// Threads: as Worker says.
class Attachment {
 public:
  Attachment(const std::string& url, const WorkerSettings& settings,
             const std::function<void()>& meanwhile);

  std::optional<WorkerBatch> next_until(Time deadline);
  void use_on(const WorkerBatch& batch, DeviceStream stream);
  void done(WorkerBatch& batch, std::span<const Answer> answers,
            std::span<const Answer> mark_answers);
  void fail(WorkerBatch& batch, const std::string& why);
  void bye();
  void close();
  void interrupt() noexcept { interruption_.set(); }
  bool ended() const;
  std::uint32_t company() const;
  const worker_protocol::Welcome& welcome() const { return welcome_; }
  const WorkerDevice& device() const { return device_; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Taken {
    BatchId id;
    Time at;
  };

  void read(Time now);
  void take(worker_protocol::ToWorker message);
  void take(worker_protocol::HandedBatch batch);
  bool has_arrived(Lock& lock);
  void take_on_device(WorkerBatch& batch);
  template <class Does>
  void on_device(Does does);
  std::optional<WorkerError> lose_after_failure(Lock& lock, const WorkerError& reason);
  WorkerBatch take_first(Lock& lock);
  std::string in_hand() const;
  void say_bye();
  void send(Lock& lock, Bytes message);
  void lose(const WorkerError& reason);
  bool over() const { return lost_ || closed_; }
  void beat(const std::stop_token& stop);
  void send_heartbeat(Bytes heartbeat);

  const WorkerSettings settings_;
  WorkerDevice device_;
  LostStates lost_states_;  // of the thread that takes batches and gives them back
  Interruption interruption_;
  WorkerLink link_;
  const worker_protocol::Welcome welcome_;

  mutable std::mutex mutex_;  // guards everything below, and link_
  MappedSlabs slabs_;
  // What the device has of the slabs goes before they do, and before the service sees us gone.
  struct GivenBack {
    WorkerDevice& device;
    ~GivenBack() { device.leave(); }
  } given_back_{device_};
  worker_protocol::Encoder encoder_;
  // Vectors, for they are as short as the credits.
  std::vector<WorkerBatch> ready_;   // received, not taken
  std::vector<Taken> taken_;         // and not done
  std::optional<BatchId> received_;  // the last one
  std::uint32_t company_ = 0;
  bool waiting_ = false;             // a thread is in next_until and reads
  bool leaving_ = false;             // we said Bye
  bool ending_ = false;              // the service said Bye
  bool closed_ = false;              // and the connection is gone, or we ended it
  std::optional<WorkerError> lost_;  // why it is gone otherwise

  std::condition_variable_any stopping_;
  std::jthread heart_;  // the last: it ends before what it uses
};

}  // namespace millrace
