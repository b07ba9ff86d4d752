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
constexpr std::string_view features = "features", stateless = "stateless";
constexpr std::string_view hex_digits = "0123456789abcdef";
const std::string row_buckets = "rows=";

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

std::string text_of(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (const std::uint32_t number : numbers) (text += text.empty() ? "" : ",") += text_of(number);
  return text;
}

// `f32 64 16 1600`: dtype, slots, rows and widths. Behind them `rows=4,16` and `stateless`, if the
// pipeline has these.
std::string text_of(const RecordedBatches& batches) {
  std::string text(name_of(batches.dtype));
  text +=
      ' ' + text_of(batches.slots) + ' ' + text_of(batches.rows) + ' ' + text_of(batches.widths);
  if (!batches.row_buckets.empty()) text += ' ' + row_buckets + text_of(batches.row_buckets);
  if (!batches.stateful) (text += ' ') += stateless;
  return text;
}

// One or more numbers that ascend from 1 or more.
bool read_ascending(std::string_view text, std::vector<std::uint32_t>& into) {
  for (bool more = true; more;) {
    const std::size_t end = text.find(',');
    std::uint32_t number = 0;
    if (!read_number(text.substr(0, end), number) || number <= (into.empty() ? 0 : into.back()))
      return false;
    into.push_back(number);
    more = end != std::string_view::npos;
    text.remove_prefix(more ? end + 1 : text.size());
  }
  return true;
}

// Other words behind the first four are those of a later version.
bool read_batches(std::string_view text, std::optional<RecordedBatches>& into) {
  RecordedBatches& batches = into.emplace();
  const auto dtype = value_named<Element>(word(text));
  if (!dtype || !read_number(word(text), batches.slots) || !read_number(word(text), batches.rows) ||
      !read_ascending(word(text), batches.widths) || batches.slots < 1 || batches.rows < 1)
    return false;
  batches.dtype = *dtype;
  while (!text.empty()) {
    std::string_view next = word(text);
    if (next == stateless) batches.stateful = false;
    if (!next.starts_with(row_buckets)) continue;
    next.remove_prefix(row_buckets.size());
    if (!read_ascending(next, batches.row_buckets) || batches.row_buckets.back() != batches.rows)
      return false;
  }
  return true;
}

bool read_key(std::string_view text, std::optional<ResumableKey>& into) {
  StreamKey& key = into.emplace().stream;
  if (text.size() != 2 * key.bytes.size()) return false;
  if (text.find_first_not_of(hex_digits) != text.npos) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    key.bytes[i / 2] = static_cast<std::uint8_t>(key.bytes[i / 2] << 4 | hex_digits.find(text[i]));
  return true;
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
  // A key that may be absent.
  template <class Read>
  void read_if_there(const char* key, Read valid) {
    const auto value = mcap::value_of(metadata_, key);
    check(key, !value || valid(*value));
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

std::string to_hex(const StreamKey& key) {
  std::string hex;
  for (const std::uint8_t byte : key.bytes) (hex += hex_digits[byte >> 4]) += hex_digits[byte & 15];
  return hex;
}

Metadata to_metadata(const StreamMeta& meta) {
  Metadata metadata{{"number", text_of(meta.number)},
                    {"name", meta.name},
                    {"pipeline", meta.pipeline},
                    {"rule", meta.rule},
                    {"frames", text_of(meta.frames)},
                    {"opened", text_of(meta.opened_wall)},
                    {"steady", text_of(meta.opened_steady)}};
  if (meta.batches) metadata["batches"] = text_of(*meta.batches);
  if (!meta.options.empty()) metadata["options"] = meta.options;
  if (!meta.client.empty()) metadata["client"] = meta.client;
  if (meta.resumable) {
    metadata["key"] = to_hex(meta.resumable->stream);
    metadata["epoch"] = text_of(meta.resumable->epoch);
  }
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
  reader.read_if_there("batches",
                       [&](std::string_view text) { return read_batches(text, meta.batches); });
  reader.read_options("options", meta.options);
  reader.read_options("client", meta.client);
  reader.read("opened", number(meta.opened_wall));
  reader.read("steady", number(meta.opened_steady));
  reader.read_if_there("key",
                       [&](std::string_view text) { return read_key(text, meta.resumable); });
  if (meta.resumable) reader.read("epoch", number(meta.resumable->epoch));
  if (!reader.wrong().empty()) return reader.wrong();
  return meta;
}

}  // namespace millrace::recording
