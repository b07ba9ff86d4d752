// SPDX-License-Identifier: Apache-2.0
#include "input/containers/sample_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "base/file_descriptor.h"
#include "input/containers/bytes_behind.h"
#include "input/containers/header_reader.h"

namespace millrace {
namespace {

constexpr std::uint32_t extensible = 0xfffe;
constexpr std::uint64_t unknown_size = 0x7fff'0000;  // and more
constexpr std::uint64_t ds64_size = 0xffff'ffff;     // RF64: the chunk `ds64` has the size
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 62;
constexpr int most_chunks = 1000;

// How a kind of file writes its chunks.
struct Layout {
  std::string_view samples;    // name of the chunk with the samples
  std::size_t name_rest = 0;   // bytes of a name after the first four
  std::size_t size_bytes = 4;  // the size of a chunk has
  bool big_endian = false;
  std::uint64_t counted_head = 0;  // bytes of the chunk's head that its size counts
  std::uint64_t align = 2;         // chunks begin at multiples
  std::uint64_t before = 0;        // bytes in the chunk before the samples
};

constexpr Layout wav{.samples = "data"};
constexpr Layout rifx{.samples = "data", .big_endian = true};
constexpr Layout aiff{.samples = "SSND", .big_endian = true, .before = 8};
constexpr Layout w64{
    .samples = "data", .name_rest = 12, .size_bytes = 8, .counted_head = 24, .align = 8};
constexpr Layout caf{
    .samples = "data", .size_bytes = 8, .big_endian = true, .align = 1, .before = 4};

// The rest of the head of a file that begins with `magic`. nullopt: it has other chunks, or none.
std::optional<Layout> layout_of(const std::string& magic, HeaderReader& header) {
  if (magic == "RIFF" || magic == "RIFX" || magic == "RF64" || magic == "BW64") {
    header.skip(4);
    if (header.name() != "WAVE") return std::nullopt;
    return magic == "RIFX" ? rifx : wav;
  }
  if (magic == "FORM") {
    header.skip(4);
    if (const std::string kind = header.name(); kind != "AIFF" && kind != "AIFC")
      return std::nullopt;
    return aiff;
  }
  if (magic == "riff") {
    header.skip(12 + 8 + 16);
    return w64;
  }
  if (magic != "caff") return std::nullopt;
  header.skip(4);
  return caf;
}

// AU has no chunks.
SampleBytes read_au(HeaderReader& header) {
  SampleBytes found{.begin = header.number(4, true)};
  found.field = {.at = header.at(), .bytes = 4, .big_endian = true};
  found.declared = header.number(4, true);
  header.skip(std::max(found.begin, header.at()) - header.at());
  return found;
}

WavFormat read_wav_format(HeaderReader& header, std::uint64_t size) {
  const auto next = [&header](std::size_t bytes) {
    return static_cast<std::uint32_t>(header.number(bytes));
  };
  const std::uint64_t begin = header.at();
  WavFormat found{.kind = next(2), .channels = next(2), .rate = next(4)};
  header.skip(4);
  found.block = next(2);
  found.bits = next(2);
  if (found.kind == extensible && size >= 26) {
    header.skip(8);
    found.kind = next(2);
  }
  header.skip(std::max(begin + size, header.at()) - header.at());
  return found;
}

// The size of an ID3 tag has 7 bits per byte.
void skip_id3(HeaderReader& header) {
  header.skip(2);
  std::uint64_t size = 0;
  for (int i = 0; i < 4; ++i) size = size << 7 | (header.number(1) & 0x7f);
  header.skip(size);
}

// The chunks of a file whose header begins at `head`, up to its samples.
class Chunks {
 public:
  Chunks(const Layout& layout, std::uint64_t head, HeaderReader& header)
      : layout_(layout), head_(head), header_(header) {}

  std::optional<SampleBytes> find_samples() {
    for (int chunk = 0; chunk < most_chunks; ++chunk) {
      const std::string name = header_.name();
      header_.skip(layout_.name_rest);
      const HeaderField field{.at = header_.at(),
                              .bytes = layout_.size_bytes,
                              .more = layout_.counted_head + layout_.before,
                              .big_endian = layout_.big_endian};
      const std::uint64_t size = header_.number(layout_.size_bytes, layout_.big_endian);
      if (header_.ended()) return std::nullopt;
      if (name == layout_.samples) return samples(size, field);
      read(name, size - std::min(size, layout_.counted_head));
    }
    return std::nullopt;
  }

 private:
  void read(const std::string& name, std::uint64_t size) {
    const std::uint64_t end = header_.at() + std::min(size, most_bytes);
    if (name == "fmt " && !layout_.big_endian && size >= 16) {
      found_.format = read_wav_format(header_, size);
    } else if (name == "ds64" && size >= 16) {
      header_.skip(8);
      long_field_ = {.at = header_.at(), .bytes = 8};
      long_size_ = header_.number(8);
    }
    const std::uint64_t next =
        end + (layout_.align - (end - head_) % layout_.align) % layout_.align;
    header_.skip(next - std::min(next, header_.at()));
  }

  SampleBytes samples(std::uint64_t size, const HeaderField& field) {
    header_.skip(layout_.before);
    found_.begin = header_.at();
    found_.field = field;
    found_.declared = size - std::min(size, field.more);
    if (long_field_.bytes > 0 && size == ds64_size) {
      found_.field = long_field_;
      found_.declared = long_size_;
    } else {
      found_.ds64 = long_field_;
    }
    return found_;
  }

  const Layout layout_;
  const std::uint64_t head_;
  HeaderReader& header_;
  SampleBytes found_;
  HeaderField long_field_;
  std::uint64_t long_size_ = 0;
};

std::uint64_t bytes_read(int file, std::uint64_t at, std::span<std::uint8_t> into) {
  const ssize_t got = ::pread(file, into.data(), into.size(), static_cast<off_t>(at));
  return static_cast<std::uint64_t>(std::max<ssize_t>(got, 0));
}

// True if samples follow those that the header declares.
bool has_more(int file, const SampleBytes& header) {
  BytesBehind behind(header);
  for (std::uint64_t at = header.begin + header.declared; !behind.decided();) {
    const std::uint64_t got = bytes_read(file, at, behind.room());
    behind.add(got);
    at += got;
  }
  return behind.are_samples();
}

}  // namespace

bool SampleBytes::is_known() const {
  return declared > 0 && declared < (field.bytes == 4 ? unknown_size : most_bytes);
}

std::optional<SampleBytes> read_sample_bytes(HeaderReader& header) {
  std::uint64_t head = 0;
  std::string magic = header.name();
  if (magic.starts_with("ID3")) {
    skip_id3(header);
    head = header.at();
    magic = header.name();
  }
  std::optional<SampleBytes> found;
  if (magic == ".snd")
    found = read_au(header);
  else if (const auto layout = layout_of(magic, header))
    found = Chunks(*layout, head, header).find_samples();
  if (!found || header.ended()) return std::nullopt;
  found->head = head;
  found->is_bw64 = magic == "BW64";
  return found;
}

std::optional<SampleExtent> find_samples(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  HeaderReader reader(file.get());
  const auto header = read_sample_bytes(reader);
  if (!header) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  const std::uint64_t available = size - std::min(size, header->begin);
  SampleExtent extent{.header = *header, .held = available, .whole = available};
  if (header->declared > available) {
    if (header->is_known()) extent.whole = header->declared;
  } else if (!has_more(file.get(), *header)) {
    extent.held = extent.whole = header->declared;
  }
  return extent;
}

}  // namespace millrace
