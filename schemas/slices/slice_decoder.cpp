// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>

#include "base/enum_names.h"
#include "recording_generated.h"
#include "schemas/slices/event_numbers.h"
#include "schemas/slices/slice.h"
#include "schemas/text.h"
#include "schemas/wire.h"

namespace millrace::recording {
namespace {

using Kind = Event::Kind;

constexpr std::uint64_t max_position = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t max_mark = (std::uint64_t{1} << 53) - 1;
constexpr std::uint64_t max_rows = std::uint64_t{1} << 53;
constexpr std::size_t max_size = std::size_t{1} << 30;  // below the limit of the library, 2 GiB
constexpr std::uint8_t closings = 6;                    // StreamClosing (streams/stats/stats.h)

bool is_number(Kind kind, std::uint64_t number) {
  switch (kind) {
    case Kind::frames: return number <= max_position;
    case Kind::gap: return number >= 1 && number <= max_position;
    case Kind::size: return number >= 1 && number <= std::numeric_limits<std::uint32_t>::max();
    case Kind::flush: return number <= max_mark + 1;
    case Kind::open: return number <= max_rows;
    case Kind::message:
    case Kind::set: return number >= 1 && number <= max_position;
    default: return number == 0;
  }
}

// Gives the numbers of the events, in their order.
class Numbers {
 public:
  explicit Numbers(const recorded::Slice& slice) : large_(slice.large()) {}

  // nullopt if the number is missing.
  std::optional<std::uint64_t> next(const recorded::EventEntry& entry) {
    const std::uint64_t number = std::uint64_t{entry.high()} << 32 | entry.low();
    if (number < large_number) return number;
    if (!large_ || used_ == large_->size()) return std::nullopt;
    return large_->Get(used_++);
  }
  bool all_used() const { return used_ == (large_ ? large_->size() : 0); }

 private:
  const flatbuffers::Vector<std::uint64_t>* large_;
  flatbuffers::uoffset_t used_ = 0;
};

// nullopt if the entry is not an event. `begin` is the position before the slice.
std::optional<RecordedEvent> event_of(const recorded::EventEntry& in, std::uint64_t begin,
                                      Numbers& numbers) {
  if (in.kind() >= count_of<Kind>() || in.cause() >= count_of<Cause>()) return std::nullopt;
  Event event{.kind = static_cast<Kind>(in.kind()), .cause = static_cast<Cause>(in.cause())};
  const auto number = numbers.next(in);
  if (!number || !is_number(event.kind, *number)) return std::nullopt;
  if (event.kind == Kind::open) {
    event.count = begin;
    event.rows = *number;
  } else if (event.kind != Kind::flush) {
    event.count = *number;
  } else if (*number > 0) {
    event.mark = *number - 1;
  }
  return RecordedEvent{.event = event, .at = from_wire(in.at())};
}

// Checks the order of the events of a slice, and counts their frames.
class Order {
 public:
  explicit Order(const recorded::Slice& slice)
      : number_(slice.first_event()), position_(slice.begin()) {}

  // False if this event cannot be the next one.
  bool add(const Event& event) {
    if (over_ || (event.kind == Kind::open) != (number_ == 0)) return false;
    over_ = event.kind == Kind::end || event.kind == Kind::abort;
    ++number_;
    if (event.kind != Kind::frames && event.kind != Kind::gap) return true;
    if (event.count > max_position - position_) return false;
    position_ += event.count;
    if (event.kind == Kind::frames) frames_ += event.count;
    return true;
  }

  std::uint64_t frames() const { return frames_; }

 private:
  std::uint64_t number_, position_, frames_ = 0;
  bool over_ = false;
};

// Takes the event's text from the first of `texts`. False: it has none there, or one of another
// form.
bool take_text(RecordedEvent& event, std::string_view& texts) {
  if (!event.event.has_text()) return true;
  if (event.event.count > texts.size()) return false;
  event.text = texts.substr(0, event.event.count);
  texts.remove_prefix(event.text.size());
  return event.event.kind == Kind::set ? is_json_object(event.text) : is_json(event.text);
}

bool read_events(const recorded::Slice& in, std::size_t frame_bytes,
                 std::vector<RecordedEvent>& out) {
  out.clear();
  Order order(in);
  Numbers numbers(in);
  std::string_view texts = wire::text_of(in.texts());
  if (const auto* events = in.events()) {
    if (!wire::is_aligned(*events) || events->size() > max_position - in.first_event())
      return false;
    out.reserve(events->size());
    for (const recorded::EventEntry* entry : *events) {
      auto event = event_of(*entry, in.begin(), numbers);
      if (!event || !order.add(event->event) || !take_text(*event, texts)) return false;
      out.push_back(*event);
    }
  }
  const std::size_t bytes = wire::bytes_of(in.frames()).size();
  return texts.empty() && numbers.all_used() && bytes % frame_bytes == 0 &&
         bytes / frame_bytes == order.frames();
}

bool is_answer(Answer::Kind kind, std::string_view data) {
  switch (kind) {
    case Answer::Kind::none:
    case Answer::Kind::pending: return false;
    case Answer::Kind::json: return is_json(data);
    case Answer::Kind::text: return is_utf8(data);
    default: return true;
  }
}

RecordedAnswer item_of(const recorded::AnswerEntry& entry) {
  return {.seq = entry.seq(), .batch = BatchId{entry.batch()}};
}
RecordedMessage item_of(const recorded::MessageEntry& entry) {
  return {.seq = entry.seq(), .number = entry.number()};
}
constexpr Answer::Kind last_kind(const RecordedAnswer&) { return Answer::Kind::error; }
constexpr Answer::Kind last_kind(const RecordedMessage&) { return Answer::Kind::bytes; }

// Reads answers, or messages. `rest` has their data.
template <class Entries, class One>
bool read_answers(const Entries* entries, std::string_view rest, std::vector<One>& out) {
  out.clear();
  if (!entries) return rest.empty();
  if (!wire::is_aligned(*entries)) return false;
  out.reserve(entries->size());
  for (const auto* entry : *entries) {
    One one = item_of(*entry);
    one.kind = static_cast<Answer::Kind>(entry->kind());
    if (one.kind > last_kind(one) || entry->length() > rest.size()) return false;
    one.data = rest.substr(0, entry->length());
    if (!is_answer(one.kind, one.data)) return false;
    rest.remove_prefix(one.data.size());
    out.push_back(one);
  }
  return rest.empty();
}

// True if the slice has no such record, or a valid one.
bool read_lost(const recorded::Slice& in, std::optional<LostEvents>& out) {
  const recorded::Lost* lost = in.lost();
  if (!lost) return true;
  if (lost->reason() >= count_of<DropReason>() || lost->first_event() > in.first_event() ||
      lost->begin() > in.begin())
    return false;
  out = {.first_event = lost->first_event(),
         .begin = lost->begin(),
         .reason = static_cast<DropReason>(lost->reason())};
  return true;
}

bool read_closing(const recorded::Slice& in, std::optional<StreamTotals>& out) {
  const recorded::Closing* closing = in.closing();
  if (!closing) return true;
  if (closing->closing() >= closings) return false;
  out = {.rows = closing->rows(),
         .frames = closing->frames(),
         .lost = closing->lost(),
         .digest = closing->digest(),
         .closing = closing->closing(),
         .complete = closing->complete()};
  return true;
}

bool possible(const recorded::PartEntry& part) {
  constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  return part.stream() >= 1 && part.slices() >= 1 &&
         part.slices() - 1 <= most - part.first_slice() && part.first_event() <= max_position &&
         part.begin() <= part.end() && part.end() <= max_position &&
         part.frames() <= part.end() - part.begin() && (part.closed() || !part.complete());
}

}  // namespace

Result<Slice, WireError> SliceDecoder::slice(Bytes message, std::uint64_t stream,
                                             std::size_t frame_bytes) {
  if (message.size() > max_size) return WireError::too_long;
  const auto* in = wire::verified<recorded::Slice>(aligned_.of(message), nullptr);
  if (!in) return WireError::malformed;
  parts_.lost.reset();
  parts_.closing.reset();
  const bool valid =
      frame_bytes >= 1 && in->first_event() <= max_position && in->begin() <= max_position &&
      read_events(*in, frame_bytes, parts_.events) &&
      read_answers(in->answers(), wire::text_of(in->answer_bytes()), parts_.answers) &&
      read_answers(in->messages(), wire::text_of(in->message_bytes()), parts_.messages) &&
      read_lost(*in, parts_.lost) && read_closing(*in, parts_.closing);
  if (!valid) return WireError::meaning;
  return parts_.viewed({.stream = stream,
                        .first_event = in->first_event(),
                        .begin = in->begin(),
                        .size = in->size(),
                        .frames = wire::bytes_of(in->frames())});
}

Result<std::vector<StreamPart>, WireError> SliceDecoder::parts(Bytes message) {
  if (message.size() > max_size) return WireError::too_long;
  const auto* in = wire::verified<recorded::Parts>(aligned_.of(message), nullptr);
  if (!in) return WireError::malformed;
  std::vector<StreamPart> out;
  if (!in->parts()) return out;
  if (!wire::is_aligned(*in->parts())) return WireError::meaning;
  out.reserve(in->parts()->size());
  for (const recorded::PartEntry* part : *in->parts()) {
    if (!possible(*part)) return WireError::meaning;
    out.push_back({.stream = part->stream(),
                   .first_slice = part->first_slice(),
                   .slices = part->slices(),
                   .first_event = part->first_event(),
                   .begin = part->begin(),
                   .end = part->end(),
                   .frames = part->frames(),
                   .channel = part->channel(),
                   .closed = part->closed(),
                   .complete = part->complete(),
                   .lost = part->lost()});
  }
  return out;
}

}  // namespace millrace::recording
