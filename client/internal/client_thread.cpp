// SPDX-License-Identifier: Apache-2.0
#include "client/internal/client_thread.h"

#include <boost/asio/post.hpp>
#include <stdexcept>
#include <utility>

#include "base/quiet_thread.h"
#include "client/internal/websocket_transport.h"
#include "client/internal/zeromq_transport.h"
#include "transport/websocket/client.h"

namespace millrace {
namespace {

std::unique_ptr<Transport> transport_for(const std::string& url, Executor executor,
                                         const ClientSettings& settings,
                                         const ServiceAccess& access) {
  if (auto service = parse_service_url(url))
    return std::make_unique<WebsocketTransport>(
        std::move(executor), CheckedAccess(std::move(*service), access), settings);
  if (auto service = parse_tcp_url(url))
    return std::make_unique<ZeromqTransport>(std::move(executor), std::move(*service),
                                             tcp_token(access), settings);
  throw std::invalid_argument(wrong_url(url));
}

}  // namespace

ClientThread::ClientThread(const std::string& url, const ClientSettings& settings,
                           const ServiceAccess& access)
    : settings_(settings),
      work_(context_.get_executor()),
      transport_(transport_for(url, context_.get_executor(), settings_, access)),
      thread_(quiet_thread("millrace-client", [this] { context_.run(); })) {}

ClientThread::~ClientThread() {
  net::post(context_, [this] {
    transport_->stop();
    work_.reset();
  });
}

std::shared_ptr<StreamPipe> ClientThread::open(StreamRequest request) {
  const std::uint64_t number = ++opened_;
  const StreamPipe::Bounds bounds{settings_.unsent, settings_.untaken};
  const auto wake = [this, number] {
    net::post(context_, [this, number] { transport_->woken(number); });
  };
  const bool packets = request.format == "opus";
  auto pipe =
      std::make_shared<StreamPipe>(number, bounds, changes_, wake,
                                   packets ? StreamPipe::Input::packet : StreamPipe::Input::bytes);
  net::post(context_, [this, pipe, request = std::move(request)]() mutable {
    transport_->open(std::move(pipe), std::move(request));
  });
  return pipe;
}

}  // namespace millrace
