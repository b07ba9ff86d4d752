// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/companion_files.h"

#include <unistd.h>

#include <array>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <utility>

#include "input/audio_file.h"
#include "training/catalogs/index/file_states.h"

namespace millrace::training {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

// The extensions that are looked for in a folder, in this order.
constexpr std::array<const char*, 8> extensions{".npy",  ".wav", ".flac", ".ogg",
                                                ".opus", ".mp3", ".aiff", ".au"};

// The value of a member of a JSON object; null if it has no such member.
json::value member_of(const std::string& object, const std::string& name) {
  boost::system::error_code error;
  const json::value value = json::parse(object, error);
  if (error || !value.is_object()) return nullptr;
  const json::value* found = value.get_object().if_contains(name);
  return found == nullptr ? json::value() : *found;
}

}  // namespace

Result<CompanionFiles, CatalogError> CompanionFiles::find(const Catalog& catalog,
                                                          const CompanionSource& source,
                                                          const std::string& base) {
  const bool member = catalog.size() > 0 && !member_of(catalog.meta(0), source.from).is_null();
  if (member || fs::is_directory(source.from)) return CompanionFiles(catalog, source, base, member);
  return CatalogError{"companion \"" + source.name + "\": " + source.from +
                      " must be a folder, or a field of the manifest"};
}

OpenedArray CompanionFiles::open(std::uint64_t stream) const {
  return member_ ? open_member(stream) : open_file(file_of(stream));
}

OpenedArray CompanionFiles::open(std::uint64_t stream, const CompanionFormat& format) const {
  auto array = open(stream);
  if (!array) return array;
  const CompanionArray::Shape& shape = (*array)->shape();
  const std::uint64_t frames = catalog_->frames(stream);
  if (shape.entries != format.entries_of(frames))
    return ReadError{DataFault::length, label(stream) + ": has " + std::to_string(shape.entries) +
                                            " entries; the " + std::to_string(frames) +
                                            " frames of stream \"" + catalog_->name(stream) +
                                            "\" need " + std::to_string(format.entries_of(frames))};
  if (shape.entries > 0 && (shape.element != format.element || shape.values != format.values))
    return ReadError{DataFault::format,
                     label(stream) +
                         ": has another type, or other values per entry, than the "
                         "companions before"};
  return array;
}

OpenedArray CompanionFiles::open_member(std::uint64_t stream) const {
  const json::value value = member_of(catalog_->meta(stream), source_.from);
  if (value.is_string()) return open_file(path_in(base_, std::string_view(value.get_string())));
  if (value.is_array())
    return parse_json_array(json::serialize(value), label(stream), source_.element);
  return ReadError{DataFault::read, label(stream) + ": must be the path of a file, or an array"};
}

OpenedArray CompanionFiles::open_file(const std::string& path) const {
  return is_audio_name(path) ? open_audio_array(path, catalog_->frame_type().element)
                             : open_npy(path);
}

std::string CompanionFiles::file_of(std::uint64_t stream) const {
  const std::string name = catalog_->name(stream);
  // A manifest with absolute paths: their last part is the name.
  const std::string last = name.starts_with('/') ? fs::path(name).filename().native() : name;
  const std::string path = source_.from + "/" + last;
  for (const char* extension : extensions)
    if (::access((path + extension).c_str(), F_OK) == 0) return path + extension;
  return path + extensions.front();
}

std::string CompanionFiles::label(std::uint64_t stream) const {
  if (!member_) return file_of(stream);
  return "\"" + source_.from + "\" of stream \"" + catalog_->name(stream) + "\"";
}

}  // namespace millrace::training
