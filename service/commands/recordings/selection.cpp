// SPDX-License-Identifier: Apache-2.0
#include "service/commands/recordings/selection.h"

#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

#include "schemas/json_text.h"

namespace millrace::recordings {

bool Filter::accepts(const RecordedStream& stream) const {
  return (pipeline.empty() || stream.meta.pipeline == pipeline) &&
         (name.empty() || stream.meta.name == name) &&
         (!since || stream.meta.opened_wall >= *since) &&
         (!until || stream.meta.opened_wall < *until);
}

std::vector<const RecordedStream*> select(Recordings& recordings, const Filter& filter) {
  std::vector<const RecordedStream*> selected;
  for (const RecordedStream& stream : recordings.streams())
    if (filter.accepts(stream)) selected.push_back(&stream);
  const auto place = [](const RecordedStream* stream) {
    return std::tuple(stream->meta.opened_wall, stream->meta.number);
  };
  // Streams are by number, which is nearly always the order of their time too.
  if (!std::ranges::is_sorted(selected, {}, place)) std::ranges::sort(selected, {}, place);
  return selected;
}

Result<std::vector<RecordedStream>, std::string> streams_named(Recordings& recordings,
                                                               const std::string& number_or_name) {
  if (const auto number = stream_number(number_or_name))
    if (auto stream = recordings.find(*number))
      return std::vector<RecordedStream>{std::move(*stream)};
  auto streams = recordings.find(number_or_name);
  if (!streams.empty()) return streams;
  std::string error = "there is no stream with the number or the name ";
  append_string(error, number_or_name);
  return error;
}

Result<RecordedStream, std::string> stream_named(Recordings& recordings,
                                                 const std::string& number_or_name) {
  const auto streams = streams_named(recordings, number_or_name);
  if (!streams) return streams.error();
  if (streams->size() == 1) return streams->front();
  std::string error;
  append_string(error, number_or_name);
  error += " is the name of " + std::to_string(streams->size()) +
           " streams; give the number of one of them:";
  constexpr std::size_t most = 10;
  for (std::size_t i = 0; i < streams->size() && i < most; ++i)
    error += (i > 0 ? ", " : " ") + std::to_string((*streams)[i].meta.number);
  if (streams->size() > most) error += " …";
  return error;
}

std::optional<std::uint64_t> stream_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace millrace::recordings
