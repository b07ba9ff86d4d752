// SPDX-License-Identifier: Apache-2.0
#include "input/containers/bytes_behind.h"

#include <algorithm>
#include <string_view>

namespace millrace {
namespace {

constexpr std::size_t shown = 64;                 // bytes that show what they are
constexpr std::uint64_t longest_chunk = 1 << 26;  // with a name that is unknown

// Chunks and tags that follow samples, whatever their size.
constexpr std::array<std::string_view, 38> names{
    "LIST", "fact", "bext", "iXML", "aXML", "axml", "_PMX", "cue ",    "plst", "smpl",
    "inst", "acid", "JUNK", "junk", "PAD ", "FLLR", "id3 ", "ID3 ",    "DISP", "PEAK",
    "cart", "chna", "umid", "levl", "MARK", "INST", "COMT", "NAME",    "AUTH", "ANNO",
    "(c) ", "APPL", "CHAN", "info", "strg", "ID3",  "TAG",  "APETAGEX"};

bool is_printed(char c) { return c >= ' ' && c <= '~'; }

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_chunk(std::string_view text, bool big_endian) {
  if (std::ranges::any_of(names, [&](auto name) { return text.starts_with(name); })) return true;
  if (text.size() < 8) return false;
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < 4; ++i)
    size |= std::uint64_t{static_cast<std::uint8_t>(text[big_endian ? 7 - i : 4 + i])} << (8 * i);
  return std::ranges::all_of(text.substr(0, 4), is_printed) && size < longest_chunk;
}

// The bytes of the first character in UTF-8; 0: text does not have it. It may be cut.
std::size_t character(std::string_view text) {
  const auto lead = static_cast<std::uint8_t>(text.front());
  if (lead < 0x80) return is_printed(text.front()) || is_space(text.front()) ? 1 : 0;
  const std::size_t size = lead < 0xc2   ? 0
                           : lead < 0xe0 ? 2
                           : lead < 0xf0 ? 3
                           : lead < 0xf5 ? 4
                                         : 0;
  const std::string_view rest = text.substr(1, std::max<std::size_t>(size, 1) - 1);
  const bool continued = std::ranges::all_of(
      rest, [](char c) { return (static_cast<std::uint8_t>(c) & 0xc0) == 0x80; });
  return continued ? size : 0;
}

bool is_utf8_text(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = character(text);
    if (size == 0) return false;
    text.remove_prefix(std::min(size, text.size()));
  }
  return true;
}

// The beginning of XML or HTML.
bool is_markup(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  text.remove_prefix(std::min(text.find_first_not_of(" \r\n\t"), text.size()));
  return text.size() > 1 && text[0] == '<' &&
         (is_letter(text[1]) || text[1] == '?' || text[1] == '!');
}

// Quiet samples of one byte, as those of G.711, may all be letters: they are text only if they
// begin like XML. A wider value that is repeated may be silence.
bool is_text(std::string_view text, const SampleBytes& header) {
  if (!is_utf8_text(text)) return false;
  if (!header.format || header.format->bits <= 8) return is_markup(text);
  const std::size_t block = std::min<std::size_t>(header.format->block, text.size());
  return !text.starts_with(text.substr(block));
}

}  // namespace

void BytesBehind::add(std::size_t count) {
  count_ += count;
  if (header_.is_known()) drop_zeros();
  if (count > 0 && count_ < shown) return;
  decided_ = true;
  are_samples_ = judge();
}

// Zeros are samples only if others follow.
void BytesBehind::drop_zeros() {
  const auto begin = std::ranges::find_if(others(), [](std::uint8_t byte) { return byte != 0; });
  const auto zeros = static_cast<std::size_t>(begin - others().begin());
  std::copy_n(bytes_.begin() + zeros, count_ - zeros, bytes_.begin());
  count_ -= zeros;
  zeros_ += zeros;
}

// A length is contradicted only by more than a few bytes, and a long field was written by a program
// that knew the length.
bool BytesBehind::judge() const {
  const bool is_known = header_.is_known();
  if (is_known && (header_.field.bytes != 4 || count_ == 0)) return false;
  const std::size_t block = header_.format ? header_.format->block : 0;
  if (zeros_ + count_ < (is_known ? shown : std::clamp<std::size_t>(block, 8, shown))) return false;
  const std::string_view all(reinterpret_cast<const char*>(bytes_.data()), count_);
  const auto is_other = [&](std::string_view text) {
    text = text.substr(0, shown);
    return is_chunk(text, header_.field.big_endian) || (is_known && is_text(text, header_));
  };
  // Chunks begin at even offsets, so that a byte may come before them.
  const bool is_padded = (header_.begin - header_.head + header_.declared) % 2 == 1 && zeros_ == 0;
  return !is_other(all) && !(is_padded && is_other(all.substr(1)));
}

}  // namespace millrace
