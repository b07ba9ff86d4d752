// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/indexed_file.h"

namespace millrace::recording {

std::optional<std::uint16_t> IndexedFile::channel_of(std::uint64_t stream) {
  if (indexed_channels_ != file.channels().size()) {
    for (const auto& [channel, meta] : file.channels()) channels_.try_emplace(meta.number, channel);
    indexed_channels_ = file.channels().size();
  }
  const auto found = channels_.find(stream);
  return found == channels_.end() ? std::nullopt : std::optional(found->second);
}

const std::vector<std::uint32_t>& IndexedFile::chunks_of(std::uint16_t channel) {
  for (; indexed_chunks_ < file.chunks().size(); ++indexed_chunks_) index(indexed_chunks_);
  return chunks_[channel];
}

const std::vector<SliceMessage>* IndexedFile::messages(std::size_t chunk) {
  if (kept_.empty()) kept_.resize(most_kept);
  Kept& kept = kept_[chunk % kept_.size()];
  if (kept.used && kept.chunk == chunk) return &kept.messages;
  auto messages = file.messages(chunk);
  if (!messages) return nullptr;
  kept = {.chunk = chunk, .messages = std::move(*messages), .used = true};
  return &kept.messages;
}

void IndexedFile::index(std::size_t chunk) {
  const std::vector<std::uint16_t>& channels = file.chunks()[chunk].channels;
  for (const std::uint16_t channel : channels) add(channel, chunk);
  if (!channels.empty()) return;
  // The file does not name them: they are in the messages.
  if (const auto messages = file.messages(chunk))
    for (const SliceMessage& message : *messages) add(message.channel, chunk);
}

void IndexedFile::add(std::uint16_t channel, std::size_t chunk) {
  std::vector<std::uint32_t>& chunks = chunks_[channel];
  const auto index = static_cast<std::uint32_t>(chunk);
  if (chunks.empty() || chunks.back() != index) chunks.push_back(index);
}

}  // namespace millrace::recording
