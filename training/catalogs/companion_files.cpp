// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/companion_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <optional>
#include <unordered_map>

#include "input/audio_file.h"
#include "training/catalogs/index/file_states.h"
#include "training/catalogs/index/missing_file.h"

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

// The ratio, and its origin.
std::string ratio_text(const CompanionFormat& format, const CompanionSource& source) {
  const bool given = source.frames_per_entry || source.entries_per_frame;
  const bool several = format.entries_per_frame > 1;
  return (several ? "entries_per_frame = " : "frames_per_entry = ") +
         std::to_string(several ? format.entries_per_frame : format.frames_per_entry) +
         (given ? ", which was given" : ", from the lengths of the first streams");
}

std::string form_text(CompanionElement element, std::uint64_t values) {
  return "entries of " + std::to_string(values) + (values == 1 ? " value (" : " values (") +
         std::string(name_of(element)) + ")";
}

}  // namespace

Result<CompanionFiles, CatalogError> CompanionFiles::find(const Catalog& catalog,
                                                          const CompanionSource& source,
                                                          const std::string& base) {
  const bool member = catalog.size() > 0 && !member_of(catalog.meta(0), source.from).is_null();
  if (!member && !fs::is_directory(source.from))
    return CatalogError{"companion \"" + source.name + "\": " + source.from +
                        " must be a folder, or a field of the manifest" +
                        missing_file_hint(source.from)};
  CompanionFiles files(catalog, source, base, member);
  if (!member) files.choose_layout();
  if (const auto unique = files.check_unique(); !unique) return unique.error();
  return files;
}

void CompanionFiles::choose_layout() {
  std::optional<std::string> common;
  bool leads_out = false;
  for (std::uint64_t stream = 0; stream < catalog_->size(); ++stream) {
    const std::string name = catalog_->name(stream);
    const std::string parent = name.substr(0, name.rfind('/') + 1);
    leads_out = leads_out || name.starts_with('/') || name.starts_with("../");
    if (!common) common = parent;
    const auto differs = std::ranges::mismatch(*common, parent).in1;
    common->erase(differs, common->end());
    common->erase(common->rfind('/') + 1);
  }
  if (!leads_out) return;
  common_ = common->size();
  const auto exists = [this] { return fs::exists(file_of(0)); };
  if (exists()) return;
  last_part_ = true;
  last_part_ = exists();
}

// Labels of one stream must not be those of another.
Result<void, CatalogError> CompanionFiles::check_unique() const {
  const auto shared_by = [this](std::uint64_t stream) -> std::string {
    if (!member_) return fs::path(path_of(catalog_->name(stream))).lexically_normal();
    const json::value value = member_of(catalog_->meta(stream), source_.from);
    if (!value.is_string()) return {};
    return fs::path(path_in(base_, std::string_view(value.get_string()))).lexically_normal();
  };
  if (catalog_->size() == 0 || shared_by(0).empty()) return {};  // arrays in `meta`
  std::unordered_map<std::string, std::uint64_t> streams;
  for (std::uint64_t stream = 0; stream < catalog_->size(); ++stream) {
    const std::string path = shared_by(stream);
    const auto [other, is_new] = streams.try_emplace(path, stream);
    if (!is_new && !path.empty())
      return CatalogError{"companion \"" + source_.name + "\": the streams \"" +
                          catalog_->name(other->second) + "\" and \"" + catalog_->name(stream) +
                          "\" would share " + label(stream) +
                          ": each stream needs its own, for instance in subfolders"};
  }
  return {};
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
                                            "\" need " + std::to_string(format.entries_of(frames)) +
                                            " with " + ratio_text(format, source_)};
  if (shape.entries > 0 && (shape.element != format.element || shape.values != format.values))
    return ReadError{DataFault::format, label(stream) + ": stream \"" + catalog_->name(stream) +
                                            "\" has " + form_text(shape.element, shape.values) +
                                            "; those before have " +
                                            form_text(format.element, format.values)};
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
  auto array =
      is_audio_name(path) ? open_audio_array(path, catalog_->frame_type().element) : open_npy(path);
  if (!array) {
    ReadError error = array.error();
    error.message += missing_file_hint(path);
    return error;
  }
  return array;
}

// Without the extension.
std::string CompanionFiles::path_of(const std::string& name) const {
  const std::size_t from = last_part_ ? name.rfind('/') + 1 : common_;
  return source_.from + "/" + name.substr(from);
}

std::string CompanionFiles::file_of(std::uint64_t stream) const {
  const std::string path = path_of(catalog_->name(stream));
  for (const char* extension : extensions)
    if (::access((path + extension).c_str(), F_OK) == 0) return path + extension;
  return path + extensions.front();
}

std::string CompanionFiles::label(std::uint64_t stream) const {
  if (!member_) return file_of(stream);
  return "\"" + source_.from + "\" of stream \"" + catalog_->name(stream) + "\"";
}

}  // namespace millrace::training
