// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "load/streams/histogram.h"
#include "load/streams/load_stream_id.h"
#include "load/streams/schedule.h"

namespace millrace::load {

// Times, in one histogram for each window of the schedule. The due time of the packet selects it.
// The schedule must outlive this object. Confined to one thread.
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

// The traffic as seen by the clients. Counts are of the whole run, times of the measured time only.
struct ClientOutcome {
  explicit ClientOutcome(const Schedule& schedule)
      : lateness(schedule),
        results(schedule),
        texts(schedule),
        finals(schedule),
        returns(schedule),
        recoveries(schedule) {}

  std::uint64_t opened = 0;                      // streams
  std::map<std::string, std::uint64_t> refused;  // streams, by the reason
  std::uint64_t ended = 0;                       // streams that the service closed after their end
  std::uint64_t disconnected = 0;                // streams disconnected on purpose
  std::uint64_t broken = 0;                      // streams that ended in any other way
  std::uint64_t cuts = 0;                        // connections that were cut on purpose
  std::uint64_t resumed = 0;                     // connections that continued a stream
  std::uint64_t reopened = 0;  // those that opened a stream anew, without its state
  std::string why;             // reason of one broken stream

  std::uint64_t packets = 0;
  std::uint64_t frames_ended = 0;  // frames sent by the ended streams
  // Difference between frames_ended and the frames that the service reports as received or shed.
  std::uint64_t lost = 0;
  // Rows of the ended streams, as the service counts them, without a result.
  std::uint64_t unanswered = 0;
  std::uint64_t answered = 0;  // results, and texts that do not identify their rows
  std::uint64_t messages = 0;  // messages of the worker
  std::uint64_t wrong = 0;     // results with the answer or position of another row
  std::uint64_t repeated = 0;  // duplicate results or messages, or out of order
  std::uint64_t shed = 0;      // frames that the service reports as a gap
  std::uint64_t failed = 0;    // results that are an error
  std::uint64_t commits = 0;
  std::uint64_t finished = 0;    // commits that the service has finished
  std::uint64_t unfinished = 0;  // commits of the ended streams that it has not finished

  Windows lateness;  // delay of sending after the due time, caused by the generator
  Windows results;   // from the due time until the client read the result
  // Text with an unknown position: from the due time of the packet that was sent last.
  Windows texts;
  Windows finals;      // from the due time of a commit until the client read that it is finished
  Windows returns;     // from a cut until the client read that its stream continues
  Windows recoveries;  // from a cut until the client read the next result
  std::map<LoadStreamId, Time> disconnects;  // in the measured time

  void add(const ClientOutcome& other);
};

// The traffic as seen by the generator's worker.
struct WorkerOutcome {
  explicit WorkerOutcome(const Schedule& schedule) : rows(schedule) {}

  std::uint64_t batches = 0;
  std::uint64_t framed = 0;    // rows with frames
  std::uint64_t closing = 0;   // those of them that are the last row of their stream
  std::uint64_t lost = 0;      // frames missing before a row, without those that its gap reports
  std::uint64_t shed = 0;      // frames that the gap of a row reports
  std::uint64_t repeated = 0;  // duplicate rows, or rows out of order
  // Rows with values that were not sent, with a size not of the rule, or, on a device, with control
  // values that are not those of the message.
  std::uint64_t damaged = 0;
  std::uint64_t unknown = 0;       // rows of streams of another run
  std::uint64_t ended = 0;         // streams with END
  std::uint64_t unended = 0;       // streams with neither END nor ABORT
  std::uint64_t frames_ended = 0;  // frames of the streams with END
  std::uint64_t messages = 0;      // sent to clients
  std::uint64_t unsent = 0;        // messages for which there was no room

  Windows rows;                         // from the due time until the worker took the row
  std::map<LoadStreamId, Time> aborts;  // when ABORT was taken
  // With Phase::step, by the number of the packet: from its due time until its last row was taken.
  std::unordered_map<std::uint64_t, Duration> bursts;
};

}  // namespace millrace::load
