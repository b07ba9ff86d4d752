// SPDX-License-Identifier: Apache-2.0
#include "input/containers/container_name.h"

#include <algorithm>
#include <array>

namespace millrace {
namespace {

using std::string_view_literals::operator""sv;

struct Signature {
  std::string_view name;
  std::string_view begin;        // the first bytes
  std::string_view eighth = {};  // the bytes from the eighth on, if they count too
  std::size_t at = 0;            // where `begin` begins
};

constexpr std::array<Signature, 27> signatures{{
    {"WAV", "RIFF", "WAVE"},
    {"RIFX", "RIFX", "WAVE"},
    {"WAV", "RF64", "WAVE"},
    {"WAV", "BW64", "WAVE"},
    {"AVI", "RIFF", "AVI "},
    {"W64", "riff\x2e\x91\xcf\x11"sv},
    {"AIFF", "FORM", "AIFF"},
    {"AIFF", "FORM", "AIFC"},
    {"CAF", "caff\0\1"sv},
    {"AU", ".snd\0\0"sv},
    {"Ogg", "OggS"},
    {"FLAC", "fLaC"},
    {"MP3", "ID3\2"},
    {"MP3", "ID3\3"},
    {"MP3", "ID3\4"},
    {"WebM", "\x1a\x45\xdf\xa3"},
    {"MP4", "ftyp", {}, 4},
    {"MP4", "styp", {}, 4},
    {"MP4", "moof", {}, 4},
    {"MP4", "moov", {}, 4},
    {"AMR", "#!AMR"},
    {"SPHERE", "NIST_1A\n"},
    {"ASF (WMA)", "\x30\x26\xb2\x75\x8e\x66\xcf\x11"},
    {"WavPack", "wvpk"},
    {"Monkey's Audio", "MAC "},
    {"Musepack", "MPCK"},
    {"True Audio", "TTA1"},
}};

}  // namespace

std::string_view container_name(Bytes beginning) {
  const std::string_view text = text_in(beginning);
  const auto begins = [&](const Signature& one) {
    return text.size() >= one.at && text.substr(one.at).starts_with(one.begin) &&
           (one.eighth.empty() || (text.size() > 8 && text.substr(8).starts_with(one.eighth)));
  };
  const auto* found = std::ranges::find_if(signatures, begins);
  return found == signatures.end() ? std::string_view() : found->name;
}

}  // namespace millrace
