// SPDX-License-Identifier: Apache-2.0
#include "input/containers/mpeg_frames.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "base/file_descriptor.h"
#include "input/containers/file_bytes.h"

namespace millrace {
namespace {

constexpr std::size_t header_bytes = 4;

std::uint32_t big_endian(std::string_view four) {
  std::uint32_t value = 0;
  for (const char c : four) value = value << 8 | static_cast<std::uint8_t>(c);
  return value;
}

// The header of a frame.
struct Frame {
  std::uint32_t kind = 0;     // the bits that all frames of a file share: version, layer, rate
  std::uint32_t bytes = 0;    // with its header
  std::uint32_t samples = 0;  // per channel
  std::uint32_t side = 0;     // bytes of its side information
};

constexpr std::array<std::array<std::uint32_t, 16>, 5> kilobits{{
    {0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 0},  // 1, layer I
    {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 0},     // 1, layer II
    {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0},      // 1, layer III
    {0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256, 0},     // 2, layer I
    {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0},          // 2, layers II, III
}};
constexpr std::array<std::uint32_t, 3> hertz{44100, 48000, 32000};

// nullopt: these four bytes are no header, or the size of the frame is not in it.
std::optional<Frame> frame_from(std::uint32_t head) {
  const std::uint32_t version = head >> 19 & 3, layer = 4 - (head >> 17 & 3);
  const std::uint32_t rate = head >> 10 & 3, bit_rate = head >> 12 & 15;
  if (head >> 21 != 0x7ff || version == 1 || layer == 4 || rate == 3) return std::nullopt;
  const bool first = version == 3, mono = (head >> 6 & 3) == 3;
  const std::uint32_t row = first ? layer - 1 : layer == 1 ? 3 : 4;
  const std::uint32_t bits = kilobits[row][bit_rate] * 1000;
  if (bits == 0) return std::nullopt;
  const std::uint32_t per_second = hertz[rate] >> (first ? 0 : version == 2 ? 1 : 2);
  const std::uint32_t padding = head >> 9 & 1;
  Frame frame{.kind = head & 0xfffe0c00};
  frame.samples = layer == 1 ? 384 : layer == 3 && !first ? 576 : 1152;
  frame.bytes = layer == 1 ? (12 * bits / per_second + padding) * 4
                           : frame.samples / 8 * bits / per_second + padding;
  frame.side = first ? (mono ? 17 : 32) : (mono ? 9 : 17);
  return frame;
}

class FrameCount {
 public:
  explicit FrameCount(int file) : file_(file) {}

  std::optional<MpegFrames> count() {
    for (std::uint64_t at = 0;;) {
      const std::string_view next = file_.read(at, 10);
      if (next.size() < header_bytes) break;
      at += next.starts_with("ID3") && next.size() == 10 ? tag_bytes(next) : step(at, next);
    }
    if (found_.samples == 0) return std::nullopt;
    return found_;
  }

 private:
  static std::uint64_t tag_bytes(std::string_view tag) {
    std::uint64_t size = 0;
    for (const char c : tag.substr(6)) size = size << 7 | (static_cast<std::uint8_t>(c) & 0x7f);
    return size + 10;
  }

  // The bytes from here to the next frame or tag.
  std::uint64_t step(std::uint64_t at, std::string_view next) {
    const auto frame = frame_from(big_endian(next.substr(0, header_bytes)));
    if (!frame || (kind_ != 0 && frame->kind != kind_) || !is_followed(at, *frame)) {
      in_step_ = false;
      return 1;
    }
    kind_ = frame->kind;
    in_step_ = true;
    if (found_.samples == 0 && read_xing(at, *frame))
      found_.has_xing = true;
    else
      ++found_.frames;
    found_.samples = frame->samples;
    found_.end = at + frame->bytes;
    return frame->bytes;
  }

  // A header that does not follow another frame counts only if a frame, or the end, follows it.
  bool is_followed(std::uint64_t at, const Frame& frame) {
    const std::string_view next = file_.read(at + frame.bytes, header_bytes);
    if (next.size() < header_bytes) return in_step_ && !file_.read(at + frame.bytes - 1, 1).empty();
    const auto after = frame_from(big_endian(next));
    return in_step_ || (after && after->kind == frame.kind);
  }

  bool read_xing(std::uint64_t at, const Frame& frame) {
    const std::uint64_t tag = at + header_bytes + frame.side;
    const std::string head(file_.read(tag, 12));
    if (head.size() < 12 || (!head.starts_with("Xing") && !head.starts_with("Info"))) return false;
    if ((head[7] & 1) == 0) return true;
    found_.counted = big_endian(std::string_view(head).substr(8));
    found_.counted_at = tag + 8;
    return true;
  }

  FileBytes file_;
  MpegFrames found_;
  std::uint32_t kind_ = 0;
  bool in_step_ = false;  // the bytes before are a frame
};

}  // namespace

std::optional<MpegFrames> count_mpeg_frames(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  return FrameCount(file.get()).count();
}

}  // namespace millrace
