// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/recorded/export/audio_output.h"
#include "recording/reader/stream_reader.h"

namespace millrace::recordings {

// How the audio of streams is written to files.
struct AudioFiles {
  AudioForm form = AudioForm::wav;
  bool by_segment = false;  // a file per segment of a stream, instead of one per stream
  bool split = false;       // a new file after missing frames, instead of silence
};

// Writes the audio of one stream: 17.wav, or, if a stream may have several files, 17-1.wav,
// 17-2.wav … A part without frames has no file. Confined to one thread.
class PartFiles {
 public:
  // A file with the frames [begin, end) of the stream. Missing frames among them are silence.
  struct File {
    std::string name{};
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  // `folder` is the open folder of the files.
  PartFiles(int folder, const recording::RecordedStream& stream, const AudioFiles& how);

  // The next event of the stream. An error is a line that names the file.
  Result<void, std::string> add(const recording::RecordedEvent& read);
  // Completes the last file. Call it when the stream has no more events.
  Result<void, std::string> finish();

  const std::vector<File>& files() const { return files_; }

 private:
  void open(std::uint64_t position);
  Result<void, std::string> add_frames(const recording::RecordedEvent& read);

  const int folder_;
  const FrameType frames_;
  const AudioFiles how_;
  const std::string stream_;
  std::optional<AudioOutput> output_;
  std::vector<File> files_;
  bool opened_ = false;
  std::uint64_t begin_ = 0;  // the position of the first open
  std::uint64_t end_ = 0;    // the position after the last event
};

}  // namespace millrace::recordings
