// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>

#include "schemas/client_messages.h"
#include "schemas/json_text.h"

namespace millrace::test {

// Describes a message of a client: "3 frames at 0: aabb".
struct InWords {
  std::string operator()(const client_protocol::Open& open) const {
    std::string words = std::to_string(open.stream) + " open";
    const auto add = [&words](const char* name, const auto& value) {
      if (value) words.append(" ").append(name).append("=").append(*value);
    };
    std::optional<std::string> rate, channels, dim;
    if (open.rate) append_number(rate.emplace(), *open.rate);
    if (open.channels) channels = std::to_string(*open.channels);
    if (open.dim) dim = std::to_string(*open.dim);
    add("pipeline", open.pipeline);
    add("id", open.id);
    add("format", open.format);
    add("rate", rate);
    add("channels", channels);
    add("dim", dim);
    add("channel", open.channel);
    add("chunk", open.chunk);
    add("options", open.options);
    add("record", open.record);
    add("token", open.token);
    if (open.resume) words += " resume";
    add("from", open.resume_token);
    return words;
  }
  std::string operator()(const client_protocol::Frames& frames) const {
    return std::to_string(frames.stream) + " frames at " + std::to_string(frames.at) + ": " +
           std::string(reinterpret_cast<const char*>(frames.bytes.data()), frames.bytes.size());
  }
  std::string operator()(const client_protocol::Flush& flush) const {
    return std::to_string(flush.stream) + " flush" +
           (flush.mark ? " " + std::to_string(*flush.mark) : "");
  }
  std::string operator()(const client_protocol::Reset& reset) const {
    return std::to_string(reset.stream) + " reset";
  }
  std::string operator()(const client_protocol::Gap& gap) const {
    return std::to_string(gap.stream) + " gap " + std::to_string(gap.frames);
  }
  std::string operator()(const client_protocol::Post& post) const {
    return std::to_string(post.stream) + " post " + std::string(post.data);
  }
  std::string operator()(const client_protocol::SetOptions& set) const {
    return std::to_string(set.stream) + " set " + std::string(set.options);
  }
  std::string operator()(const client_protocol::End& end) const {
    return std::to_string(end.stream) + " end";
  }
  std::string operator()(const client_protocol::Received& received) const {
    return std::to_string(received.stream) + " received before " + std::to_string(received.n);
  }
};

inline std::string words_of(const client_protocol::ToService& message) {
  return std::visit(InWords(), message);
}

}  // namespace millrace::test
