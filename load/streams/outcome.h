// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "load/streams/histogram.h"
#include "load/streams/schedule.h"
#include "load/streams/stream_place.h"

namespace millrace::load {

// Times by the window in which their packet was due.
class Windows {
 public:
  explicit Windows(const Schedule& schedule) : schedule_(schedule), all_(schedule.windows()) {}

  void add(Time due, Time now) {
    if (schedule_.counts(due)) all_[schedule_.window_of(due)].add(now - due);
  }
  void add(const Windows& other) {
    for (std::size_t i = 0; i < all_.size(); ++i) all_[i].add(other.all_[i]);
  }

  const std::vector<Histogram>& each() const { return all_; }
  Histogram all() const {
    Histogram sum;
    for (const Histogram& one : all_) sum.add(one);
    return sum;
  }

 private:
  const Schedule& schedule_;
  std::vector<Histogram> all_;
};

// What the clients sent and were told. Counts are of the whole run, times of what counts.
struct ClientOutcome {
  explicit ClientOutcome(const Schedule& schedule) : lateness(schedule), results(schedule) {}

  std::uint64_t opened = 0;                      // streams
  std::map<std::string, std::uint64_t> refused;  // of them, by what they were told
  std::uint64_t ended = 0;                       // closed by the service after an end
  std::uint64_t vanished = 0;                    // on purpose
  std::uint64_t broken = 0;                      // any other end
  std::string why;                               // of one of those

  std::uint64_t packets = 0;
  std::uint64_t frames_ended = 0;  // sent by the streams that ended
  std::uint64_t lost = 0;          // of them, more or fewer than the service says it had or shed
  std::uint64_t unanswered = 0;    // rows of the streams that ended, as the service counts them
  std::uint64_t answered = 0;      // results
  std::uint64_t wrong = 0;         // of them, another row's
  std::uint64_t repeated = 0;      // results twice or out of order
  std::uint64_t shed = 0;          // frames that the service says it lost
  std::uint64_t failed = 0;        // results that are an error

  Windows lateness;                        // from due to given to the socket: the generator's own
  Windows results;                         // from due to read by the client
  std::map<StreamPlace, Time> vanishings;  // in the time that counts

  void add(const ClientOutcome& other);
};

// What the worker of the benchmark saw.
struct WorkerOutcome {
  explicit WorkerOutcome(const Schedule& schedule) : rows(schedule) {}

  std::uint64_t batches = 0;
  std::uint64_t framed = 0;        // rows with frames
  std::uint64_t lost = 0;          // frames before a row that were to come in one and did not
  std::uint64_t shed = 0;          // frames before a row that it says are lost
  std::uint64_t repeated = 0;      // rows twice or out of order
  std::uint64_t damaged = 0;       // rows with other values than were sent
  std::uint64_t unknown = 0;       // rows of streams that are not of this run
  std::uint64_t ended = 0;         // streams with END
  std::uint64_t unended = 0;       // streams with neither END nor ABORT
  std::uint64_t frames_ended = 0;  // of the streams with END

  Windows rows;                        // from due to taken by the worker
  std::map<StreamPlace, Time> aborts;  // when ABORT was taken
  // Where all streams send at once, by the packet's number: from due until its last row was taken.
  std::unordered_map<std::uint64_t, Duration> bursts;
};

}  // namespace millrace::load
