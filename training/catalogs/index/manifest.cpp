// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/index/manifest.h"

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <optional>
#include <utility>

#include "schemas/json_text.h"
#include "schemas/text.h"
#include "training/catalogs/index/folder_listing.h"
#include "training/catalogs/index/manifest_fields.h"

namespace millrace::training {
namespace {

namespace json = boost::json;
using Entry = Result<ManifestEntry, CatalogError>;

constexpr std::array<std::string_view, 2> path_fields{"path", "audio_filepath"};
constexpr std::string_view name_field = "name";

bool is_path(std::string_view field) {
  return std::ranges::find(path_fields, field) != path_fields.end();
}

using Fields = std::vector<std::string>;

Fields split_tsv(std::string_view line) {
  Fields fields;
  for (std::size_t begin = 0;;) {
    const std::size_t tab = line.find('\t', begin);
    fields.emplace_back(line.substr(begin, tab - begin));
    if (tab == std::string_view::npos) return fields;
    begin = tab + 1;
  }
}

// Reads the value in quotes that begins the line, and removes it. nullopt: the quotes do not end.
std::optional<std::string> take_quoted(std::string_view& line) {
  std::string value;
  while (true) {
    const std::size_t quote = line.find('"', 1);
    if (quote == std::string_view::npos) return std::nullopt;
    value += line.substr(1, quote - 1);
    line.remove_prefix(quote + 1);
    if (!line.starts_with('"')) return value;
    value += '"';  // two quotes are one
  }
}

// nullopt: quotes do not end, or there is text behind them.
std::optional<Fields> split_csv(std::string_view line) {
  Fields fields;
  while (true) {
    if (line.starts_with('"')) {
      auto value = take_quoted(line);
      if (!value || !(line.empty() || line.starts_with(','))) return std::nullopt;
      fields.push_back(std::move(*value));
    } else {
      fields.emplace_back(line.substr(0, line.find(',')));
      line.remove_prefix(fields.back().size());
    }
    if (line.empty()) return fields;
    line.remove_prefix(1);
  }
}

// The end of the line that begins the text. In CSV, line breaks in quotes belong to the line.
std::size_t line_end(std::string_view text, ManifestForm form) {
  bool quoted = false;
  for (std::size_t from = 0;;) {
    const std::size_t end = text.find('\n', from);
    if (form != ManifestForm::csv || end == std::string_view::npos) return end;
    quoted ^= std::ranges::count(text.substr(from, end - from), '"') % 2 != 0;
    if (!quoted) return end;
    from = end + 1;
  }
}

Entry complete(ManifestEntry entry) {
  if (entry.path.empty()) return CatalogError{"has no path"};
  if (!entry.name.empty()) return entry;
  entry.name = without_extension(entry.path);
  if (entry.offset > 0) append_number(entry.name += '-', entry.offset);
  return entry;
}

class TableLines {
 public:
  // The names of the fields. Empty: they are good.
  std::string begin(Fields names) {
    fields_ = std::move(names);
    if (std::ranges::count_if(fields_, is_path) != 1)
      return "must have the names of the fields; one of them is path";
    for (const std::string& field : fields_) {
      if (!is_utf8(field)) return "has the name of a field that is not UTF-8";
      if (std::ranges::count(fields_, field) > 1) return "has the field \"" + field + "\" twice";
    }
    return {};
  }

  Entry entry(const Fields& values) const {
    if (values.size() != fields_.size())
      return CatalogError{"has " + std::to_string(values.size()) + " fields; the first line has " +
                          std::to_string(fields_.size())};
    ManifestEntry entry;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (is_path(fields_[i])) {
        entry.path = values[i];
      } else if (fields_[i] == name_field) {
        entry.name = values[i];
      } else if (std::string why = read_part(entry, fields_[i], values[i]); !why.empty()) {
        return CatalogError{std::move(why)};
      } else {
        entry.meta += entry.meta.empty() ? '{' : ',';
        append_string(entry.meta, fields_[i]);
        entry.meta += ':';
        append_value(entry.meta, fields_[i], values[i]);
      }
    }
    if (!entry.meta.empty()) entry.meta += '}';
    return complete(std::move(entry));
  }

 private:
  // Empty, or the error.
  static std::string read_part(ManifestEntry& entry, std::string_view field,
                               std::string_view value) {
    if (is_number_or_time(value) && is_refused_field(field, false))
      return refused_field_text(field);
    if (!is_utf8(value)) return "has a field \"" + std::string(field) + "\" that is not UTF-8";
    if (!is_part_field(field) || value.empty()) return {};
    return set_part_field(entry, field, number_in(value).value_or(-1));
  }

  static void append_value(std::string& meta, std::string_view field, std::string_view value) {
    if (!is_part_field(field))
      append_string(meta, value);
    else if (const auto number = number_in(value))
      append_number(meta, *number);
    else
      meta += "null";  // it is empty
  }

  Fields fields_;
};

// Removes a member, and returns its text. Empty: no such member. nullopt: not a string.
std::optional<std::string> taken(json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  if (value == nullptr) return std::string();
  if (!value->is_string()) return std::nullopt;
  std::string text(value->get_string());
  object.stable_erase(field);
  return text;
}

// The number that a value or its text is.
std::optional<double> number_of(const json::value& value) {
  if (value.is_string()) return number_in(value.get_string());
  boost::system::error_code error;
  const double number = value.to_number<double>(error);
  return error ? std::nullopt : std::optional(number);
}

// Reads `offset` and `duration`, which stay in `meta`. Empty, or the error.
std::string read_part(const json::object& object, ManifestEntry& entry) {
  for (const auto& member : object) {
    const json::value& value = member.value();
    const bool is_list = value.is_array() || value.is_object();
    const bool chooses =
        value.is_string() ? is_number_or_time(value.get_string()) : is_list || value.is_number();
    if (chooses && is_refused_field(member.key(), is_list)) return refused_field_text(member.key());
  }
  for (const std::string_view field : {"offset", "duration"}) {
    const json::value* value = object.if_contains(field);
    if (value == nullptr || value->is_null()) continue;
    if (auto why = set_part_field(entry, field, number_of(*value).value_or(-1)); !why.empty())
      return why;
  }
  return {};
}

// Python writes a byte that is not UTF-8 as \udc80 to \udcff. As a half of a character alone, it is
// no text, but it may be a part of a path.
std::string with_bytes(std::string_view line) {
  std::string text;
  for (std::size_t at = 0; at < line.size();) {
    std::uint32_t byte = 0;
    const std::string_view rest = line.substr(at, 6);
    const bool escape =
        rest.size() == 6 && (rest.starts_with("\\udc") || rest.starts_with("\\uDC"));
    if (escape && std::from_chars(rest.data() + 4, rest.data() + 6, byte, 16).ptr == rest.end() &&
        byte >= 0x80) {
      text += static_cast<char>(byte);
      at += 6;
      continue;
    }
    // A whole pair is a character, and a backslash escapes what follows.
    const bool high = rest.size() == 6 && rest[0] == '\\' && rest[1] == 'u' &&
                      (rest[2] | 0x20) == 'd' &&
                      std::string_view("89abAB").find(rest[3]) != std::string_view::npos;
    const std::size_t count = high ? 12 : rest.starts_with('\\') ? 2 : 1;
    text += line.substr(at, count);
    at += count;
  }
  return text;
}

Entry json_entry(std::string_view line) {
  boost::system::error_code error;
  json::parse_options bytes;
  bytes.allow_invalid_utf8 = true;
  json::value value = json::parse(with_bytes(line), error, {}, bytes);
  if (error || !value.is_object()) return CatalogError{"must be a JSON object"};
  json::object& object = value.get_object();
  ManifestEntry entry;
  for (const std::string_view field : path_fields) {
    const auto path = taken(object, field);
    if (!path) return CatalogError{"\"" + std::string(field) + "\" must be a string"};
    if (entry.path.empty()) entry.path = *path;
  }
  const auto name = taken(object, name_field);
  if (!name) return CatalogError{"\"name\" must be a string"};
  entry.name = *name;
  if (const std::string why = read_part(object, entry); !why.empty()) return CatalogError{why};
  if (!object.empty()) entry.meta = json::serialize(object);
  // The parser reads numbers beyond the range of a double as infinity.
  if (!is_utf8(entry.meta)) return CatalogError{"has a field that is not UTF-8"};
  if (!entry.meta.empty() && !is_json_object(entry.meta))
    return CatalogError{"has a number that is too large"};
  return complete(std::move(entry));
}

}  // namespace

Result<std::vector<ManifestEntry>, CatalogError> parse_manifest(std::string_view text,
                                                                ManifestForm form) {
  std::vector<ManifestEntry> entries;
  TableLines table;
  bool begun = false;
  std::size_t number = 0;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty()) {
    const std::size_t end = line_end(text, form);
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string place = "line " + std::to_string(++number) + " ";
    number += static_cast<std::size_t>(std::ranges::count(line, '\n'));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    std::optional<Fields> fields;
    if (form == ManifestForm::tsv) fields = split_tsv(line);
    if (form == ManifestForm::csv && !(fields = split_csv(line)))
      return CatalogError{place + "has quotes that do not end, or text behind them"};
    if (fields && !std::exchange(begun, true)) {
      if (const std::string reason = table.begin(std::move(*fields)); !reason.empty())
        return CatalogError{place + reason};
      continue;
    }
    auto entry = fields ? table.entry(*fields) : json_entry(line);
    if (!entry) return CatalogError{place + entry.error().message};
    entries.push_back(std::move(*entry));
  }
  return entries;
}

}  // namespace millrace::training
