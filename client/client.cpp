// SPDX-License-Identifier: Apache-2.0
#include "client/client.h"

#include "client/internal/client_thread.h"

namespace millrace {

Client::Client(const std::string& url, const ClientSettings& settings, const ServiceAccess& access)
    : thread_(std::make_unique<ClientThread>(url, settings, access)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

ClientStream Client::start(const StreamRequest& request) {
  return ClientStream(thread_->open(request));
}

ClientStream Client::open(const StreamRequest& request) {
  ClientStream stream = start(request);
  (void)stream.next();  // Opened; else it throws
  return stream;
}

int Client::descriptor() { return thread_->changes().descriptor(); }
std::vector<std::uint64_t> Client::changed() { return thread_->changes().take(); }

}  // namespace millrace
