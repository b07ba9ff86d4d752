// SPDX-License-Identifier: Apache-2.0
#include "input/audio_file.h"

#include <sndfile.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "input/containers/mpeg_frames.h"
#include "input/containers/ogg_chain.h"
#include "input/containers/patched_file.h"
#include "input/containers/sample_bytes.h"
#include "input/value_kernels.h"

namespace millrace {
namespace {

constexpr std::size_t part_values = 16384;  // converted at once, so that they stay in the cache

std::string reason_of_failed_open() {
  constexpr std::string_view system = "System error : ";
  std::string reason = sf_strerror(nullptr);
  if (reason.starts_with(system)) reason.erase(0, system.size());
  while (reason.ends_with('.') || reason.ends_with('\n')) reason.pop_back();
  return reason;
}

// In these formats libsndfile finds each frame at once. In others it decodes from somewhere before
// the frame, and the values may differ.
bool has_exact_seek(int format) {
  const int kind = format & SF_FORMAT_TYPEMASK;
  if (kind == SF_FORMAT_OGG || kind == SF_FORMAT_MPEG) return false;
  switch (format & SF_FORMAT_SUBMASK) {
    case SF_FORMAT_PCM_S8:
    case SF_FORMAT_PCM_U8:
    case SF_FORMAT_PCM_16:
    case SF_FORMAT_PCM_24:
    case SF_FORMAT_PCM_32:
    case SF_FORMAT_FLOAT:
    case SF_FORMAT_DOUBLE:
    case SF_FORMAT_ULAW:
    case SF_FORMAT_ALAW: return true;
    default: return false;
  }
}

bool has_deep_values(int format) {
  switch (format & SF_FORMAT_SUBMASK) {
    case SF_FORMAT_PCM_24:
    case SF_FORMAT_PCM_32:
    case SF_FORMAT_FLOAT:
    case SF_FORMAT_DOUBLE:
    case SF_FORMAT_ALAC_20:
    case SF_FORMAT_ALAC_24:
    case SF_FORMAT_ALAC_32: return true;
    default: return false;
  }
}

PatchedFile::Patch patch(const HeaderField& field, std::uint64_t value) {
  PatchedFile::Patch made{.at = field.at, .count = field.bytes};
  const std::uint64_t most = field.bytes < 8 ? (std::uint64_t{1} << (8 * field.bytes)) - 1 : ~0ull;
  value = std::min(value, most);
  for (std::size_t i = 0; i < field.bytes; ++i)
    made.bytes[field.big_endian ? field.bytes - 1 - i : i] =
        static_cast<std::uint8_t>(value >> (8 * i));
  return made;
}

// libsndfile does not know the name BW64 and the length that was found, and of RF64 it reads only
// the length in `ds64`.
std::vector<PatchedFile::Patch> patches_for(const SampleExtent& extent) {
  std::vector<PatchedFile::Patch> patches;
  const SampleBytes& header = extent.header;
  if (header.is_bw64)
    patches.push_back({.at = header.head, .bytes = {'R', 'F', '6', '4'}, .count = 4});
  if (extent.whole != header.declared)
    patches.push_back(patch(header.field, extent.whole + header.field.more));
  if (header.ds64.bytes > 0) patches.push_back(patch(header.ds64, extent.whole));
  return patches;
}

// The tag before RF64 is an error to libsndfile, and chunks behind W64 are samples.
PatchedFile::Shown shown_of(const SampleExtent& extent) {
  const SampleBytes& header = extent.header;
  const bool is_long = header.format && header.field.bytes == 8 && extent.held == extent.whole;
  return {.begin = header.head, .end = is_long ? header.begin + extent.held : 0};
}

PatchedFile& patched_file(void* user) { return *static_cast<PatchedFile*>(user); }

SF_VIRTUAL_IO patched_input{
    .get_filelen = [](void* user) -> sf_count_t { return patched_file(user).size(); },
    .seek = [](sf_count_t offset, int whence, void* user) -> sf_count_t {
      return patched_file(user).seek(offset, whence);
    },
    .read = [](void* into, sf_count_t count, void* user) -> sf_count_t {
      return patched_file(user).read(
          {static_cast<std::uint8_t*>(into), static_cast<std::size_t>(count)});
    },
    .write = [](const void*, sf_count_t, void*) -> sf_count_t { return 0; },
    .tell = [](void* user) -> sf_count_t { return patched_file(user).tell(); }};

}  // namespace

void AudioFile::Close::operator()(sf_private_tag* file) const { sf_close(file); }

AudioFile::AudioFile(std::string path) : path_(std::move(path)) {}
AudioFile::AudioFile(AudioFile&& other) noexcept = default;
AudioFile& AudioFile::operator=(AudioFile&& other) noexcept = default;
AudioFile::~AudioFile() = default;

Result<AudioFile, std::string> AudioFile::open(const std::string& path) {
  SF_INFO format{};
  auto file = open(path, format);
  if (file && (format.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_OGG && is_ogg_chain(path))
    return "has several recordings one behind the other (chained Ogg), of which only the first can "
           "be read: cut or convert the file";
  return file;
}

Result<AudioFile, std::string> AudioFile::reopen(const std::string& path) {
  SF_INFO format{};
  return open(path, format);
}

Result<AudioFile, std::string> AudioFile::open(const std::string& path, SF_INFO& format) {
  AudioFile file(path);
  const auto extent = find_samples(path);
  if (const auto opened = file.open(extent ? &*extent : nullptr, format); !opened)
    return opened.error();
  if ((format.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_MPEG) file.open_mpeg(format);
  file.rate_ = format.samplerate;
  file.channels_ = static_cast<std::uint32_t>(format.channels);
  file.pcm16_ = (format.format & SF_FORMAT_SUBMASK) == SF_FORMAT_PCM_16;
  file.deep_ = has_deep_values(format.format);
  file.exact_seek_ = format.seekable != 0 && has_exact_seek(format.format);
  // A FLAC file that was written to a pipe has no length.
  if (format.frames >= 0 && format.frames < SF_COUNT_MAX)
    file.frames_ = file.held_ = static_cast<std::uint64_t>(format.frames);
  if (extent) file.set_frames(*extent);
  return file;
}

Result<void, std::string> AudioFile::open(const SampleExtent* extent, SF_INFO& format) {
  if (extent != nullptr) {
    auto patches = patches_for(*extent);
    const auto shown = shown_of(*extent);
    if (!patches.empty() || shown.begin > 0 || shown.end > 0)
      open_patched(std::make_unique<PatchedFile>(path_, std::move(patches), shown), format);
  }
  if (!file_) file_.reset(sf_open(path_.c_str(), SFM_READ, &format));
  if (!file_) return "cannot be read as audio: " + reason_of_failed_open();
  return {};
}

// libsndfile has the length from a Xing header, or estimates it from the first frame and the size
// of the file. It reads no further. Some programs count the frame of the Xing header too. Without a
// known end, a last frame that was cut would be an error.
void AudioFile::open_mpeg(SF_INFO& format) {
  const auto found = count_mpeg_frames(path_);
  if (!found) return;
  if (found->counted && (found->frames > *found->counted || found->frames + 1 == *found->counted))
    open_patched(std::make_unique<PatchedFile>(
                     path_,
                     std::vector{patch({.at = found->counted_at, .bytes = 4, .big_endian = true},
                                       found->frames)},
                     PatchedFile::Shown{}),
                 format);
  else if (!found->counted &&
           static_cast<std::uint64_t>(format.frames) != found->frames * found->samples)
    open_patched(
        std::make_unique<PatchedFile>(path_, std::vector<PatchedFile::Patch>{},
                                      PatchedFile::Shown{.end = found->end, .hides_end = true}),
        format);
}

// Keeps what is open if libsndfile cannot read the patched file.
void AudioFile::open_patched(std::unique_ptr<PatchedFile> file, SF_INFO& format) {
  SF_INFO patched{};
  if (!*file) return;
  File opened(sf_open_virtual(&patched_input, SFM_READ, &patched, file.get()));
  if (!opened) return;
  file_ = std::move(opened);
  patched_ = std::move(file);
  format = patched;
}

// libsndfile shortens a file that was cut.
void AudioFile::set_frames(const SampleExtent& extent) {
  const SampleBytes& header = extent.header;
  exceeds_header_ = header.is_known() && extent.held > header.declared;
  if (pcm16_ && header.format && header.format->block == 2 * channels_ && header.begin % 2 == 0) {
    place_ = header.begin;
    frames_ = extent.whole / header.format->block;
  } else if (frames_ && extent.held < extent.whole && held_ > 0) {
    const std::uint64_t frame = extent.held / held_;  // 0 in formats of less than a byte per frame
    frames_ = frame > 0 ? extent.whole / frame : held_ * extent.whole / extent.held;
  }
}

Result<std::span<const std::int16_t>, std::string> AudioFile::read(std::size_t most) {
  samples_.resize(std::max(samples_.size(), most * channels_));
  const std::span<std::int16_t> into = std::span(samples_).first(most * channels_);
  const auto got = read(Element::s16, std::as_writable_bytes(into));
  if (!got) return got.error();
  return std::span<const std::int16_t>(into.first(*got * channels_));
}

Result<std::size_t, std::string> AudioFile::read(Element element, MutableBytes into) {
  const std::size_t frame = channels_ * size_of(element);
  const std::size_t wanted = into.size() / frame;
  const std::size_t most = std::max<std::size_t>(1, part_values / channels_);
  std::size_t done = 0;
  while (done < wanted) {
    const std::size_t part = std::min(most, wanted - done);
    const auto got = read_part(element, into.data() + done * frame, part);
    if (!got) return got.error();
    done += *got;
    if (*got < part) break;
  }
  return done;
}

// Reads floats, which represent every 16-bit sample exactly. If asked for integers, libsndfile
// would wrap samples that are too loud, or scale the whole file by its loudest sample. 16-bit
// samples are read as they are.
Result<std::size_t, std::string> AudioFile::read_part(Element element, std::byte* into,
                                                      std::size_t most) {
  const auto count = static_cast<sf_count_t>(most);
  sf_count_t got = 0;
  const std::byte* from = nullptr;
  const SampleFormat format = pcm16_ ? SampleFormat::s16le : SampleFormat::f32le;
  if (pcm16_ && element == Element::s16) {
    got = sf_readf_short(file_.get(), reinterpret_cast<short*>(into), count);
  } else if (pcm16_) {
    samples_.resize(std::max(samples_.size(), most * channels_));
    got = sf_readf_short(file_.get(), samples_.data(), count);
    from = std::as_bytes(std::span(samples_)).data();
  } else {
    floats_.resize(std::max(floats_.size(), most * channels_));
    got = sf_readf_float(file_.get(), floats_.data(), count);
    from = std::as_bytes(std::span(floats_)).data();
  }
  if (sf_error(file_.get()) != SF_ERR_NO_ERROR)
    return std::string("is damaged: ") + sf_strerror(file_.get());
  const std::size_t frames = static_cast<std::size_t>(std::max<sf_count_t>(got, 0));
  const std::size_t values = frames * channels_;
  if (from == nullptr) return frames;
  if (!all_finite(format, {from, values * size_of(format)})) return std::string(not_finite);
  value_kernel(format, element)(from, into, values);
  return frames;
}

Result<std::uint64_t, std::string> AudioFile::skip(std::uint64_t frames) {
  return exact_seek_ && frames_ ? seek(frames) : decode(frames);
}

Result<std::uint64_t, std::string> AudioFile::seek(std::uint64_t frames) {
  const sf_count_t at = sf_seek(file_.get(), 0, SEEK_CUR);
  const std::uint64_t rest = held_ - std::min(held_, static_cast<std::uint64_t>(at));
  const std::uint64_t skipped = std::min(frames, rest);
  if (at < 0 || sf_seek(file_.get(), static_cast<sf_count_t>(skipped), SEEK_CUR) < 0)
    return std::string("is damaged: ") + sf_strerror(file_.get());
  return skipped;
}

Result<std::uint64_t, std::string> AudioFile::decode(std::uint64_t frames) {
  const std::size_t frame = channels_ * size_of(Element::s16);
  const std::uint64_t block = std::max<std::uint64_t>(1, part_values / channels_);
  std::vector<std::int16_t> dropped(block * channels_);
  std::uint64_t done = 0;
  while (done < frames) {
    const std::uint64_t part = std::min(block, frames - done);
    const auto got =
        read(Element::s16, std::as_writable_bytes(std::span(dropped)).first(part * frame));
    if (!got) return got.error();
    done += *got;
    if (*got < part) break;
  }
  return done;
}

bool is_audio_name(std::string_view name) {
  constexpr std::array<std::string_view, 23> endings{
      "wav", "wave", "flac", "ogg", "oga",  "opus", "mp3", "aif", "aiff", "aifc", "au", "snd",
      "caf", "w64",  "rf64", "sph", "nist", "voc",  "paf", "avr", "svx",  "8svx", "iff"};
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string ending(name.substr(dot + 1));
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::find(endings, ending) != endings.end();
}

}  // namespace millrace
