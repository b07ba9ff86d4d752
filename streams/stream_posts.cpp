// SPDX-License-Identifier: Apache-2.0
// The messages of a stream's client to the worker, as they arrive.
#include <memory>
#include <string>
#include <utility>

#include "schemas/json_text.h"
#include "schemas/stream_request.h"
#include "streams/stream.h"

namespace millrace {

void Stream::post(std::string_view data, Time now) {
  if (takes_input() && has_room_for(data)) add_post(Event::Kind::message, data, now);
}

void Stream::set(std::string_view options, Time now) {
  if (!takes_input() || !has_room_for(options)) return;
  std::string merged;
  if (options.size() <= longest_options)  // the cost of merging is bounded
    merged =
        merged_members(posts_->options.empty() ? settings_.options : posts_->options, {options});
  if (merged.empty() || merged.size() > longest_options)
    return client_->rejected(
        ErrorCode::too_long,
        "the options of a stream have at most " + std::to_string(longest_options) + " bytes", 0);
  posts_->options = std::move(merged);
  add_post(Event::Kind::set, options, now);
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
