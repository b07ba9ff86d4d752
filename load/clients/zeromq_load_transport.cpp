// SPDX-License-Identifier: Apache-2.0
#include "load/clients/zeromq_load_transport.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <variant>

#include "base/time.h"
#include "chunker/row.h"
#include "load/clients/service_endpoint.h"
#include "transport/net/limits.h"
#include "transport/net/peer_address.h"

namespace millrace::load {

namespace cp = client_protocol;

namespace {

// The service is lost if it sends nothing for this time.
constexpr Duration silence = std::chrono::seconds(30);
constexpr std::uint64_t max_clients = std::uint64_t{1} << 24;

}  // namespace

ZeromqLoadTransport::ZeromqLoadTransport(const ServiceUrl& service, std::string token,
                                         StreamRequest request, std::uint32_t clients,
                                         std::size_t frame_bytes)
    : token_(std::move(token)),
      request_(std::move(request)),
      frame_bytes_(frame_bytes),
      dealer_("tcp://" + text_of(find_endpoint(service)), max_service_message, silence),
      streams_(clients),
      decoder_(max_service_message) {}

std::uint64_t ZeromqLoadTransport::number_of(std::uint32_t client) const {
  return streams_[client].generation * max_clients + client;
}

void ZeromqLoadTransport::open(std::uint32_t client, const std::string& name) {
  streams_[client] = {.generation = streams_[client].generation + 1, .open = true};
  const auto given = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
  };
  enqueue(encoder_.encode(cp::Open{.stream = number_of(client),
                                   .pipeline = request_.pipeline,
                                   .id = name,
                                   .format = request_.format,
                                   .rate = request_.rate,
                                   .channels = request_.channels,
                                   .dim = request_.dim,
                                   .options = given(request_.options),
                                   .token = given(token_)}));
}

bool ZeromqLoadTransport::send(std::uint32_t client, Bytes frames) {
  Stream& it = streams_[client];
  const std::uint64_t count = frame_bytes_ > 0 ? frames.size() / frame_bytes_ : 1;
  it.full = it.credit < count;
  if (it.full) return false;
  const cp::Frames message{.stream = number_of(client), .at = it.at, .bytes = frames};
  if (!unsent_.empty() || !dealer_.send(encoder_.encode(message))) {
    it.full = full_ = true;
    return false;
  }
  it.at += count;
  it.credit -= count;
  return true;
}

void ZeromqLoadTransport::end(std::uint32_t client) {
  enqueue(encoder_.encode(cp::End{.stream = number_of(client)}));
}

void ZeromqLoadTransport::disconnect(std::uint32_t client) { streams_[client].open = false; }

void ZeromqLoadTransport::enqueue(Bytes message) {
  if (unsent_.empty() && dealer_.send(message)) return;
  unsent_.emplace_back(text_in(message));
}

bool ZeromqLoadTransport::flush() {
  while (!unsent_.empty() && dealer_.send(bytes_in(unsent_.front()))) unsent_.pop_front();
  return unsent_.empty();
}

void ZeromqLoadTransport::poll(Time until, ClientSink& sink) {
  if (!dealer_.has_events(true, full_ || !unsent_.empty())) {
    std::array<pollfd, 2> wanted{};
    for (std::size_t i = 0; i < wanted.size(); ++i)
      wanted[i] = {.fd = dealer_.descriptors()[i], .events = POLLIN, .revents = 0};
    const Duration left = std::max(Duration::zero(), Duration(until - Clock::now()));
    const timespec time{.tv_sec = left / std::chrono::seconds(1),
                        .tv_nsec = left % std::chrono::seconds(1) / std::chrono::nanoseconds(1)};
    ::ppoll(wanted.data(), wanted.size(), &time, nullptr);
  }
  const auto state = dealer_.process_events();
  while (auto message = dealer_.receive()) handle(message->bytes(), sink);
  if (state == ZeromqDealer::State::ended) return end_all(sink);
  if (flush() && full_) report_writable(sink);
}

void ZeromqLoadTransport::report_writable(ClientSink& sink) {
  full_ = false;
  for (std::uint32_t client = 0; client < streams_.size(); ++client)
    if (streams_[client].open && std::exchange(streams_[client].full, false)) sink.writable(client);
}

void ZeromqLoadTransport::end_all(ClientSink& sink) {
  for (std::uint32_t client = 0; client < streams_.size(); ++client) {
    if (!std::exchange(streams_[client].open, false)) continue;
    if (streams_[client].ready)
      sink.broken(client, dealer_.reason(), Clock::now());
    else
      sink.refused(client, dealer_.reason(), Clock::now());
  }
}

ZeromqLoadTransport::Stream* ZeromqLoadTransport::find(std::uint64_t number,
                                                       std::uint32_t& client) {
  client = static_cast<std::uint32_t>(number % max_clients);
  if (client >= streams_.size() || !streams_[client].open || number != number_of(client))
    return nullptr;
  return &streams_[client];
}

void ZeromqLoadTransport::handle(Bytes bytes, ClientSink& sink) {
  const auto message = decoder_.to_client(bytes);
  if (!message) return;
  const Time now = Clock::now();
  std::uint32_t client = 0;
  if (const auto* ready = std::get_if<cp::Ready>(&*message)) {
    if (Stream* it = find(ready->stream, client)) it->ready = true, sink.opened(client, now);
  } else if (const auto* credit = std::get_if<cp::Credit>(&*message)) {
    if (Stream* it = find(credit->stream, client)) {
      it->credit += credit->frames;
      if (std::exchange(it->full, false)) sink.writable(client);
    }
  } else if (const auto* result = std::get_if<cp::Result>(&*message)) {
    if (find(result->stream, client))
      sink.received(client,
                    {result->seq, result->begin, result->end, (result->flags & flag::gap) != 0,
                     result->kind == Answer::Kind::error, text_in(result->data)},
                    now);
  } else if (const auto* worker = std::get_if<cp::Message>(&*message)) {
    if (find(worker->stream, client)) sink.message(client, worker->number);
  } else if (const auto* rejected = std::get_if<cp::Rejected>(&*message)) {
    if (find(rejected->stream, client)) sink.rejected(client, rejected->frames);
  } else if (const auto* closed = std::get_if<cp::Closed>(&*message)) {
    if (Stream* it = find(closed->stream, client))
      it->open = false, sink.closed(client, StreamTotals{closed->frames, closed->chunks}, now);
  } else if (const auto* error = std::get_if<cp::Error>(&*message)) {
    if (!error->stream) return;
    Stream* it = find(*error->stream, client);
    if (!it) return;
    it->open = false;
    it->ready ? sink.broken(client, error->code, now) : sink.refused(client, error->code, now);
  }
}

}  // namespace millrace::load
