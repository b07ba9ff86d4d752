// SPDX-License-Identifier: Apache-2.0
#include "tests/recording/crash_loop/life.h"

#include <random>
#include <set>

#include "recording/files/directory.h"
#include "recording/files/file_writer.h"
#include "recording/files/recording_file.h"
#include "recording/files/recovery.h"
#include "recording/files/rewrite.h"
#include "tests/recording/recording_files.h"

namespace millrace::recording {
namespace {

class Life {
 public:
  Life(const std::string& directory, std::uint64_t seed, Progress& progress)
      : directory_(expect(Directory::open(directory, Directory::For::writing))),
        random_(seed),
        seed_(seed),
        progress_(progress) {
    if (!directory_.lock_for_writing()) throw std::runtime_error("the directory has a writer");
  }

  void run() {
    recover_newest();
    progress_.first_stream = first_stream_;
    SlicePlan plan = plan_of(seed_, first_stream_);
    for (auto& file : progress_.files) {
      write(file, plan);
      if (draw(2) == 0) remove(file);
    }
  }

 private:
  std::uint64_t draw(std::uint64_t most) { return random_() % (most + 1); }

  void recover_newest() {
    const std::vector<FileNumber> numbers = directory_.list();
    if (numbers.empty()) return;
    const auto recovered = recover(directory_, numbers.back());
    if (!recovered) throw std::runtime_error(recovered.error());
    next_file_ = numbers.back() + 1;
    first_stream_ = next_stream(expect(RecordingFile::open(directory_, numbers.back())));
  }

  void write(Progress::File& file, SlicePlan& plan) {
    FileHead head = head_of(next_file_++);
    head.first_stream = std::max(first_stream_, plan.next_stream());
    file.first = slices_;
    file.added = slices_;
    file.committed = slices_;
    file.number = head.file;
    auto writer = expect(FileWriter::begin(expect(directory_.create(head.file)), head));
    for (std::uint64_t commits = 1 + draw(20); commits > 0; --commits) {
      for (std::uint64_t slices = 1 + draw(15); slices > 0; --slices) add(file, plan, writer);
      expect(writer.write());
      if (draw(3) == 0) continue;  // two writes before a sync
      expect(writer.sync());
      file.committed = slices_;
    }
    expect(writer.seal());
    file.committed = slices_;
    expect(directory_.sync());
  }

  void add(Progress::File& file, SlicePlan& plan, FileWriter& writer) {
    const PlannedSlice slice = plan.next();
    const Bytes frames = slice.frames;
    file.added = ++slices_;
    writer.add(slice.meta, slice.number, slice.wall, slice.slice(), {&frames, 1});
  }

  void remove(Progress::File& file) {
    const FileDescriptor lock = directory_.lock_for_maintenance();
    const RecordingFile sealed = expect(RecordingFile::open(directory_, file.number));
    const std::uint64_t stream = sealed.channels().begin()->second.number;
    file.removing = stream;
    expect(rewrite_without(directory_, file.number, {stream}));
    file.removed = true;
  }

  Directory directory_;
  std::mt19937_64 random_;
  std::uint64_t seed_;
  Progress& progress_;
  FileNumber next_file_ = 1;
  std::uint64_t first_stream_ = 1, slices_ = 0;
};

}  // namespace

SlicePlan plan_of(std::uint64_t seed, std::uint64_t first_stream) {
  return SlicePlan(seed, 5, 300, first_stream);
}

std::string live(const std::string& directory, std::uint64_t seed, Progress& progress) {
  try {
    Life(directory, seed, progress).run();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace millrace::recording
