// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/frames/frame_source.h"

#include "training/catalogs/frames/decoded_frames.h"
#include "training/catalogs/frames/pcm_frames.h"

namespace millrace::training {

Result<std::unique_ptr<FrameSource>, ReadError> open_frames(const AudioStream& stream) {
  return stream.place > 0 && stream.frames > 0 && !stream.conversion ? PcmFrames::open(stream)
                                                                     : DecodedFrames::open(stream);
}

}  // namespace millrace::training
