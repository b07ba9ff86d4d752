// SPDX-License-Identifier: Apache-2.0
#include "client/internal/websocket_transport.h"

#include <exception>
#include <utility>

#include "client/internal/websocket_stream.h"
#include "transport/net/spawn.h"

namespace millrace {

WebsocketTransport::WebsocketTransport(Executor executor, CheckedAccess access,
                                       const ClientSettings& settings)
    : executor_(std::move(executor)),
      access_(std::move(access)),
      settings_(settings),
      resumes_(settings.resume) {}
WebsocketTransport::~WebsocketTransport() = default;

void WebsocketTransport::open(std::shared_ptr<StreamPipe> pipe, StreamRequest request) {
  const std::uint64_t number = pipe->number();
  auto stream = std::make_unique<WebsocketStream>(executor_, access_, std::move(pipe),
                                                  std::move(request), settings_, resumes_);
  spawn(executor_, serve(*streams_.emplace(number, std::move(stream)).first->second));
}

Task<> WebsocketTransport::serve(WebsocketStream& stream) {
  try {
    co_await stream.run();
  } catch (const std::exception& failure) {  // no memory or descriptor
    stream.pipe().fail(StreamFailure::lost(failure.what()));
  }
  streams_.erase(stream.pipe().number());
}

void WebsocketTransport::woken(std::uint64_t stream) {
  const auto found = streams_.find(stream);
  if (found != streams_.end()) found->second->woken();
}

void WebsocketTransport::stop() {
  for (auto& [number, stream] : streams_) stream->stop();
}

}  // namespace millrace
