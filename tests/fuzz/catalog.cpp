// SPDX-License-Identifier: Apache-2.0
// Replaces the catalog of a directory, or changes bytes of a good one: the streams that are listed
// must be those of the recording files. The first byte of an input: 0 for a whole catalog,
// otherwise changes follow, of an offset (3 bytes) and a byte each.
#include "recording/reader/catalog.h"

#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "recording/reader/recordings.h"
#include "tests/fuzz/target.h"
#include "tests/recording/recording_files.h"
#include "tests/support/temporary_directory.h"

namespace millrace::recording {
namespace {

using fuzz::require;

class Recorded {
 public:
  Recorded() {
    for (const FileNumber file : {FileNumber{1}, FileNumber{2}}) {
      FileWriter writer = expect(FileWriter::begin(expect(directory_.create(file)), head_of(file)));
      across_.add(writer, 10, file == 2);
      TestStream(10 + file).add(writer, file, true);
      expect(writer.seal());
    }
    expected_ = content();
    std::ifstream file(catalog(), std::ios::binary);
    good_ = {std::istreambuf_iterator<char>(file), {}};
    require(!good_.empty(), "there is a catalog");
  }

  const std::string& good() const { return good_; }

  void check(const std::string& bytes) {
    ::unlink(catalog().c_str());
    std::ofstream(catalog(), std::ios::binary) << bytes;
    require(content() == expected_, "the content is that of the recording files");
  }

 private:
  std::string catalog() const { return folder_ / "catalog.sqlite"; }

  std::string content() const {
    const auto recordings = expect(Recordings::open(folder_.path()));
    std::string text;
    for (const RecordedStream& stream : recordings->streams()) {
      for (const auto& [key, value] : to_metadata(stream.meta)) text += key + "=" + value + " ";
      text += std::to_string(stream.frames) + " " + std::to_string(stream.end) + " " +
              std::to_string(stream.first_file) + " " + std::to_string(stream.last_file) +
              (stream.whole ? " whole\n" : "\n");
      require(recordings->find(stream.meta.number)->meta == stream.meta, "a stream is found");
    }
    return text;
  }

  TemporaryDirectory folder_{memory_folder()};
  Directory directory_ = expect(Directory::open(folder_.path(), Directory::For::writing));
  TestStream across_{1};
  std::string expected_, good_;
};

}  // namespace
}  // namespace millrace::recording

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static millrace::recording::Recorded recorded;
  if (size == 0) return 0;
  std::string catalog = recorded.good();
  if (bytes[0] == 0) catalog.assign(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  for (std::size_t at = 1; bytes[0] != 0 && at + 4 <= size; at += 4) {
    const std::size_t offset =
        (std::size_t{bytes[at]} << 16 | std::size_t{bytes[at + 1]} << 8 | bytes[at + 2]);
    catalog[offset % catalog.size()] = static_cast<char>(bytes[at + 3]);
  }
  recorded.check(catalog);
  return 0;
}
