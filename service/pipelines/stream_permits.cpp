// SPDX-License-Identifier: Apache-2.0
#include "service/pipelines/stream_permits.h"

#include <variant>
#include <vector>

namespace millrace {

void StreamPermits::set(StreamId stream, const Credential& credential, const Grant& grant) {
  remove(stream);
  if (std::holds_alternative<std::monostate>(credential)) return;
  Permit& permit = permits_[stream];
  permit = {.credential = credential, .tenant = grant.tenant, .until = grant.until};
  if (grant.until) wait(stream, permit, *grant.until - notice);
}

void StreamPermits::remove(StreamId stream) {
  const auto found = permits_.find(stream);
  if (found == permits_.end()) return;
  wait(stream, found->second, std::nullopt);
  permits_.erase(found);
}

void StreamPermits::wait(StreamId stream, Permit& permit, std::optional<Duration> due) {
  if (permit.due) due_.erase({*permit.due, stream});
  if (due) due_.emplace(*due, stream);
  permit.due = due;
}

void StreamPermits::check(Duration wall, Time now) {
  while (!due_.empty() && due_.begin()->first <= wall) {
    const StreamId stream = due_.begin()->second;
    Permit& permit = permits_.at(stream);
    const bool is_over = *permit.until <= wall;
    wait(stream, permit, is_over ? std::nullopt : permit.until);
    if (is_over)
      end(stream, "the token has expired", now);
    else if (Stream* const live = streams_.find(stream))
      live->goaway();
  }
}

void StreamPermits::recheck(Time now) {
  std::vector<std::pair<StreamId, std::string_view>> revoked;
  for (auto& [stream, permit] : permits_) {
    const auto grant = access_.grant(permit.credential);
    if (!grant || grant->tenant != permit.tenant) {
      revoked.emplace_back(stream, grant ? "the token is of another tenant now" : grant.error());
    } else if (grant->until != permit.until) {
      permit.until = grant->until;
      wait(stream, permit, permit.until ? std::optional(*permit.until - notice) : std::nullopt);
    }
  }
  for (const auto& [stream, why] : revoked) end(stream, why, now);
}

void StreamPermits::end(StreamId stream, std::string_view why, Time now) const {
  if (Stream* const live = streams_.find(stream)) live->fail(ErrorCode::unauthenticated, why, now);
}

}  // namespace millrace
