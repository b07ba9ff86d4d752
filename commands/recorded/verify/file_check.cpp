// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/verify/file_check.h"

#include <algorithm>
#include <string>
#include <vector>

namespace millrace::recordings {

using recording::Damage;
using recording::SliceMessage;
using recording::StreamPart;

void FileCheck::run(const std::function<void(std::uint64_t)>& read) {
  file_.verify([&](std::size_t chunk, const std::vector<SliceMessage>& messages) {
    for (const SliceMessage& message : messages) check_slice(message);
    read(file_.chunks()[chunk].offset + file_.chunks()[chunk].bytes);
  });
  for (const Damage& damage : file_.damages())
    problems_.add(number_, "at byte " + std::to_string(damage.offset) + ", " +
                               counted(damage.bytes, "byte") + ": " + damage.why);
  if (file_.sealed() && file_.damages().empty()) check_parts();
}

void FileCheck::check_slice(const SliceMessage& message) {
  const auto invalid = [&](const std::string& what) {
    problems_.add(number_, "channel " + std::to_string(message.channel) + ", slice " +
                               std::to_string(message.number) + ": " + what);
  };
  const auto channel = file_.channels().find(message.channel);
  if (channel == file_.channels().end()) return invalid("the file does not have the channel");
  const recording::StreamMeta& meta = channel->second;
  const auto slice = decoder_.slice(message.bytes, meta.number, meta.frames.bytes());
  if (!slice) return invalid("the slice is invalid");
  order_.add(number_, file_.head().run, message.number, *slice);
  parts_.add(message.channel, message.number, *slice);
}

// Slices of damaged chunks, which were left out when a stream was removed: the summary still counts
// them. True if there are any.
bool FileCheck::check_left_out(const std::vector<StreamPart>& found,
                               const std::vector<StreamPart>& listed) {
  bool any = false;
  for (const StreamPart& part : listed) {
    const auto here = std::ranges::lower_bound(found, part.stream, {}, &StreamPart::stream);
    const bool is_there = here != found.end() && here->stream == part.stream;
    const std::uint32_t slices = is_there ? here->slices : 0;
    if (!part.lost || part.slices <= slices) continue;
    const std::uint32_t lost = part.slices - slices;
    problems_.add(number_, part.stream, is_there ? here->end : part.begin,
                  counted(lost, "slice") + (lost == 1 ? " is" : " are") +
                      " lost, because of damage before the file was rewritten");
    any = true;
  }
  return any;
}

void FileCheck::check_parts() {
  std::vector<StreamPart> found = parts_.list(), listed = file_.parts();
  // The summary may know of a loss that the chunks do not show: after damage was cut out.
  for (StreamPart& part : found) part.lost = false;
  if (check_left_out(found, listed)) return;
  for (StreamPart& part : listed) part.lost = false;
  const auto [in_chunks, in_summary] = std::ranges::mismatch(found, listed);
  if (in_chunks != found.end())
    problems_.add(number_, in_chunks->stream, in_chunks->begin,
                  "the summary of the file does not list the stream as it is in the chunks");
  else if (in_summary != listed.end())
    problems_.add(number_, in_summary->stream, in_summary->begin,
                  "the summary of the file lists the stream, but no chunk has it");
}

}  // namespace millrace::recordings
