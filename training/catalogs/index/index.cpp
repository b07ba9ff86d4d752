// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/index/index.h"

#include <fcntl.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "base/file_descriptor.h"
#include "recording/format/checksums.h"
#include "training/catalogs/index/index_records.h"

namespace millrace::training {
namespace {

using index_records::EventRecord;
using index_records::Head;
using index_records::PartRecord;
using index_records::StreamRecord;
using index_records::WatchedRecord;

constexpr std::size_t checked_from = offsetof(Head, checksum) + sizeof(Head::checksum);

Head head_of(Bytes bytes) {
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  return head;
}

std::uint64_t events_begin(const Head& head) {
  return sizeof(Head) + head.streams * sizeof(StreamRecord);
}
std::uint64_t parts_begin(const Head& head) {
  return events_begin(head) + head.events * sizeof(EventRecord);
}
std::uint64_t watched_begin(const Head& head) {
  return parts_begin(head) + head.parts * sizeof(PartRecord);
}
std::uint64_t text_begin(const Head& head) {
  return watched_begin(head) + head.watched * sizeof(WatchedRecord);
}

template <class Record>
Record record_at(Bytes bytes, std::uint64_t begin, std::uint64_t number) {
  Record record;
  std::memcpy(&record, bytes.data() + begin + number * sizeof record, sizeof record);
  return record;
}

StreamRecord stream_at(Bytes bytes, std::uint64_t number) {
  return record_at<StreamRecord>(bytes, sizeof(Head), number);
}

// True if [begin, begin + size) lies in [0, limit).
bool within(std::uint64_t begin, std::uint64_t size, std::uint64_t limit) {
  return begin <= limit && size <= limit - begin;
}

Event event_of(const EventRecord& record) {
  Event event{.kind = static_cast<Event::Kind>(record.kind),
              .cause = static_cast<Cause>(record.cause),
              .count = record.count};
  if (record.has_mark != 0)
    event.mark = record.mark;
  else
    event.rows = record.mark;
  return event;
}

// `begins`: the event may be the open of a stream that was opened anew; `moved`: also later.
bool is_event(const EventRecord& record, bool begins, bool moved) {
  const Event event = event_of(record);
  const bool opens = (begins && event.opened_anew()) || (moved && event.kind == Event::Kind::open);
  const bool inner = event.kind >= Event::Kind::size && event.kind <= Event::Kind::abort &&
                     event.kind != Event::Kind::end;
  return (opens || inner) && event.rows < Index::most_frames &&
         record.cause <= static_cast<std::uint8_t>(Cause::recorder) &&
         record.count < Index::most_frames;
}

bool head_is_good(Bytes bytes) {
  if (bytes.size() < sizeof(Head)) return false;
  const Head head = head_of(bytes);
  constexpr std::uint64_t most = std::uint64_t{1} << 48;  // so that no size below overflows
  return head.magic == index_records::magic && head.version == Index::version &&
         head.bytes == bytes.size() && head.streams < (std::uint64_t{1} << 32) &&
         head.events < most / sizeof(EventRecord) && head.parts < most / sizeof(PartRecord) &&
         head.watched < most / sizeof(WatchedRecord) && head.text < most &&
         text_begin(head) + head.text == bytes.size() &&
         head.element <= static_cast<std::uint8_t>(Element::f32) && head.values > 0 &&
         head.values <= Index::most_values && head.rate > 0 && head.rate < Index::most_rate;
}

// False: the file has no rate or no channels, or the place of a frame in it would overflow, or
// would not be that of a 16-bit sample.
bool place_is_good(const Head& head, const StreamRecord& record) {
  if (record.path == 0) return true;  // a recording: the place is the number of a stream
  return head.values <= Index::most_channels && record.rate > 0 && record.rate < Index::most_rate &&
         record.channels > 0 && record.channels <= Index::most_channels &&
         record.place < Index::most_place && record.place % 2 == 0;
}

// The frames of a stream are those of its parts.
bool parts_are_good(Bytes bytes, const Head& head, const StreamRecord& record) {
  if (!within(record.first_part, record.parts, head.parts)) return false;
  std::uint64_t frames = 0;
  for (std::uint64_t k = 0; k < record.parts; ++k) {
    const auto part = record_at<PartRecord>(bytes, parts_begin(head), record.first_part + k);
    if (part.once > part.counted || part.counted > part.frames ||
        part.frames >= Index::most_frames || part.first_file >= Index::most_frames ||
        part.last_file >= Index::most_frames)
      return false;
    frames += part.counted;
  }
  return record.parts == 0 || frames == record.frames;
}

bool records_are_good(Bytes bytes) {
  const Head head = head_of(bytes);
  for (std::uint64_t i = 0; i < head.streams; ++i) {
    const StreamRecord record = stream_at(bytes, i);
    const std::uint64_t size = std::uint64_t{record.path} + record.name + record.meta;
    if (!within(record.text, size, head.text) ||
        !within(record.first_event, record.events, head.events) ||
        !parts_are_good(bytes, head, record) || record.frames >= Index::most_frames ||
        record.before >= Index::most_frames || record.behind >= Index::most_frames ||
        !place_is_good(head, record))
      return false;
    std::uint64_t frame = 0;
    for (std::uint64_t k = 0; k < record.events; ++k) {
      const auto event = record_at<EventRecord>(bytes, events_begin(head), record.first_event + k);
      const bool last = k + 1 == record.events;
      const bool abort = event.kind == static_cast<std::uint8_t>(Event::Kind::abort);
      const bool begins = k == 0 && event.frame == 0;
      if (!is_event(event, begins, record.parts > 0) || event.frame < frame ||
          event.frame > record.frames || (abort && !last))
        return false;
      frame = event.frame;
    }
  }
  for (std::uint64_t i = 0; i < head.watched; ++i) {
    const auto record = record_at<WatchedRecord>(bytes, watched_begin(head), i);
    if (!within(record.text, record.path, head.text)) return false;
  }
  return true;
}

void append(std::vector<std::byte>& to, Bytes bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}
template <class Record>
void append(std::vector<std::byte>& to, const Record& record) {
  append(to, std::as_bytes(std::span(&record, 1)));
}

}  // namespace

Index::Index(Owner owner) : owner_(std::move(owner)) {
  if (const auto* mapped = std::get_if<recording::MappedFile>(&owner_)) bytes_ = mapped->bytes();
  if (const auto* memory = std::get_if<std::vector<std::byte>>(&owner_)) bytes_ = *memory;
}

std::optional<Index> Index::checked(Owner owner) {
  Index index(std::move(owner));
  const Bytes bytes = index.bytes_;
  if (!head_is_good(bytes) ||
      recording::crc32c(bytes.subspan(checked_from)) != head_of(bytes).checksum ||
      !records_are_good(bytes))
    return std::nullopt;
  return index;
}

std::optional<Index> Index::map(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  return checked(recording::MappedFile(file.get(), recording::file_size(file.get())));
}

std::optional<Index> Index::from(std::vector<std::byte> bytes) { return checked(std::move(bytes)); }

std::uint64_t Index::size() const { return head_of(bytes_).streams; }

std::uint64_t Index::frames(std::uint64_t stream) const { return stream_at(bytes_, stream).frames; }

IndexedStream Index::stream(std::uint64_t stream) const {
  const StreamRecord record = stream_at(bytes_, stream);
  const std::string_view all =
      text(record.text, std::uint64_t{record.path} + record.name + record.meta);
  return {.frames = record.frames,
          .name = all.substr(record.path, record.name),
          .meta = all.substr(std::size_t{record.path} + record.name),
          .path = all.substr(0, record.path),
          .file = {.bytes = record.file_bytes, .changed = record.file_changed},
          .place = record.place,
          .before = record.before,
          .behind = record.behind,
          .rate = record.rate,
          .channels = record.channels,
          .deep = record.deep != 0};
}

bool Index::has_events(std::uint64_t stream) const { return stream_at(bytes_, stream).events > 0; }

std::vector<InnerEvent> Index::events(std::uint64_t stream) const {
  const StreamRecord record = stream_at(bytes_, stream);
  std::vector<InnerEvent> events(record.events);
  for (std::uint64_t k = 0; k < record.events; ++k) {
    const auto from =
        record_at<EventRecord>(bytes_, events_begin(head_of(bytes_)), record.first_event + k);
    events[k] = {.event = event_of(from), .frame = from.frame};
  }
  return events;
}

std::vector<IndexedPart> Index::parts(std::uint64_t stream) const {
  const StreamRecord record = stream_at(bytes_, stream);
  std::vector<IndexedPart> parts;
  for (std::uint64_t k = 0; k < record.parts; ++k) {
    const auto [number, first, last, frames, counted, once] =
        record_at<PartRecord>(bytes_, parts_begin(head_of(bytes_)), record.first_part + k);
    parts.push_back({number, first, last, frames, counted, once});
  }
  return parts;
}

std::size_t Index::watched() const { return head_of(bytes_).watched; }

WatchedFile Index::watched(std::size_t number) const {
  const auto record = record_at<WatchedRecord>(bytes_, watched_begin(head_of(bytes_)), number);
  return {.path = text(record.text, record.path),
          .file = {.bytes = record.file_bytes, .changed = record.file_changed}};
}

FrameType Index::frame_type() const {
  const Head head = head_of(bytes_);
  return {.element = static_cast<Element>(head.element),
          .values = head.values,
          .rate = head.rate,
          .features = head.features != 0};
}

bool Index::is_mixed() const { return (head_of(bytes_).formats & index_records::mixed) != 0; }

bool Index::is_deep() const { return (head_of(bytes_).formats & index_records::deep) != 0; }

std::uint64_t Index::digest() const { return head_of(bytes_).digest; }

bool Index::settled() const { return head_of(bytes_).settled != 0; }

std::string_view Index::text(std::uint64_t begin, std::uint64_t size) const {
  const Bytes part = bytes_.subspan(text_begin(head_of(bytes_)) + begin, size);
  return {reinterpret_cast<const char*>(part.data()), part.size()};
}

std::uint64_t IndexBuilder::add_text(std::string_view text) {
  const std::uint64_t begin = text_.size();
  append(text_, std::as_bytes(std::span(text)));
  return begin;
}

void IndexBuilder::reserve(std::size_t streams, std::size_t texts) {
  streams_.reserve(streams * sizeof(StreamRecord));
  text_.reserve(texts);
}

void IndexBuilder::add(const IndexedStream& stream, std::span<const InnerEvent> events,
                       std::span<const IndexedPart> parts) {
  digest_.add_stream(stream.frames, stream.name, stream.meta, events);
  StreamRecord record{.frames = stream.frames,
                      .place = stream.place,
                      .before = stream.before,
                      .behind = stream.behind,
                      .file_bytes = stream.file.bytes,
                      .file_changed = stream.file.changed,
                      .text = add_text(stream.path),
                      .first_event = event_count_,
                      .path = static_cast<std::uint32_t>(stream.path.size()),
                      .name = static_cast<std::uint32_t>(stream.name.size()),
                      .meta = static_cast<std::uint32_t>(stream.meta.size()),
                      .events = static_cast<std::uint32_t>(events.size()),
                      .first_part = static_cast<std::uint32_t>(parts_.size() / sizeof(PartRecord)),
                      .parts = static_cast<std::uint32_t>(parts.size()),
                      .rate = stream.rate,
                      .channels = static_cast<std::uint16_t>(stream.channels),
                      .deep = stream.deep};
  add_text(stream.name);
  add_text(stream.meta);
  append(streams_, record);
  if (stream.deep) formats_ |= index_records::deep;
  if (count_++ == 0) {
    rate_ = stream.rate;
    channels_ = stream.channels;
  } else if (stream.rate != rate_ || stream.channels != channels_) {
    formats_ |= index_records::mixed;
  }
  for (const InnerEvent& inner : events)
    append(events_, EventRecord{.frame = inner.frame,
                                .count = inner.event.count,
                                .mark = inner.event.mark.value_or(inner.event.rows),
                                .kind = static_cast<std::uint8_t>(inner.event.kind),
                                .cause = static_cast<std::uint8_t>(inner.event.cause),
                                .has_mark = inner.event.mark.has_value()});
  event_count_ += events.size();
  for (const IndexedPart& part : parts)
    append(parts_, PartRecord{part.number, part.first_file, part.last_file, part.frames,
                              part.counted, part.once});
}

void IndexBuilder::watch(const WatchedFile& watched) {
  append(watched_, WatchedRecord{.file_bytes = watched.file.bytes,
                                 .file_changed = watched.file.changed,
                                 .text = add_text(watched.path),
                                 .path = watched.path.size()});
}

std::vector<std::byte> IndexBuilder::finish(const FrameType& type, bool settled) {
  Head head{.magic = index_records::magic,
            .version = Index::version,
            .bytes = sizeof(Head) + streams_.size() + events_.size() + parts_.size() +
                     watched_.size() + text_.size(),
            .streams = count_,
            .events = event_count_,
            .parts = parts_.size() / sizeof(PartRecord),
            .watched = watched_.size() / sizeof(WatchedRecord),
            .text = text_.size(),
            .digest = digest_.value(),
            .rate = type.rate,
            .values = type.values,
            .element = static_cast<std::uint8_t>(type.element),
            .features = type.features,
            .settled = settled,
            .formats = formats_};
  std::vector<std::byte> bytes;
  bytes.reserve(head.bytes);
  append(bytes, head);
  for (auto* part : {&streams_, &events_, &parts_, &watched_, &text_}) {
    append(bytes, Bytes(*part));
    *part = std::vector<std::byte>();
  }
  head.checksum = recording::crc32c(Bytes(bytes).subspan(checked_from));
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

}  // namespace millrace::training
