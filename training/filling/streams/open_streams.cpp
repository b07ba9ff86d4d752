// SPDX-License-Identifier: Apache-2.0
#include "training/filling/streams/open_streams.h"

#include <algorithm>
#include <utility>

namespace millrace::training {

OpenStreams::OpenStreams(const Catalog& catalog, StreamFunction* function, std::uint32_t slots,
                         std::size_t threads)
    : catalog_(catalog),
      function_(function),
      slots_(slots),
      threads_(threads),
      places_(slots > 0 ? slots : std::max<std::size_t>(16, most_streams / threads)),
      ahead_(std::max<std::size_t>(16, most_streams / threads), most_memory / threads) {}

// Copies differ only where a function changes them.
StreamCopy OpenStreams::copy_of(const PlannedRow& row, std::uint64_t epoch) const {
  return {epoch, row.stream, function_ ? row.copy : 0};
}

// With slots, copies of a stream may be open in several slots.
StreamCopy OpenStreams::key_of(const PlannedRow& row, std::uint64_t epoch) const {
  return slots_ > 0 ? StreamCopy{epoch, row.stream, row.copy} : copy_of(row, epoch);
}

std::size_t OpenStreams::place_of(const PlannedRow& row) const {
  return slots_ > 0 ? row.slot : row.stream / threads_ % places_.size();
}

bool OpenStreams::together(const PlannedRow& one, const PlannedRow& other) const {
  return place_of(one) != place_of(other);
}

bool OpenStreams::is_open(const PlannedRow& row, std::uint64_t epoch) const {
  const std::optional<OpenStream>& open = places_[place_of(row)].stream;
  const bool begins = slots_ > 0 && row.opens;
  return open && open->stream() == copy_of(row, epoch) && !begins;
}

std::uint64_t OpenStreams::good_frames(const PlannedRow& row, std::uint64_t epoch) {
  std::optional<OpenStream>& open = places_[place_of(row)].stream;
  if (!open || open->stream() != copy_of(row, epoch)) return 0;
  (void)open->check_until(row.frame + row.row.size + row.row.right);
  return open->good();
}

Result<OpenStream*, ReadError> OpenStreams::find(const PlannedRow& row, std::uint64_t epoch) {
  Place& place = places_[place_of(row)];
  if (slots_ == 0) close_unused(place);
  if (!is_open(row, epoch)) {
    close(place);
    auto ahead = ahead_.take(key_of(row, epoch));
    auto opened = ahead ? std::move(*ahead) : open(row, epoch);
    if (!opened) return std::move(opened).error();
    place.stream.emplace(std::move(*opened));
  }
  place.used = ++finds_;
  before_ = std::exchange(last_, &place);
  return &*place.stream;
}

Result<OpenStream, ReadError> OpenStreams::open(const PlannedRow& row, std::uint64_t epoch) {
  if (!reader_) reader_ = catalog_.reader();
  return OpenStream::open(catalog_, *reader_, function_, copy_of(row, epoch));
}

bool OpenStreams::opens(const PlannedRow& row, std::uint64_t epoch) const {
  return row.opens && !is_open(row, epoch) && !ahead_.has(key_of(row, epoch));
}

void OpenStreams::open_ahead(const PlannedRow& row, StreamsAhead::Step needed) {
  auto opened = open(row, needed.first);
  if (opened) opened->read_ahead(row.frame - row.row.left, row.row.window());
  ahead_.add(key_of(row, needed.first), needed, std::move(opened));
}

void OpenStreams::close_if_ended(const PlannedRow& row) {
  if (slots_ > 0 && row.row.is(flag::end | flag::abort)) close(places_[row.slot]);
}

void OpenStreams::close(Place& place) {
  memory_ -= std::exchange(place.memory, 0);
  place.stream.reset();
}

void OpenStreams::count(Place& place) {
  memory_ -= place.memory;
  place.memory = place.stream ? place.stream->memory() : 0;
  memory_ += place.memory;
}

// Only the last two streams can have more memory than before: the companions of a row are read
// after the frames of the next one.
void OpenStreams::close_unused(const Place& wanted) {
  for (Place* const place : {before_, last_})
    if (place) count(*place);
  while (memory_ > most_memory) {
    Place* unused = nullptr;
    for (Place& place : places_)
      if (place.memory > 0 && &place != last_ && &place != &wanted &&
          (!unused || place.used < unused->used))
        unused = &place;
    if (!unused) return;
    close(*unused);
  }
}

}  // namespace millrace::training
