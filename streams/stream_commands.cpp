// SPDX-License-Identifier: Apache-2.0
// The commands of a stream's client, as they arrive.
#include <memory>
#include <string>
#include <utility>

#include "schemas/json_text.h"
#include "schemas/stream_request.h"
#include "streams/stream.h"

namespace millrace {

void Stream::flush(std::optional<std::uint64_t> mark, Time now) {
  const bool takes = takes_input();
  count_command(takes);
  if (!takes) return;
  intake_.flush(mark, now);
  settle(now);
}

void Stream::reset(Time now) {
  const bool takes = takes_input();
  count_command(takes);
  if (!takes) return;
  intake_.reset(now);
  settle(now);
}

void Stream::gap(std::uint64_t client_frames, Time now) {
  const bool takes = takes_input();
  count_command(takes && client_frames > 0);
  if (!takes) return;
  if (client_frames == 0)
    return client_->rejected(ErrorCode::schema, "a gap must have at least one frame", 0);
  intake_.reject_partial_frame();
  settle_or_fail(intake_.add_gap(client_frames, now), now);
}

void Stream::acknowledge(std::uint64_t /*n*/, Time now) {
  if (takes_input())
    fail(ErrorCode::schema, "ack is for streams that were opened with resume", now);
}

void Stream::end(Time now) {
  count_command(input_ == Input::open);
  if (input_ != Input::open) return;
  intake_.reject_partial_frame();
  end_input(Input::ended, Cause::client, now);
}

void Stream::post(std::string_view data, Time now) {
  const bool takes = takes_input() && has_room_for(data);
  count_command(takes);
  if (takes) add_post(Event::Kind::message, data, now);
}

void Stream::set(std::string_view options, Time now) {
  const bool takes = takes_input() && has_room_for(options) && merges(options);
  count_command(takes);
  if (takes) add_post(Event::Kind::set, options, now);
}

void Stream::reject_command(ErrorCode code, std::string_view message, Time /*now*/) {
  count_command(false);
  if (takes_input()) client_->rejected(code, message, 0);
}

// If the options are then too long, rejects them.
bool Stream::merges(std::string_view options) {
  std::string merged;
  if (options.size() <= longest_options)  // the cost of merging is bounded
    merged =
        merged_members(posts_->options.empty() ? settings_.options : posts_->options, {options});
  if (merged.empty() || merged.size() > longest_options) {
    client_->rejected(
        ErrorCode::too_long,
        "the options of a stream have at most " + std::to_string(longest_options) + " bytes", 0);
    return false;
  }
  posts_->options = std::move(merged);
  return true;
}

// If there is no room for a message to the worker, rejects it.
bool Stream::has_room_for(std::string_view text) {
  const std::size_t longest = settings_.longest_post;
  if (!posts_) posts_ = std::make_unique<ClientPosts>();
  const bool fits = text.size() <= longest;
  if (fits && posts_->has_room(text.size(), longest)) return true;
  client_->rejected(
      fits ? ErrorCode::too_fast : ErrorCode::too_long,
      !fits ? "a message to the worker has at most " + std::to_string(longest) + " bytes"
      : waits_for_client()
          ? "too many bytes of messages wait for the stream's next row: send frames or a flush"
          : "too many bytes of messages wait: the rows before are not processed yet",
      0);
  return false;
}

void Stream::add_post(Event::Kind kind, std::string_view text, Time now) {
  posts_->add(std::string(text));
  intake_.add_text(kind, text.size(), now);
  settle(now);
}

}  // namespace millrace
