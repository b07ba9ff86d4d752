// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/budget.h"
#include "schemas/worker_codec.h"
#include "schemas/worker_protocol.h"
#include "training/serving/attached_trainer.h"
#include "training/serving/served_plan.h"
#include "training/serving/skipped_streams.h"
#include "training/serving/stats.h"
#include "training/serving/trainer_maker.h"
#include "training/serving/trainer_ranks.h"
#include "transport/net/net.h"
#include "workers/hub/mailbox.h"
#include "workers/hub/peer_process.h"
#include "workers/hub/slab_threads.h"
#include "workers/hub/worker_host.h"

namespace millrace::training {

// The threads of a PlanHost: one makes the feeds of trainers, and one ends them. Each of them may
// wait for files.
inline constexpr std::size_t plan_host_threads = 1;  // for SlabThreads, beside the first one

struct PlanHostSettings {
  ServedPlan served;
  WorkerLog log;                                // called on the home thread
  worker_protocol::Heartbeats heartbeats = {};  // only tests use shorter ones
};

// A plan's end of the worker protocol: gives each trainer the batches of its rank, ahead, up to its
// credits. Answers have no time limit. A failure of one trainer or of its files ends only its
// connection.
//
// Confined to the home thread, which runs `home`.
class PlanHost final : public WorkerHost {
 public:
  // `home`, `bytes` and `stats` must outlive it, and so must the run of `home`. It must outlive
  // `threads`, a SlabThreads with plan_host_threads.
  PlanHost(net::io_context& home, PlanHostSettings settings, Budget& bytes, SlabThreads& threads,
           TrainingStats& stats);
  ~PlanHost() override;

  void hello(WorkerConnection& link, const worker_protocol::Hello& hello) noexcept override;
  void receive(WorkerConnection& link, worker_protocol::ToService message) noexcept override;
  void lost(WorkerConnection& link, WorkerFailure why,
            LossCause cause = LossCause::worker) noexcept override;
  void protocol_error(WorkerConnection& link, std::string_view what) noexcept override;
  void no_room(WorkerConnection& link, std::string_view what) noexcept override;
  Result<worker_protocol::Welcome, worker_protocol::Refused> description() const override;
  const WorkerLog& log() const override { return settings_.log; }
  std::size_t batch_bytes() const override { return batch_bytes_; }

  // Sends Bye to all trainers and ends their connections. New trainers are refused then.
  void stop() noexcept;

 private:
  struct Made {
    std::uint64_t id = 0;
    Result<MadeTrainer, worker_protocol::Refused> made;
  };

  void order(std::uint64_t id, const worker_protocol::Hello& hello, bool local);
  void on_made(Made& made);
  void on_filled(std::uint64_t id);
  void receive_done(AttachedTrainer& trainer, const worker_protocol::Done& done);
  // Hands over the batches that are filled, up to the trainer's credits.
  void serve(AttachedTrainer& trainer, Time now);
  // Returns false if the trainer was removed.
  bool deliver(AttachedTrainer& trainer, FillResult& result, Time now);
  void hand_over(AttachedTrainer& trainer, FilledBatch batch, Time now);
  void finish(const AttachedTrainer& trainer);
  // Sends Bye, and forgets the trainer.
  void dismiss(const AttachedTrainer& trainer);
  void note_skipped(const AttachedTrainer& trainer, const std::vector<DataError>& failed);
  void note_shortened(const AttachedTrainer& trainer, const TextError& error);
  void fail(AttachedTrainer& trainer, const DataError& error);
  void refuse(AttachedTrainer& trainer, const worker_protocol::Refused& why);
  AttachedTrainer* find(const WorkerConnection& link);
  void remove(const AttachedTrainer& trainer);
  void free(std::unique_ptr<TrainerFeed> feed) noexcept;
  void update_position();
  void set_timer(Time now);
  void on_timer() noexcept;

  const PlanHostSettings settings_;
  const std::size_t batch_bytes_;
  SlabThreads& threads_;
  TrainingStats& stats_;
  TrainerMaker maker_;  // used by the first thread
  Mailbox<std::uint64_t> filled_;
  Mailbox<Made> made_;
  PeerProcesses processes_;
  TrainerRanks ranks_;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, AttachedTrainer> trainers_;
  std::unordered_map<const WorkerConnection*, std::uint64_t> by_link_;
  SkippedStreams skipped_;
  std::set<std::uint64_t> logged_, shortened_;  // streams in the log
  // Epochs and streams in the metric, by rank: those of the last two epochs.
  std::map<std::uint32_t, std::set<std::pair<std::uint64_t, std::uint64_t>>> counted_;
  worker_protocol::Encoder encoder_;
  Timer timer_;
  Time timer_at_ = Time::max();
  bool stopped_ = false;
};

}  // namespace millrace::training
