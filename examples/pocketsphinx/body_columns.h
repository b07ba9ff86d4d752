// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/frame_type.h"
#include "base/result.h"
#include "base/row_columns.h"

namespace millrace::pocketsphinx {

// Returns in which columns of the tensor the bodies of a pipeline's rows are. A decoder keeps the
// audio before a row itself, so it reads only the body: the frames that no earlier row had. `chunk`
// is the pipeline's chunk rule, a JSON object. The error is a sentence about the property of the
// pipeline that does not fit the decoder.
Result<RowColumns, std::string> body_columns(const FrameType& frames, std::string_view chunk);

}  // namespace millrace::pocketsphinx
