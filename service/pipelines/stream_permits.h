// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/ids.h"
#include "base/time.h"
#include "streams/stream_table.h"
#include "transport/access/client_access.h"

namespace millrace {

// The credentials by which the streams of one io thread are open. If the credential of a stream has
// expired, or is revoked by a reload, the stream ends with `unauthenticated`, also while it waits
// for its client. Its client receives `goaway` some time before a credential expires.
//
// Table and access outlive it. Confined to the thread.
class StreamPermits {
 public:
  static constexpr std::chrono::seconds notice{30};

  StreamPermits(const StreamTable& streams, const ClientAccess& access)
      : streams_(streams), access_(access) {}

  // The stream is open by this credential, and no longer by an earlier one.
  void set(StreamId stream, const Credential& credential, const Grant& grant);
  void remove(StreamId stream);

  // Ends the streams whose credentials have expired. Call it about once a second. `wall`: the time
  // since 1970.
  void check(Duration wall, Time now);
  // Ends the streams whose credentials count no longer: the rules were replaced.
  void recheck(Time now);

 private:
  struct Permit {
    Credential credential;
    const Tenant* tenant = nullptr;
    std::optional<Duration> until = {};
    std::optional<Duration> due = {};  // when its entry in due_ is
  };

  void wait(StreamId stream, Permit& permit, std::optional<Duration> due);
  void end(StreamId stream, std::string_view why, Time now) const;

  const StreamTable& streams_;
  const ClientAccess& access_;
  std::unordered_map<StreamId, Permit> permits_;  // without the streams that need no credential
  std::set<std::pair<Duration, StreamId>> due_;   // `goaway`, and then the end
};

}  // namespace millrace
