// SPDX-License-Identifier: Apache-2.0
#include "input/containers/sample_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/file_descriptor.h"
#include "input/containers/header_reader.h"

namespace millrace {
namespace {

constexpr std::uint32_t extensible = 0xfffe;
constexpr std::uint64_t unknown_size = 0x7fff'0000;  // and more
constexpr std::uint64_t ds64_size = 0xffff'ffff;     // RF64: the chunk `ds64` has the size
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 62;
constexpr int most_chunks = 1000;
constexpr std::uint64_t longest_chunk = 1 << 26;  // behind the samples, with a name that is unknown

// Chunks and tags that follow samples, whatever their size.
constexpr std::array<std::string_view, 38> names_behind{
    "LIST", "fact", "bext", "iXML", "aXML", "axml", "_PMX", "cue ",    "plst", "smpl",
    "inst", "acid", "JUNK", "junk", "PAD ", "FLLR", "id3 ", "ID3 ",    "DISP", "PEAK",
    "cart", "chna", "umid", "levl", "MARK", "INST", "COMT", "NAME",    "AUTH", "ANNO",
    "(c) ", "APPL", "CHAN", "info", "strg", "ID3",  "TAG",  "APETAGEX"};

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

// The chunks of a file, up to its samples.
class Chunks {
 public:
  Chunks(const Layout& layout, HeaderReader& header) : layout_(layout), header_(header) {}

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
    const std::uint64_t next = end + (layout_.align - end % layout_.align) % layout_.align;
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
    }
    return found_;
  }

  const Layout layout_;
  HeaderReader& header_;
  SampleBytes found_;
  HeaderField long_field_;
  std::uint64_t long_size_ = 0;
};

bool is_letter(char c) { return c >= ' ' && c <= '~'; }

std::uint64_t bytes_read(int file, std::uint64_t at, std::span<std::uint8_t> into) {
  const ssize_t got = ::pread(file, into.data(), into.size(), static_cast<off_t>(at));
  return static_cast<std::uint64_t>(std::max<ssize_t>(got, 0));
}

// True if a file that was written in sectors has only zeros from here on.
bool only_zeros(int file, std::uint64_t at) {
  std::array<std::uint8_t, 4096> part{};
  for (std::uint64_t got = 0; (got = bytes_read(file, at, part)) > 0; at += got)
    if (!std::ranges::all_of(std::span(part).first(got), [](std::uint8_t b) { return b == 0; }))
      return false;
  return true;
}

// True if samples follow those that the header declares.
bool has_more(int file, const SampleBytes& header) {
  const std::uint64_t behind = header.begin + header.declared;
  std::array<std::uint8_t, behind_bytes> next{};
  const std::uint64_t count = bytes_read(file, behind, next);
  return are_samples(header, std::span(next).first(count)) && !only_zeros(file, behind);
}

bool is_chunk(std::string_view text, bool big_endian) {
  if (std::ranges::any_of(names_behind, [&](auto name) { return text.starts_with(name); }))
    return true;
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < 4; ++i)
    size |= std::uint64_t{static_cast<std::uint8_t>(text[big_endian ? 7 - i : 4 + i])} << (8 * i);
  return std::ranges::all_of(text.substr(0, 4), is_letter) && size < longest_chunk;
}

// A value of 8 bits that is repeated may be silence.
bool is_text(std::string_view text) {
  const auto is_written = [](char c) {
    return is_letter(c) || c == '\n' || c == '\r' || c == '\t';
  };
  return std::ranges::all_of(text, is_written) &&
         text.find_first_not_of(text.front()) != std::string_view::npos;
}

}  // namespace

bool SampleBytes::is_known() const {
  return declared > 0 && declared < (field.bytes == 4 ? unknown_size : most_bytes);
}

std::optional<SampleBytes> read_sample_bytes(HeaderReader& header) {
  std::string magic = header.name();
  if (magic.starts_with("ID3")) {
    skip_id3(header);
    magic = header.name();
  }
  if (magic == ".snd") {
    const SampleBytes found = read_au(header);
    return header.ended() ? std::nullopt : std::optional(found);
  }
  const auto layout = layout_of(magic, header);
  if (!layout || header.ended()) return std::nullopt;
  auto found = Chunks(*layout, header).find_samples();
  if (found) found->is_bw64 = magic == "BW64";
  return found;
}

// A length that is not 0 is contradicted only by more than a few bytes, and a long field was
// written by a program that knew the length.
bool are_samples(const SampleBytes& header, std::span<const std::uint8_t> next) {
  const std::size_t block = header.format ? header.format->block : 0;
  const bool has_length = header.declared > 0;
  if (has_length && header.field.bytes != 4) return false;
  if (next.size() < (has_length ? behind_bytes : std::clamp<std::size_t>(block, 8, behind_bytes)))
    return false;
  const std::string_view text(reinterpret_cast<const char*>(next.data()), next.size());
  const bool padded = (header.begin + header.declared) % 2 == 1;  // chunks begin at even offsets
  if (is_chunk(text, header.field.big_endian)) return false;
  if (padded && text.size() > 8 && is_chunk(text.substr(1), header.field.big_endian)) return false;
  return !is_text(text);
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
  const std::uint64_t declared = header->declared;
  if (declared == 0) {
    if (!has_more(file.get(), *header)) extent.held = extent.whole = 0;
  } else if (declared <= available) {
    if (!has_more(file.get(), *header)) extent.held = extent.whole = declared;
  } else if (header->is_known()) {
    extent.whole = declared;
  }
  return extent;
}

}  // namespace millrace
