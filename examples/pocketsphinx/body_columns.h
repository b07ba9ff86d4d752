// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/frame_type.h"
#include "base/result.h"
#include "base/row_columns.h"

namespace millrace::pocketsphinx {

// Where the bodies of a pipeline's rows lie. A decoder keeps its own past: of each row it takes the
// body, the frames that no row before had. `chunk` is the pipeline's chunk rule, a JSON object. The
// error is a sentence that says what of the pipeline does not fit the decoder.
Result<RowColumns, std::string> body_columns(const FrameType& frames, std::string_view chunk);

}  // namespace millrace::pocketsphinx
