// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "base/ids.h"
#include "streams/resume/detached_list.h"
#include "streams/resume/resumable_stream.h"

namespace millrace {

// The resumable streams of one io thread. Those that wait for a connection are also in the list of
// the process. Confined to the thread.
class ResumableStreams final : public ResumeHome {
 public:
  // Streams wait for `window`. `thread`: the index of this thread. `waiting` outlives it.
  ResumableStreams(Duration window, std::uint32_t thread, DetachedList& waiting)
      : window_(window), thread_(thread), waiting_(waiting) {}
  ~ResumableStreams();  // aborts all

  ResumableStream& add(std::unique_ptr<ResumableStream> stream);
  ResumableStream* find(const StreamKey& key) const;
  // The same, for a client that continues it. A stream whose place was given to another one ends.
  ResumableStream* claim(const StreamKey& key);

  // Ends the streams that have waited for the whole window, and notes in the list whose slots are
  // free. Call it about once a second.
  void sweep(Time now);
  // Ends the stream if it has waited since then.
  void end_waiting(const DetachedList::Entry& entry);
  // The stream that has waited for the longest time among those that are over; null if no stream
  // is. Its client loses nothing if it is removed: its token opens the stream anew.
  ResumableStream* oldest_over() const;
  // The service stops: ends the waiting streams. From now on a stream ends with its connection.
  void drain();

  bool keeps(ResumableStream& stream, Time now) override;
  void returned(ResumableStream& stream) override;
  void remove(ResumableStream& stream) override;

 private:
  DetachedList::Entry entry_of(const ResumableStream& stream) const;

  const Duration window_;
  const std::uint32_t thread_;
  DetachedList& waiting_;
  std::map<StreamKey, std::unique_ptr<ResumableStream>> streams_;
  std::map<std::pair<Time, StreamKey>, ResumableStream*> detached_;  // oldest first
  bool draining_ = false;
};

}  // namespace millrace
