// SPDX-License-Identifier: Apache-2.0
#include "service/pipelines/request_check.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "chunker/lengths.h"
#include "input/client_format.h"
#include "input/voice_detector.h"

namespace millrace {

namespace {

constexpr double opus_rate = 48'000;

RequestError refusal(unsigned status, const char* parameter, std::string message) {
  return {.status = status, .parameter = parameter, .message = std::move(message)};
}

std::string channels(std::uint32_t count) {
  return std::to_string(count) + (count == 1 ? " channel" : " channels");
}

// Features are not converted, except their values.
Result<ClientFormat, RequestError> check_features(const StreamRequest& request, SampleFormat format,
                                                  const FrameType& frames) {
  if (request.rate && *request.rate != frames.rate)
    return refusal(415, "rate", "the pipeline takes " + readable(frames.rate));
  if (request.channels) return refusal(415, "channels", "the pipeline takes features");
  if (request.dim && *request.dim != frames.values)
    return refusal(415, "dim", "the pipeline takes " + std::to_string(frames.values));
  if (request.channel) return refusal(415, "channel", "the pipeline takes features");
  return format_of(format, frames);
}

Result<double, RequestError> check_rate(const StreamRequest& request, bool is_opus,
                                        double pipeline) {
  const double rate = request.rate.value_or(is_opus ? opus_rate : pipeline);
  if (is_opus && rate != opus_rate)
    return refusal(415, "rate", "must be 48000 for opus, or absent");
  if (rate != pipeline && !is_convertible_rate(rate))
    return refusal(415, "rate", "must be a whole number from 8000 to 192000");
  return {boost::system::in_place_value, rate};
}

// `all` channels of the client.
Result<ChannelChoice, RequestError> check_channel(const std::string& channel, std::uint32_t all,
                                                  std::uint32_t pipeline) {
  std::uint32_t index = 0;
  const char* const end = channel.data() + channel.size();
  const auto [stop, error] = std::from_chars(channel.data(), end, index);
  const bool is_mean = channel == "mean";
  const bool is_index = error == std::errc{} && stop == end;
  if (!is_mean && (!is_index || index >= all))
    return refusal(400, "channel",
                   "must be mean or a channel from 0 to " + std::to_string(all - 1) +
                       ", as the client has " + channels(all));
  if (pipeline != 1)
    return refusal(415, "channel",
                   "a channel cannot be selected: the pipeline takes " + channels(pipeline));
  if (is_mean) return ChannelChoice(MeanOfChannels{});
  return ChannelChoice(OneChannel{index});
}

Result<ClientFormat, RequestError> check_audio(const StreamRequest& request, SampleFormat format,
                                               const FrameType& frames) {
  const bool is_opus = format == SampleFormat::opus;
  const auto rate = check_rate(request, is_opus, frames.rate);
  if (!rate) return rate.error();
  if (request.dim) return refusal(415, "dim", "the pipeline takes audio");
  const std::uint32_t count = request.channels.value_or(frames.values);
  if (is_opus && (count < 1 || count > 2))
    return refusal(415, "channels", "must be 1 or 2 for opus");
  if (count < 1 || count > most_client_channels)
    return refusal(415, "channels", "must be from 1 to " + std::to_string(most_client_channels));
  ClientFormat client{.format = format, .values = count, .rate = *rate};
  if (request.channel) {
    const auto channel = check_channel(*request.channel, count, frames.values);
    if (!channel) return channel.error();
    client.channel = *channel;
  } else if (count != frames.values) {
    const char* const hint = frames.values == 1 ? "; channel can be one of them, or mean" : "";
    return refusal(415, "channel",
                   "the pipeline takes " + channels(frames.values) + ", and the client has " +
                       channels(count) + hint);
  }
  return client;
}

// Milliseconds where they are whole, otherwise frames.
std::string readable_size(std::uint32_t size, double rate) {
  const double ms = size * 1000 / rate;
  return ms == std::floor(ms) ? readable(ms) + "ms" : std::to_string(size);
}

std::string listed(const SizeList& sizes, double rate) {
  if (sizes.is_range())
    return readable_size(sizes.smallest(), rate) + " to " + readable_size(sizes.largest(), rate) +
           " in steps of " + readable_size(sizes.step(), rate);
  std::string all;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    all += (i > 0 ? ", " : "") + readable_size(sizes[i], rate);
  return all;
}

Result<std::uint32_t, RequestError> check_chunk(const std::string& chunk,
                                                const PipelineOptions& pipeline) {
  const SizeList& sizes = pipeline.chunk.sizes.sizes;
  if (sizes.empty())
    return refusal(400, "chunk",
                   "the pipeline has only one size, " + readable_sizes(pipeline) +
                       ", and none to choose from");
  const auto size = parse_length(chunk, pipeline.frames.rate);
  if (!size || !sizes.contains(*size))
    return refusal(400, "chunk",
                   "must be one of the pipeline's sizes: " + readable_sizes(pipeline));
  return {boost::system::in_place_value, *size};
}

std::uint64_t frames_of(std::string_view length, double rate) {
  return *parse_length(std::string(length), rate);
}

Result<std::optional<EndpointRule>, RequestError> check_ends(const SegmentEnds& ends,
                                                             const PipelineOptions& pipeline) {
  using Rule = std::optional<EndpointRule>;
  if (ends.by == SegmentEnds::By::client) return Rule();
  Rule rule = pipeline.endpoint;
  if (!rule && ends.by == SegmentEnds::By::voice) {
    const FrameType& frames = pipeline.frames;
    if (frames.features || !VoiceDetector::has_rate(frames.rate))
      return refusal(415, "endpoint", "the pipeline takes no audio of a rate for voice detection");
    rule = EndpointRule{.silence = frames_of(default_silence, frames.rate),
                        .max = frames_of(default_longest_segment, frames.rate)};
  }
  if (rule && rule->by == EndpointRule::By::vad && ends.silence)
    rule->silence = std::clamp<std::uint64_t>(
        static_cast<std::uint64_t>(std::chrono::duration<double>(*ends.silence).count() *
                                   pipeline.frames.rate),
        1, rule->max);
  return rule;
}

}  // namespace

std::string readable_sizes(const PipelineOptions& pipeline) {
  const SizeList& sizes = pipeline.chunk.sizes.sizes;
  const double rate = pipeline.frames.rate;
  return sizes.empty() ? readable_size(pipeline.chunk.spec.size, rate) : listed(sizes, rate);
}

Result<CheckedRequest, RequestError> check_request(const StreamRequest& request,
                                                   const PipelineOptions& pipeline) {
  auto endpoint = check_ends(request.ends, pipeline);
  if (!endpoint) return endpoint.error();
  const FrameType& frames = pipeline.frames;
  SampleFormat format = default_format(frames.features);
  if (request.format) {
    const auto named = parse_sample_format(*request.format, frames.features);
    if (!named) return refusal(415, "format", named.error().message);
    format = *named;
  }
  auto client = frames.features ? check_features(request, format, frames)
                                : check_audio(request, format, frames);
  if (!client) return client.error();
  CheckedRequest checked{.format = *client, .size = {}, .endpoint = *endpoint};
  if (request.chunk) {
    const auto size = check_chunk(*request.chunk, pipeline);
    if (!size) return size.error();
    checked.size = *size;
  }
  return checked;
}

}  // namespace millrace
