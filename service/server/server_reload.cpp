// SPDX-License-Identifier: Apache-2.0
// Reload of the configuration at SIGHUP (docs/operations.md).
#include <chrono>
#include <utility>

#include "base/file_descriptor.h"
#include "service/config/descriptors.h"
#include "service/config/memory_bounds.h"
#include "service/config/reload.h"
#include "service/log/wall_clock.h"
#include "service/server/server.h"

namespace millrace {

namespace {

std::string listed(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + text;
  return list;
}

}  // namespace

Task<> Server::handle_hangups() {
  for (;;) {
    const auto [failed, number] = co_await hangups_.async_wait(no_throw);
    if (failed) co_return;
    if (draining_) {  // the supervisor has received STOPPING, which READY would revoke
      reload();
      continue;
    }
    supervisor_.reloading();
    supervisor_.ready(reload() ? "serving" : "serving; the last reload was refused");
  }
}

// Reads the file on the main thread: no stream waits for this thread.
bool Server::reload() {
  if (configuration_.file.empty()) {
    log_.info("reload ignored", {{"why", "the service was started without a configuration file"}});
    return true;
  }
  const AccessRules rules = admission_.gate.access.rules();
  const AccessFiles in_use{.tokens = rules.tokens,
                           .tenants = rules.tenants,
                           .resume_keys = admission_.resume_keys.get(),
                           .tls = admission_.gate.tls.get(),
                           .admin_tls = admin_tls_.get()};
  auto reloaded = millrace::reload(configuration_, in_use);
  stats_.reloaded.set(reloaded.has_value());
  if (!reloaded) {
    log_.warning("reload refused", {{"why", reloaded.error()}});
    return false;
  }
  apply(std::move(reloaded->access));  // first: it may fail
  apply(std::move(reloaded->configuration));
  if (const std::string& why = reloaded->fewer_connections; !why.empty())
    log_.warning("connection limit lowered", {{"why", why}});
  log_.info("configuration reloaded", {{"changed", listed(reloaded->changed)}});
  return true;
}

// Does not fail, so that a reload applies completely. If more than a lowered limit is in use, it
// stays in use.
void Server::apply(Configuration configuration) noexcept {
  const Options& options = configuration.options;
  const LimitOptions& limits = options.limits;
  const std::uint64_t descriptors = descriptor_limit();
  admission_.connections.set_limit(limits.connections);
  admission_.gate.waiting.set_limit(waiting_sockets(limits.connections));
  admission_.gate.sockets.set_limit(sockets_for(limits.connections, descriptors));
  admission_.gate.zeromq_connections = zeromq_connections(descriptors, limits.connections);
  slab_bytes_.set_limit(limits.slab_bytes);
  device_watch_.devices().set_slab_bytes(options.gpu.slab_bytes);
  remote_budgets_.unread.set_limit(unread_bytes(limits));
  writer_.set_options(options.log);
  stats_.buffer_limit.set(static_cast<std::int64_t>(memory_bounds(options).frames));
  record_load();
  configuration_ = std::move(configuration);
}

void Server::apply(AccessFiles access) {
  admission_.gate.access.replace({std::move(access.tokens), std::move(access.tenants)});
  // Streams whose credentials count no longer end.
  for (const auto& thread : threads_)
    thread->post([&admission = thread->admission()] { admission.permits().recheck(Clock::now()); });
  if (access.tls) stats_.certificate_expires.set(access.tls->expires().count());
  admission_.gate.tls.replace(std::move(access.tls));
  admin_tls_.replace(std::move(access.admin_tls));
  if (access.resume_keys) admission_.resume_keys.replace(std::move(access.resume_keys));
}

void Server::record_load() {
  stats_.reloaded.set(1);
  stats_.reloaded_at.set(std::chrono::duration_cast<std::chrono::seconds>(wall_clock()).count());
}

}  // namespace millrace
