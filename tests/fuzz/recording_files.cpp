// SPDX-License-Identifier: Apache-2.0
// Recording files that are damaged and forged: recovery, and before and after it every read. The
// input is a sequence of changes of a good file. If the first byte says so, the checksums are made
// right afterwards, so that the code behind them is reached.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "recording/files/recovery.h"
#include "recording/format/checksums.h"
#include "recording/format/mcap.h"
#include "tests/fuzz/target.h"
#include "tests/recording/files/planned_file.h"

namespace millrace::recording {
namespace {

using fuzz::Choices;
using fuzz::require;
using mcap::Opcode;
using Content = std::vector<char>;

constexpr std::size_t most_changes = 64;

struct Base {
  PlannedFile open{3, 3}, sealed{3, 3, true};
  TemporaryDirectory folder{memory_folder()};
  Directory directory = expect(Directory::open(folder.path(), Directory::For::writing));

  void set(const Content& content) const {
    std::error_code ignored;
    std::filesystem::remove(path(), ignored);
    std::ofstream(path(), std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
  }
  std::string path() const { return folder / Directory::file_name(1); }
};

void change(Content& content, Choices& choices) {
  const std::uint8_t kind = choices.byte() % 6;
  const std::size_t at = choices.number(content.size());
  const auto place = content.begin() + static_cast<long>(at);
  const std::size_t length = choices.number(content.size() - at);
  switch (kind) {
    case 0:
      if (at < content.size()) *place = static_cast<char>(*place ^ 1 << length % 8);
      break;
    case 1:
      if (at < content.size()) *place = static_cast<char>(choices.byte());
      break;
    case 2: content.resize(at); break;
    case 3: content.erase(place, place + static_cast<long>(length)); break;
    case 4: {
      const Content copy(place, place + static_cast<long>(length));
      const auto to = static_cast<long>(choices.number(content.size()));
      content.insert(content.begin() + to, copy.begin(), copy.end());
      break;
    }
    default: std::fill_n(place, length, static_cast<char>(choices.byte())); break;
  }
}

void put_checksum(Content& content, std::size_t at, std::size_t begin, std::size_t end) {
  const std::uint32_t crc = crc32(std::as_bytes(std::span(content).subspan(begin, end - begin)));
  std::memcpy(content.data() + at, &crc, sizeof crc);
}

// Makes the checksums right, of the records that are one after the other.
void correct(Content& content) {
  std::size_t at = mcap::magic.size(), summary = 0;
  while (at + mcap::record_head <= content.size()) {
    std::uint64_t length = 0;
    std::memcpy(&length, content.data() + at + 1, sizeof length);
    const std::size_t begin = at + mcap::record_head;
    if (length > content.size() - begin) return;
    const std::size_t end = begin + length;
    switch (static_cast<Opcode>(static_cast<std::uint8_t>(content[at]))) {
      case Opcode::marker:
        if (length >= mcap::marker_content) put_checksum(content, begin + 32, begin, begin + 32);
        break;
      case Opcode::chunk:
        if (length >= 40) put_checksum(content, begin + 24, begin + 40, end);
        break;
      case Opcode::attachment:
        if (length >= 4) put_checksum(content, end - 4, begin, end - 4);
        break;
      case Opcode::data_end: summary = end; break;
      case Opcode::footer:
        if (length == 20 && summary > 0) put_checksum(content, end - 4, summary, end - 4);
        break;
      default: break;
    }
    at = end;
  }
}

// Reads all of the file. Returns its messages.
Messages check_reads(RecordingFile& file) {
  const Messages messages = read_all(file);
  for (std::size_t chunk = 0; chunk < file.chunks().size(); ++chunk)
    static_cast<void>(file.messages(chunk));
  static_cast<void>(file.parts());
  const bool good = file.verify();
  require(good == file.damages().empty(), "a file is good if it has no damage");
  require(file.torn_bytes() <= file.size(), "the tail is a part of the file");
  require(!file.refresh(), "the file does not grow");
  return messages;
}

void check(const Base& base, bool corrected) {
  auto file = RecordingFile::open(base.directory, 1);
  Messages before;
  bool sealed = false;
  if (file) {
    before = check_reads(*file);
    sealed = file->sealed();
    if (!corrected) require(is_part(before, base.sealed.all), "all values were recorded");
  }
  const auto recovered = recover(base.directory, 1);
  require(file.has_value() == recovered.has_value(), "a file that can be read can be recovered");
  if (!recovered) return;
  RecordingFile again = expect(RecordingFile::open(base.directory, 1));
  require(again.sealed(), "a recovered file is sealed");
  const Messages after = check_reads(again);
  require(sealed || again.damages().empty(), "a recovered file is good");
  // A forged file may have invalid slices, which recovery drops, and a slice twice.
  if (!corrected) require(before == after, "recovery keeps all messages, and adds none");
}

}  // namespace
}  // namespace millrace::recording

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace::recording;
  static const Base base;
  Choices choices(bytes, size);
  const std::uint8_t how = choices.byte();
  Content content = how % 2 == 0 ? base.sealed.bytes : base.open.bytes;
  const bool corrected = how / 2 % 2 == 1;
  for (std::size_t changes = 0; changes < most_changes && !choices.empty(); ++changes)
    change(content, choices);
  if (corrected) correct(content);
  base.set(content);
  check(base, corrected);
  return 0;
}
