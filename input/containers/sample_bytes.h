// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

class HeaderReader;

// The format chunk of a WAV file.
struct WavFormat {
  std::uint32_t kind = 0, channels = 0, rate = 0, bits = 0;
  std::uint32_t block = 0;  // bytes of a frame, or of a block of frames
};

// A number in the header of a file.
struct HeaderField {
  std::uint64_t at = 0;    // offset in the file
  std::size_t bytes = 0;   // its size; 0: there is no such field
  std::uint64_t more = 0;  // it has the length and this much more
  bool big_endian = false;
};

// The samples of an audio file by its header.
struct SampleBytes {
  std::optional<WavFormat> format{};  // for RIFF, RF64, BW64, W64: samples are little-endian
  std::uint64_t begin = 0;            // offset in the file
  std::uint64_t declared = 0;         // bytes
  HeaderField field{};                // has `declared`
  HeaderField ds64{};                 // the length that RF64 has too, if `field` is another one
  std::uint64_t head = 0;             // offset of the header: behind an ID3 tag
  bool is_bw64 = false;               // begins with "BW64", which is RF64 by another name

  // False: the header does not have the length. Programs that write to a pipe, or that are killed,
  // do not know it, and leave 0 or a large number.
  bool is_known() const;
};

// Reads the header up to the first sample, and nothing after it. Reads WAV (RIFF, RIFX, RF64,
// BW64), also after an ID3 tag, AIFF, W64, CAF and AU. nullopt: it is another file, or it ends
// before its samples.
std::optional<SampleBytes> read_sample_bytes(HeaderReader& header);

// The samples that a file has, whatever its header says.
struct SampleExtent {
  SampleBytes header{};
  std::uint64_t held = 0;   // bytes of samples in the file
  std::uint64_t whole = 0;  // bytes that it should have; more than `held` if it was cut
};

// nullopt: read_sample_bytes() does not know the file, or it cannot be read.
std::optional<SampleExtent> find_samples(const std::string& path);

}  // namespace millrace
