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
#include "workers/library/slot_streams.h"
#include "workers/library/worker.h"
#include "workers/plan/step_order.h"

namespace millrace {

// The implementation of Worker. A thread that waits, for a batch or for room, reads the socket
// itself, so that a batch needs one wake-up. If no thread waits, a thread of this class reads, to
// notice the end of the service. It also sends the heartbeats. The two threads share the connection
// under a mutex: with queues between them, each batch would need a second wake-up.
//
// Thread-safe as Worker is.
class Attachment {
 public:
  Attachment(const std::string& url, const WorkerSettings& settings,
             const std::function<void()>& meanwhile);

  std::optional<WorkerBatch> next_until(Time deadline);
  void use_on(const WorkerBatch& batch, DeviceStream stream);
  void done(WorkerBatch& batch, std::span<const Answer> answers,
            std::span<const Answer> mark_answers);
  void fail(WorkerBatch& batch, const std::string& why);
  bool send(StreamId stream, const Answer& message, Time deadline);
  void answer(StreamId stream, std::uint64_t seq, const Answer& answer);
  void bye();
  void close();
  void interrupt() noexcept { interruption_.set(); }
  bool ended() const;
  worker_protocol::Company company() const;
  const worker_protocol::Welcome& welcome() const { return welcome_; }
  const WorkerDevice& device() const { return device_; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Taken {
    BatchId id;
    Time at;
  };

  // False for a watcher and a trainer.
  bool answers_rows() const { return !settings_.watch && !settings_.trainer; }
  // When the service counts as lost if it sends nothing more.
  Time silent_at() const { return link_.last_received() + settings_.heartbeats.silence; }
  SlotStreams::Entry& entry_of(StreamId stream);
  void wait_for_news(Lock& lock, Time until);
  void read(Time now);
  void receive_all();
  bool has_room() const;
  void receive(worker_protocol::ToWorker message);
  void receive_batch(worker_protocol::HandedBatch batch);
  bool has_arrived(Lock& lock);
  bool must_throw() const;
  void take_on_device(WorkerBatch& batch);
  void give_back_on_device(const WorkerBatch& batch);
  template <class Action>
  void on_device(Action action);
  std::optional<WorkerError> mark_lost_after_failure(Lock& lock, const WorkerError& reason);
  WorkerBatch take_first(Lock& lock);
  std::string held_batches_text() const;
  void send_bye();
  void send(Lock& lock, Bytes message);
  void send_or_throw(Lock& lock, Bytes message);  // StreamGone if the message was not sent
  void mark_lost(const WorkerError& reason);
  void mark_send_failed(const WorkerError& error);
  bool has_ended() const { return lost_ || closed_; }
  void run_heartbeat(const std::stop_token& stop);
  void send_heartbeat(Bytes heartbeat);

  const WorkerSettings settings_;
  WorkerDevice device_;
  LostStates lost_states_;  // used by the thread that takes and returns batches
  Interruption interruption_;
  WorkerLink link_;
  const worker_protocol::Welcome welcome_;
  std::optional<StepOrder> order_;  // for a trainer

  mutable std::mutex mutex_;  // guards everything below, and link_
  MappedSlabs slabs_;
  // Closes the device's slabs before the mapped slabs, and before the connection ends.
  struct DeviceGuard {
    WorkerDevice& device;
    ~DeviceGuard() { device.release(); }
  } device_guard_{device_};
  worker_protocol::Encoder encoder_;
  // Vectors, because they are not longer than the credits.
  std::vector<WorkerBatch> ready_;     // received and not taken
  std::vector<Taken> taken_;           // taken and not done
  std::optional<BatchId> last_batch_;  // id of the last batch
  worker_protocol::Company company_;   // as received last
  SlotStreams streams_;
  bool reading_ = false;             // a thread waits for the socket, and then reads
  bool taking_ = false;              // a thread waits in next_until()
  bool leaving_ = false;             // this worker sent Bye
  bool ending_ = false;              // the service sent Bye
  bool closed_ = false;              // the connection ended as agreed, or by close()
  std::optional<WorkerError> lost_;  // the reason why it ended otherwise

  std::condition_variable read_;  // a thread has read the socket
  std::condition_variable_any stopping_;
  std::jthread heartbeat_thread_;  // last member: it ends before the members that it uses
};

}  // namespace millrace
