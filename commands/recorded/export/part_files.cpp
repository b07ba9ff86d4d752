// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/export/part_files.h"

#include <algorithm>
#include <utility>

namespace millrace::recordings {

using Kind = Event::Kind;

PartFiles::PartFiles(int folder, const recording::RecordedStream& stream, const AudioFiles& how)
    : folder_(folder),
      frames_(stream.meta.frames),
      how_(how),
      stream_(std::to_string(stream.meta.number)) {}

Result<void, std::string> PartFiles::add(const recording::RecordedEvent& read) {
  const Kind kind = read.event.kind;
  if (kind == Kind::frames) return add_frames(read);
  const bool loses = kind == Kind::gap || (kind == Kind::open && read.position > end_);
  if (kind == Kind::open) open(read.position);
  if (kind == Kind::gap) end_ = read.position + read.event.count;
  const bool ends_segment =
      kind == Kind::flush || kind == Kind::reset || kind == Kind::gap || kind == Kind::open;
  if ((how_.by_segment && ends_segment) || (how_.split && loses)) {
    if (auto output = std::exchange(output_, std::nullopt)) return output->finish();
  }
  return {};
}

// The stream begins, or its next part.
void PartFiles::open(std::uint64_t position) {
  if (!opened_) begin_ = position;
  opened_ = true;
  end_ = files_.empty() ? position : std::max(position, files_.back().end);
}

Result<void, std::string> PartFiles::add_frames(const recording::RecordedEvent& read) {
  if (read.event.count == 0) return {};
  if (!output_) {
    const bool numbered = how_.by_segment || how_.split;
    File file;
    file.name = stream_ + (numbered ? "-" + std::to_string(files_.size() + 1) : "") +
                (how_.form == AudioForm::flac ? ".flac" : ".wav");
    file.begin = file.end = numbered ? read.position : begin_;
    auto output = AudioOutput::create(folder_, file.name, frames_, how_.form);
    if (!output) return output.error();
    output_ = std::move(*output);
    files_.push_back(std::move(file));
  }
  File& file = files_.back();
  if (const auto silent = output_->write_silence(read.position - file.end); !silent) return silent;
  if (const auto written = output_->write(read.frames); !written) return written;
  file.end = end_ = read.position + read.event.count;
  return {};
}

Result<void, std::string> PartFiles::finish() {
  auto output = std::exchange(output_, std::nullopt);
  if (!output) return {};
  if (const auto silent = output->write_silence(end_ - files_.back().end); !silent) return silent;
  files_.back().end = end_;
  return output->finish();
}

}  // namespace millrace::recordings
