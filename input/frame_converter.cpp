// SPDX-License-Identifier: Apache-2.0
#include "input/frame_converter.h"

#include <cassert>
#include <utility>

namespace millrace {

FrameConverter::FrameConverter(SampleFormat from, const FrameType& to)
    : from_(from),
      kernel_(value_kernel(from, to.element)),
      value_(size_of(from)),
      client_frame_(value_ * to.values),
      pipeline_frame_(to.bytes()) {}

void FrameConverter::convert(Bytes& message, MutableBytes to) {
  assert(to.size() % pipeline_frame_ == 0);
  assert(to.size() / pipeline_frame_ <= whole_frames(message.size()));
  if (to.empty()) return;
  if (has_partial()) {
    const Bytes missing = message.first(client_frame_ - partial_.size());
    partial_.insert(partial_.end(), missing.begin(), missing.end());
    convert_frames(partial_, to.first(pipeline_frame_));
    partial_.clear();
    message = message.subspan(missing.size());
    to = to.subspan(pipeline_frame_);
  }
  const Bytes whole = message.first(to.size() / pipeline_frame_ * client_frame_);
  convert_frames(whole, to);
  message = message.subspan(whole.size());
}

FrameConverter::Findings FrameConverter::finish(Bytes rest) {
  assert(whole_frames(rest.size()) == 0);
  partial_.insert(partial_.end(), rest.begin(), rest.end());
  return std::exchange(message_, {});
}

void FrameConverter::convert_frames(Bytes from, MutableBytes to) {
  if (from.empty()) return;
  const std::size_t values = from.size() / value_;
  message_.finite = message_.finite && all_finite(from_, from);
  message_.clamped += kernel_(from.data(), to.data(), values);
}

}  // namespace millrace
