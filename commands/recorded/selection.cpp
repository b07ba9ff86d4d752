// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/selection.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>
#include <utility>

#include "schemas/json_text.h"
#include "schemas/text.h"

namespace millrace::recordings {
namespace {

bool is_number(const std::string& text) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && stop == text.data() + text.size();
}

std::string no_stream_has(const std::string& name) {
  std::string error = "no stream has the name ";
  append_string(error, name);
  return error;
}

bool contains(const NamedStreams& named, const recording::StreamMeta& meta) {
  return std::ranges::find(named.names, meta.name) != named.names.end() ||
         std::ranges::find(named.numbers, meta.number) != named.numbers.end();
}

// The named recordings by number, each once.
Result<std::vector<recording::RecordedStream>, std::string> find_streams(
    recording::Recordings& recordings, const NamedStreams& named, const std::string& command) {
  if (auto error = misnamed_numbers(recordings, named, command); !error.empty()) return error;
  std::map<std::uint64_t, recording::RecordedStream> found;
  for (const std::uint64_t number : named.numbers) {
    auto stream = recordings.find(number);
    if (!stream) return "there is no stream " + std::to_string(number);
    found.emplace(number, std::move(*stream));
  }
  for (const std::string& name : named.names) {
    auto streams = recordings.find(name);
    if (streams.empty()) return no_stream_has(name);
    for (recording::RecordedStream& stream : streams)
      found.emplace(stream.meta.number, std::move(stream));
  }
  std::vector<recording::RecordedStream> streams;
  for (auto& [number, stream] : found) streams.push_back(std::move(stream));
  return streams;
}

}  // namespace

bool Filter::accepts(const recording::RecordedStream& stream) const {
  return (pipeline.empty() || stream.meta.pipeline == pipeline) &&
         (tenant.empty() || tenant_in(stream.meta.name) == (tenant == "default" ? "" : tenant)) &&
         (named.empty() || contains(named, stream.meta)) &&
         (!since || stream.meta.opened_wall >= *since) &&
         (!until || stream.meta.opened_wall < *until);
}

std::vector<const recording::RecordedStream*> select(recording::Recordings& recordings,
                                                     const Filter& filter) {
  std::vector<const recording::RecordedStream*> selected;
  for (const recording::RecordedStream& stream : recordings.streams())
    if (filter.accepts(stream)) selected.push_back(&stream);
  const auto place = [](const recording::RecordedStream* stream) {
    return std::tuple(stream->meta.opened_wall, stream->meta.number);
  };
  // Streams are by number, which is nearly always the order of their time too.
  if (!std::ranges::is_sorted(selected, {}, place)) std::ranges::sort(selected, {}, place);
  return selected;
}

Result<std::vector<recording::RecordedStream>, std::string> find_with_parts(
    recording::Recordings& recordings, const NamedStreams& named, const std::string& command) {
  auto streams = find_streams(recordings, named, command);
  if (!streams) return streams;
  const auto number = [](const recording::RecordedStream& stream) { return stream.meta.number; };
  std::vector<recording::RecordedStream> all;
  for (const recording::StreamParts& parts : join_parts(recordings.streams())) {
    const bool is_named = std::ranges::any_of(parts, [&](const auto& part) {
      return std::ranges::binary_search(*streams, number(part), {}, number);
    });
    if (is_named) all.insert(all.end(), parts.begin(), parts.end());
  }
  std::ranges::sort(all, {}, number);
  return all;
}

Result<recording::StreamParts, std::string> find_stream(recording::Recordings& recordings,
                                                        const NamedStreams& named,
                                                        const std::string& command) {
  if (named.empty()) return std::string("the NAME or the --number of a stream must be given");
  const auto streams = find_with_parts(recordings, named, command);
  if (!streams) return streams.error();
  auto joined = join_parts(*streams);
  if (joined.size() == 1) return std::move(joined.front());
  std::string error =
      std::to_string(streams->size()) + " streams are selected; select one of them by --number:";
  constexpr std::size_t most = 10;
  for (std::size_t i = 0; i < streams->size() && i < most; ++i)
    error += (i > 0 ? ", " : " ") + std::to_string((*streams)[i].meta.number);
  if (streams->size() > most) error += " …";
  return error;
}

std::string misnamed_numbers(recording::Recordings& recordings, const NamedStreams& named,
                             const std::string& command) {
  std::string error, names, numbers;
  for (const std::string& name : named.names) {
    const bool misnamed = is_number(name) && recordings.find(name).empty();
    if (misnamed && error.empty()) error = no_stream_has(name);
    const std::string option = name.starts_with('-') ? "--name=" : "";
    (misnamed ? numbers : names) += ' ' + (misnamed ? name : option + shell_quoted(name));
  }
  if (error.empty()) return error;
  for (const std::uint64_t number : named.numbers) numbers += ' ' + std::to_string(number);
  return error + "; to select by number: " + command + names + " --number" + numbers;
}

}  // namespace millrace::recordings
