// SPDX-License-Identifier: Apache-2.0
#include "training/processes/process_function.h"

#include <utility>

#include "schemas/json_text.h"

namespace millrace::training {

ProcessFunction::ProcessFunction(std::shared_ptr<const Catalog> catalog,
                                 std::shared_ptr<ProcessPool> pool, std::uint32_t source,
                                 std::shared_ptr<StreamFunction> here)
    : catalog_(std::move(catalog)),
      pool_(std::move(pool)),
      source_(source),
      here_(std::move(here)) {}

Result<void, ReadError> ProcessFunction::change(const StreamCopy& stream, Content& content) {
  if (!pool_->is_usable()) return here_->change(stream, content);
  const auto formats = catalog_->companions();
  const std::size_t frame = catalog_->frame_type().bytes();
  const std::uint64_t wanted = frames(stream, content.frames.size() / frame);
  // Each value may take up to 63 bytes more, so that the next one is aligned.
  constexpr std::size_t alignment = 64;
  ProcessCall call{.request = "{\"source\":" + std::to_string(source_) +
                              ",\"epoch\":" + std::to_string(stream.epoch) +
                              ",\"stream\":" + std::to_string(stream.stream) +
                              ",\"copy\":" + std::to_string(stream.copy) + ",\"name\":",
                   .given = {content.frames},
                   .room = wanted * frame + alignment,
                   .fault = DataFault::function,
                   .name = "augment"};
  append_file_name(call.request, catalog_->name(stream.stream));
  call.request += ",\"meta\":";
  append_file_name(call.request, catalog_->meta(stream.stream));
  for (std::size_t i = 0; i < formats.size(); ++i) {
    call.given.emplace_back(content.companions[i]);
    call.room += formats[i].entries_of(wanted) * formats[i].entry_bytes() + alignment;
  }
  auto values = pool_->call(call);
  if (!values) return std::move(values).error();
  if (values->size() != formats.size() + 1)
    return ReadError{DataFault::function, "augment: its process sent an invalid answer"};
  content.frames = std::move(values->front());
  for (std::size_t i = 0; i < formats.size(); ++i)
    content.companions[i] = std::move((*values)[i + 1]);
  return {};
}

}  // namespace millrace::training
