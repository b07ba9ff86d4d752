// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/event.h"
#include "base/frame_type.h"
#include "recording/format/stream_meta.h"
#include "recording/reader/recordings.h"
#include "schemas/client_command.h"
#include "schemas/slices/slice.h"
#include "schemas/stream_request.h"

namespace millrace {

// The messages of a client, so that a service gets a recorded stream again. Pure, except the last
// function.

// The request that opens the stream: its recorded name, pipeline and options, in the format of the
// recorded frames. It declines to be recorded. `first`: the event after the open; the client had
// requested a size if that is a size of the client.
StreamRequest request_of(const recording::StreamMeta& meta, const Event& first);

// The command for an event. nullopt: none, because the event is one of frames, the service makes
// the decision anew (sizes, and segments that voice, length or a worker ended), or the event is an
// abort, for which the connection ends.
std::optional<ClientMessage> command_of(const recording::RecordedEvent& read);

// Appends frames of this type in the format of the request: their bytes, or floats if clients
// cannot send the type (f16 audio, s16 features).
void append_for_client(Bytes frames, const FrameType& type, std::vector<std::byte>& into);
// The bytes of one frame in this format.
std::size_t client_frame_bytes(const FrameType& type);

// True if the last recorded event of the stream is no `end`. Reads the last chunks of the stream.
bool ends_without_end(recording::Recordings& recordings, const recording::RecordedStream& stream);

}  // namespace millrace
