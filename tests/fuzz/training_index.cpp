// SPDX-License-Identifier: Apache-2.0
// Index files of training streams that are damaged and forged. The input is a sequence of changes
// of a good index, of an offset (3 bytes) and a byte each; the first byte says whether the input
// replaces the index instead (bit 0), whether the index is cut at the first offset (bit 1), and
// whether the checksum is made right afterwards (bit 2), so that the code behind it is reached.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "recording/format/checksums.h"
#include "tests/fuzz/target.h"
#include "training/catalogs/index/index.h"
#include "training/catalogs/index/index_records.h"

namespace millrace::training {
namespace {

using fuzz::Choices;
using fuzz::require;
using Content = std::vector<std::byte>;

Content good_index() {
  IndexBuilder builder;
  const std::vector<InnerEvent> events{
      {.event = {.kind = Event::Kind::flush, .count = 0, .mark = 3}, .frame = 10},
      {.event = {.kind = Event::Kind::gap, .count = 7}, .frame = 10},
      {.event = {.kind = Event::Kind::abort}, .frame = 20}};
  builder.add({.frames = 20,
               .name = "a",
               .meta = "{\"x\":1}",
               .path = "a.wav",
               .place = 44,
               .rate = 8000,
               .channels = 1});
  builder.add({.frames = 20, .name = "b"}, events);
  builder.watch({.path = "", .file = {}});
  return builder.finish({}, true);
}

void correct(Content& content) {
  using index_records::Head;
  constexpr std::size_t from = offsetof(Head, checksum) + sizeof(Head::checksum);
  if (content.size() < from) return;
  const std::uint32_t checksum = recording::crc32c(Bytes(content).subspan(from));
  std::memcpy(content.data() + offsetof(Head, checksum), &checksum, sizeof checksum);
}

// Reads all of the index.
void check(const Index& index) {
  std::size_t text = 0;
  for (std::uint64_t i = 0; i < index.size(); ++i) {
    const IndexedStream stream = index.stream(i);
    for (const auto part : {stream.path, stream.name, stream.meta})
      text += static_cast<std::size_t>(std::ranges::count(part, 'a'));
    require(stream.frames == index.frames(i), "a stream has one length");
    require(stream.path.empty() || (stream.place < Index::most_place &&
                                    index.frame_type().values <= Index::most_channels),
            "the place of a frame does not overflow");
    const auto events = index.events(i);
    require(index.has_events(i) == !events.empty(), "a stream with events says so");
    std::uint64_t frame = 0;
    for (const InnerEvent& event : events) {
      require(event.frame >= frame && event.frame <= stream.frames, "events are in order");
      frame = event.frame;
    }
  }
  for (std::size_t i = 0; i < index.watched(); ++i)
    text += static_cast<std::size_t>(std::ranges::count(index.watched(i).path, 'a'));
  require(text <= std::size_t{1} << 48, "the text was read");
  require(index.frame_type().values > 0, "a frame has values");
}

}  // namespace
}  // namespace millrace::training

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace::training;
  static const Content good = good_index();
  Choices choices(bytes, size);
  const std::uint8_t how = choices.byte();
  Content content = good;
  if ((how & 1) != 0) {
    const auto given = millrace::fuzz::bytes_of(bytes + 1, size - 1);
    content.assign(given.begin(), given.end());
  }
  const auto offset = [&] {
    const auto high = choices.byte(), middle = choices.byte(), low = choices.byte();
    return std::size_t{high} << 16 | std::size_t{middle} << 8 | low;
  };
  if ((how & 1) == 0 && (how & 2) != 0) content.resize(offset() % good.size());
  while ((how & 1) == 0 && !choices.empty() && !content.empty()) {
    const std::size_t at = offset() % content.size();
    content[at] = static_cast<std::byte>(choices.byte());
  }
  if ((how & 4) != 0) correct(content);
  const bool same = content == good;
  const auto index = Index::from(std::move(content));
  require((how & 5) != 0 || index.has_value() == same, "only the good index is accepted");
  if (index) check(*index);
  return 0;
}
