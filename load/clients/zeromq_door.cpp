// SPDX-License-Identifier: Apache-2.0
#include "load/clients/zeromq_door.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <sstream>
#include <utility>
#include <variant>

#include "base/time.h"
#include "chunker/row.h"
#include "load/clients/service_place.h"
#include "transport/net/limits.h"

namespace millrace::load {

namespace cp = client_protocol;

namespace {

constexpr Duration silence = std::chrono::seconds(30);  // of the service
constexpr std::uint64_t places_at_most = std::uint64_t{1} << 24;

std::string endpoint_of(const Tcp::endpoint& service) {
  std::ostringstream text;
  text << "tcp://" << service;
  return text.str();
}

}  // namespace

ZeromqDoor::ZeromqDoor(const ServiceUrl& service, StreamRequest request, std::uint32_t places,
                       std::size_t frame_bytes)
    : request_(std::move(request)),
      frame_bytes_(frame_bytes),
      dealer_(endpoint_of(find_place(service)), longest_told, silence),
      places_(places),
      decoder_(longest_told) {}

std::uint64_t ZeromqDoor::number_of(std::uint32_t place) const {
  return places_[place].life * places_at_most + place;
}

void ZeromqDoor::open(std::uint32_t place, const std::string& name) {
  places_[place] = {.life = places_[place].life + 1, .open = true};
  const auto options =
      request_.options.empty() ? std::nullopt : std::optional<std::string_view>(request_.options);
  give(encoder_.encode(cp::Open{.stream = number_of(place),
                                .pipeline = request_.pipeline,
                                .id = name,
                                .format = request_.format,
                                .rate = request_.rate,
                                .channels = request_.channels,
                                .dim = request_.dim,
                                .options = options}));
}

bool ZeromqDoor::send(std::uint32_t place, Bytes frames) {
  Place& it = places_[place];
  const std::uint64_t count = frames.size() / frame_bytes_;
  it.full = it.credit < count;
  if (it.full) return false;
  const cp::Frames message{.stream = number_of(place), .at = it.at, .bytes = frames};
  if (!unsent_.empty() || !dealer_.send(encoder_.encode(message))) {
    it.full = full_ = true;
    return false;
  }
  it.at += count;
  it.credit -= count;
  return true;
}

void ZeromqDoor::end(std::uint32_t place) {
  give(encoder_.encode(cp::End{.stream = number_of(place)}));
}

void ZeromqDoor::vanish(std::uint32_t place) { places_[place].open = false; }

void ZeromqDoor::give(Bytes message) {
  if (unsent_.empty() && dealer_.send(message)) return;
  unsent_.emplace_back(reinterpret_cast<const char*>(message.data()), message.size());
}

bool ZeromqDoor::bring_out() {
  while (!unsent_.empty() && dealer_.send(std::as_bytes(std::span(unsent_.front()))))
    unsent_.pop_front();
  return unsent_.empty();
}

void ZeromqDoor::poll(Time until, ClientSink& sink) {
  if (!dealer_.is_news(true, full_ || !unsent_.empty())) {
    std::array<pollfd, 2> wanted{};
    for (std::size_t i = 0; i < wanted.size(); ++i)
      wanted[i] = {.fd = dealer_.descriptors()[i], .events = POLLIN, .revents = 0};
    const Duration left = std::max(Duration::zero(), Duration(until - Clock::now()));
    const timespec time{.tv_sec = left / std::chrono::seconds(1),
                        .tv_nsec = left % std::chrono::seconds(1) / std::chrono::nanoseconds(1)};
    ::ppoll(wanted.data(), wanted.size(), &time, nullptr);
  }
  const auto state = dealer_.follow();
  while (auto message = dealer_.receive()) take(message->bytes(), sink);
  if (state == ZeromqDealer::State::ended) return end_all(sink);
  if (bring_out() && full_) tell_of_room(sink);
}

void ZeromqDoor::tell_of_room(ClientSink& sink) {
  full_ = false;
  for (std::uint32_t place = 0; place < places_.size(); ++place)
    if (places_[place].open && std::exchange(places_[place].full, false)) sink.has_room(place);
}

void ZeromqDoor::end_all(ClientSink& sink) {
  for (std::uint32_t place = 0; place < places_.size(); ++place) {
    if (!std::exchange(places_[place].open, false)) continue;
    if (places_[place].ready)
      sink.broken(place, dealer_.reason(), Clock::now());
    else
      sink.refused(place, dealer_.reason(), Clock::now());
  }
}

ZeromqDoor::Place* ZeromqDoor::find(std::uint64_t number, std::uint32_t& place) {
  place = static_cast<std::uint32_t>(number % places_at_most);
  if (place >= places_.size() || !places_[place].open || number != number_of(place)) return nullptr;
  return &places_[place];
}

void ZeromqDoor::take(Bytes message, ClientSink& sink) {
  const auto said = decoder_.to_client(message);
  if (!said) return;
  const Time now = Clock::now();
  std::uint32_t place = 0;
  if (const auto* ready = std::get_if<cp::Ready>(&*said)) {
    if (Place* it = find(ready->stream, place)) it->ready = true, sink.opened(place, now);
  } else if (const auto* credit = std::get_if<cp::Credit>(&*said)) {
    if (Place* it = find(credit->stream, place)) {
      it->credit += credit->frames;
      if (std::exchange(it->full, false)) sink.has_room(place);
    }
  } else if (const auto* result = std::get_if<cp::Result>(&*said)) {
    if (find(result->stream, place))
      sink.told(place,
                {result->seq,
                 result->begin,
                 result->end,
                 (result->flags & flag::gap) != 0,
                 result->kind == Answer::Kind::error,
                 {reinterpret_cast<const char*>(result->data.data()), result->data.size()}},
                now);
  } else if (const auto* rejected = std::get_if<cp::Rejected>(&*said)) {
    if (find(rejected->stream, place)) sink.rejected(place, rejected->frames);
  } else if (const auto* closed = std::get_if<cp::Closed>(&*said)) {
    if (Place* it = find(closed->stream, place))
      it->open = false, sink.closed(place, closed->frames, closed->chunks, now);
  } else if (const auto* error = std::get_if<cp::Error>(&*said)) {
    if (!error->stream) return;
    Place* it = find(*error->stream, place);
    if (!it) return;
    it->open = false;
    it->ready ? sink.broken(place, error->code, now) : sink.refused(place, error->code, now);
  }
}

}  // namespace millrace::load
