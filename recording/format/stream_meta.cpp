// SPDX-License-Identifier: Apache-2.0
#include "recording/format/stream_meta.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/enum_names.h"
#include "schemas/text.h"

namespace millrace::recording {
namespace {

using Metadata = std::map<std::string, std::string>;

constexpr std::size_t max_name = 256;
constexpr std::uint32_t max_values = 65535;
constexpr std::string_view features = "features";

template <class Number>
std::string text_of(Number number) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

// False if the text is not exactly one number.
template <class Number>
bool read_number(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

// `s16 1 16000`, or `f32 80 12.5 features`.
std::string text_of(const FrameType& frames) {
  std::string text(name_of(frames.element));
  text += ' ' + text_of(frames.values) + ' ' + text_of(frames.rate);
  if (frames.features) (text += ' ') += features;
  return text;
}

// Splits off the text before the next space.
std::string_view word(std::string_view& rest) {
  const std::size_t end = rest.find(' ');
  const std::string_view first = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return first;
}

bool read_frames(std::string_view text, FrameType& into) {
  const auto element = value_named<Element>(word(text));
  if (!element || !read_number(word(text), into.values) || !read_number(word(text), into.rate))
    return false;
  into.element = *element;
  into.features = text == features;
  return (into.features || text.empty()) && into.values >= 1 && into.values <= max_values &&
         std::isfinite(into.rate) && into.rate > 0;
}

// Reads the values of a metadata record, and keeps the key of the first one that is not valid.
class Reader {
 public:
  explicit Reader(const mcap::TextMap& metadata) : metadata_(metadata) {}

  template <class Read>
  void read(const char* key, Read valid) {
    const auto value = mcap::value_of(metadata_, key);
    check(key, value && valid(*value));
  }
  // A key that is absent means an empty value.
  void read_options(const char* key, std::string& into) {
    into = mcap::value_of(metadata_, key).value_or("");
    check(key, into.empty() || is_json_object(into));
  }
  const std::string& wrong() const { return wrong_; }

 private:
  void check(const char* key, bool valid) {
    if (!valid && wrong_.empty()) wrong_ = key;
  }

  const mcap::TextMap& metadata_;
  std::string wrong_;
};

}  // namespace

Metadata to_metadata(const StreamMeta& meta) {
  Metadata metadata{{"number", text_of(meta.number)},
                    {"name", meta.name},
                    {"pipeline", meta.pipeline},
                    {"rule", meta.rule},
                    {"frames", text_of(meta.frames)},
                    {"opened", text_of(meta.opened_wall)},
                    {"steady", text_of(meta.opened_steady)}};
  if (!meta.options.empty()) metadata["options"] = meta.options;
  if (!meta.client.empty()) metadata["client"] = meta.client;
  return metadata;
}

Result<StreamMeta, std::string> meta_from(const mcap::TextMap& metadata) {
  StreamMeta meta;
  Reader reader(metadata);
  const auto name = [](std::string& into) {
    return [&into](std::string_view text) {
      into = text;
      return !text.empty() && is_printable(text, max_name);
    };
  };
  const auto number = [](auto& into) {
    return [&into](std::string_view text) { return read_number(text, into); };
  };
  reader.read("number", [&](std::string_view text) {
    return read_number(text, meta.number) && meta.number > 0;
  });
  reader.read("name", name(meta.name));
  reader.read("pipeline", name(meta.pipeline));
  reader.read("rule", [&](std::string_view text) { return is_json_object(meta.rule = text); });
  reader.read("frames", [&](std::string_view text) { return read_frames(text, meta.frames); });
  reader.read_options("options", meta.options);
  reader.read_options("client", meta.client);
  reader.read("opened", number(meta.opened_wall));
  reader.read("steady", number(meta.opened_steady));
  if (!reader.wrong().empty()) return reader.wrong();
  return meta;
}

}  // namespace millrace::recording
