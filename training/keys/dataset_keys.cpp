// SPDX-License-Identifier: Apache-2.0
#include "training/keys/dataset_keys.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <limits>
#include <thread>
#include <type_traits>

#include "base/enum_names.h"
#include "chunker/lengths.h"
#include "chunker/rule_json.h"
#include "training/keys/json_keys.h"
#include "training/keys/source_keys.h"
#include "training/plans/plan_checks.h"

namespace millrace::training {
namespace {

namespace json = boost::json;

constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t most_count = 1u << 20;

Outcome read_mode(std::string_view key, const json::value& value, PlanMode& into) {
  return read_named(key, value, mode_name, into);
}

Outcome read_element(std::string_view key, const json::value& value, std::optional<Element>& into) {
  return read_named(key, value, name_of<Element>, into);
}

Outcome read_frames(std::string_view key, const json::value& value, std::optional<Element>& into) {
  if (value.is_string() && value.get_string() == "auto") return {};
  if (read_element(key, value, into)) return {};
  return wrong(key, value, "must be auto, s16, f16 or f32");
}

Outcome read_rate(std::string_view key, const json::value& value, std::optional<double>& into) {
  double rate = 0;
  if (const auto read = read_number(key, value, rate); !read) return read.error();
  if (!(rate > 0 && rate <= 1e9)) return wrong(key, value, "must be above 0 and at most 1e9");
  into = rate;
  return {};
}

Outcome read_waste(std::string_view key, const json::value& value, double& into) {
  if (const auto read = read_number(key, value, into); !read) return read.error();
  if (into >= 0 && into <= 1) return {};
  return wrong(key, value, "must be a fraction from 0 to 1");
}

Outcome read_device(std::string_view key, const json::value& value, std::string& into) {
  if (const auto read = read_text(key, value, into); !read) return read.error();
  constexpr std::string_view cuda = "cuda:";
  const bool numbered =
      into.starts_with(cuda) && into.size() > cuda.size() &&
      std::ranges::all_of(into.substr(cuda.size()), [](char c) { return c >= '0' && c <= '9'; });
  if (into == "host" || numbered) return {};
  return wrong(key, value, "must be host, or cuda: and a number, like cuda:0");
}

// The rule stays JSON: its lengths may be times, which need the rate.
Outcome read_chunk(std::string_view key, const json::value& value,
                   std::optional<std::string>& into) {
  if (value.is_string() && !value.get_string().empty())
    into = std::string(value.get_string());
  else if (value.is_object())
    into = json::serialize(value);
  else
    return wrong(key, value, "must be an object, like {\"size\": \"100ms\"}");
  return {};
}

using Name = std::string_view;
using Value = const json::value&;

// Readers of a member of the keys, and of one of their parts.
template <auto member, auto read>
Outcome with(Name key, Value value, DatasetKeys& into) {
  return read(key, value, into.*member);
}

template <auto part, auto member, auto read>
Outcome with(Name key, Value value, DatasetKeys& into) {
  return read(key, value, into.*part.*member);
}

template <auto part, auto member, std::uint64_t least, std::uint64_t most = any>
Outcome count(Name key, Value value, DatasetKeys& into) {
  auto& number = into.*part.*member;
  using Number = std::remove_reference_t<decltype(number)>;
  constexpr auto limit = std::min<std::uint64_t>(most, std::numeric_limits<Number>::max());
  return read_count(key, value, static_cast<Number>(least), static_cast<Number>(limit), number);
}

Outcome read_channels(Name key, Value value, DatasetKeys& into) {
  return read_count(key, value, 1u, 1024u, into.channels.emplace());
}
Outcome read_dim(Name key, Value value, DatasetKeys& into) {
  return read_count(key, value, 1u, most_count, into.dim.emplace());
}
Outcome read_rank(Name key, Value value, DatasetKeys& into) {
  return read_count(key, value, 0u, most_count, into.loader.rank.rank);
}
Outcome read_world(Name key, Value value, DatasetKeys& into) {
  return read_count(key, value, 1u, most_count, into.loader.rank.world);
}
// The threads that may be added: one for each core, at most 16.
std::uint32_t automatic_threads() {
  return std::min(16u, std::max(1u, std::thread::hardware_concurrency()));
}
Outcome read_threads(Name key, Value value, DatasetKeys& into) {
  if (value.is_string() && value.get_string() == "auto") return {};
  if (value.is_string()) return wrong(key, value, "must be \"auto\" or a whole number");
  into.loader.most_threads = 0;
  return read_count(key, value, 0u, 1024u, into.loader.threads);
}
Outcome read_on_error(Name key, Value value, DatasetKeys& into) {
  const bool skip = value.is_string() && value.get_string() == "skip";
  if (!skip && !(value.is_string() && value.get_string() == "raise"))
    return wrong(key, value, "must be raise or skip");
  into.loader.skip_failed = skip;
  return {};
}
Outcome read_part(Name key, Value value, DatasetKeys& into) {
  return read_text(key, value, into.part.emplace());
}
Outcome read_buckets(Name key, Value value, DatasetKeys& into) {
  if (value.is_array()) return read_ascending(key, value, into.plan.buckets);
  if (read_count(key, value, 2u, 1024u, into.plan.bucket_count)) return {};
  return wrong(key, value,
               "must be a number from 2 to 1024, or a list of ascending numbers of at least 1");
}

// A key, and the function that reads its value.
struct KeyReader {
  Name name;
  Outcome (*read)(Name key, Value value, DatasetKeys& into);
};

using Keys = DatasetKeys;
using Options = PlanOptions;
using Settings = LoaderSettings;
constexpr std::array readers{
    KeyReader{"streams", with<&Keys::streams, read_streams>},
    KeyReader{"chunk", with<&Keys::chunk, read_chunk>},
    KeyReader{"mode", with<&Keys::plan, &Options::mode, read_mode>},
    KeyReader{"slots", count<&Keys::plan, &Options::slots, 1, most_count>},
    KeyReader{"rows", count<&Keys::plan, &Options::rows, 1, most_count>},
    KeyReader{"rate", with<&Keys::rate, read_rate>},
    KeyReader{"channels", read_channels},
    KeyReader{"dim", read_dim},
    KeyReader{"frames", with<&Keys::frames, read_frames>},
    KeyReader{"dtype", with<&Keys::dtype, read_element>},
    KeyReader{"convert", with<&Keys::convert, read_flag>},
    KeyReader{"mapped", with<&Keys::mapped, read_flag>},
    KeyReader{"seed", count<&Keys::plan, &Options::seed, 0>},
    KeyReader{"shuffle", with<&Keys::plan, &Options::shuffle, read_flag>},
    KeyReader{"shuffle_window", count<&Keys::plan, &Options::shuffle_window, 0>},
    KeyReader{"max_padded_frames", count<&Keys::plan, &Options::max_padded_frames, 1>},
    KeyReader{"max_waste", with<&Keys::plan, &Options::max_waste, read_waste>},
    KeyReader{"order", with<&Keys::plan, &Options::order, read_text>},
    KeyReader{"buckets", read_buckets},
    KeyReader{"drop_last", with<&Keys::plan, &Options::drop_last, read_flag>},
    KeyReader{"width_buckets", with<&Keys::plan, &Options::width_buckets, read_ascending>},
    KeyReader{"packed_batch_size", count<&Keys::plan, &Options::packed_batch_size, 1>},
    KeyReader{"max_pad_size", count<&Keys::plan, &Options::max_pad_size, 1>},
    KeyReader{"rank", read_rank},
    KeyReader{"world", read_world},
    KeyReader{"device", with<&Keys::loader, &Settings::device, read_device>},
    KeyReader{"prefetch", count<&Keys::loader, &Settings::prefetch, 1, 1024>},
    KeyReader{"threads", read_threads},
    KeyReader{"buffers", count<&Keys::loader, &Settings::buffers, 1, 65536>},
    KeyReader{"on_error", read_on_error},
    KeyReader{"split", with<&Keys::split, read_split>},
    KeyReader{"part", read_part},
    KeyReader{"max_stream", with<&Keys::max_stream, read_limit>},
    KeyReader{"companions", with<&Keys::companions, read_companions>},
};

Outcome check_dtype(Element dtype, Element frames) {
  if (dtype == frames || frames == Element::s16) return {};
  return wrong("dtype", json::string(name_of(dtype)),
               "must be " + std::string(name_of(frames)) +
                   ", like the frames: only s16 frames are converted");
}

Outcome check_part(const std::string& part, const std::vector<SplitPart>& split) {
  if (split.empty())
    return wrong("part", json::string(part), "needs split, like {\"valid\": 0.05}");
  std::vector<std::string_view> names{rest_part};
  for (const SplitPart& one : split) names.push_back(one.name);
  if (std::ranges::find(names, part) != names.end()) return {};
  return wrong("part", json::string(part), "must be " + listed(names, " or "));
}

Outcome check(const DatasetKeys& keys) {
  const LoaderSettings& loader = keys.loader;
  if (loader.rank.rank >= loader.rank.world)
    return wrong("rank", loader.rank.rank,
                 "must be less than world, which is " + std::to_string(loader.rank.world));
  if (loader.buffers <= loader.prefetch || loader.buffers == 1)
    return wrong("buffers", loader.buffers,
                 "must be more than prefetch, which is " +
                     std::to_string(std::max<std::uint32_t>(loader.prefetch, 1)));
  if (keys.channels && keys.dim)
    return wrong("dim", *keys.dim,
                 "cannot be set beside channels: frames are feature vectors or audio");
  if (keys.part)
    if (const auto checked = check_part(*keys.part, keys.split); !checked) return checked.error();
  if (keys.convert && keys.dim)
    return wrong("convert", true, "cannot be set beside dim: only audio is converted");
  if (keys.dtype && keys.frames) return check_dtype(*keys.dtype, *keys.frames);
  return {};
}

std::vector<double> frequencies_of(const std::vector<StreamsKey>& streams) {
  std::vector<double> frequencies;
  for (const StreamsKey& one : streams) frequencies.push_back(one.frequency);
  const bool once = std::ranges::all_of(frequencies, [](double f) { return f == 1; });
  return once ? std::vector<double>{} : frequencies;
}

}  // namespace

std::vector<std::string_view> dataset_key_names() {
  std::vector<std::string_view> names;
  for (const KeyReader& reader : readers) names.push_back(reader.name);
  return names;
}

Result<DatasetKeys, PlanError> read_dataset_keys(const json::object& object) {
  DatasetKeys keys;
  keys.loader.most_threads = automatic_threads();
  for (const auto& [name, value] : object) {
    const auto reader = std::ranges::find(readers, Name(name), &KeyReader::name);
    if (reader == readers.end()) return unknown(name, dataset_key_names());
    if (value.is_null()) continue;
    if (const auto read = reader->read(reader->name, value, keys); !read) return read.error();
  }
  if (const auto checked = check(keys); !checked) return checked.error();
  return keys;
}

Result<Selection, PlanError> selection_of(const DatasetKeys& keys, const FrameType& type) {
  Selection selection{.split = keys.split, .part = keys.part.value_or(std::string(rest_part))};
  if (!keys.max_stream) return selection;
  const auto frames = parse_length(*keys.max_stream, type.rate);
  if (!frames) return wrong("max_stream", json::string(*keys.max_stream), frames.error());
  if (*frames == 0) return wrong("max_stream", json::string(*keys.max_stream), "must be above 0");
  selection.longest = *frames;
  return selection;
}

Result<PlanOptions, PlanError> plan_options(const DatasetKeys& keys, const FrameType& type) {
  PlanOptions options = keys.plan;
  options.frequencies = frequencies_of(keys.streams);
  if (!keys.chunk) return options;
  const auto rule = rule_from_json(*keys.chunk, {.rate = type.rate, .features = type.features});
  if (!rule) return PlanError{"chunk", "chunk: " + rule.error().message};
  options.chunk = *rule;
  return options;
}

Result<LoaderSettings, PlanError> loader_settings(const DatasetKeys& keys, const FrameType& type,
                                                  const std::optional<ChunkRule>& chunk) {
  LoaderSettings settings = keys.loader;
  settings.dtype = keys.dtype.value_or(type.element);
  if (const auto checked = check_dtype(settings.dtype, type.element); !checked)
    return checked.error();
  if (chunk) {
    settings.context = chunk->columns().context;
    settings.repeat = chunk->pad == Pad::repeat;
  }
  return settings;
}

}  // namespace millrace::training
