// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/enum_names.h"
#include "chunker/chunker.h"
#include "chunker/lengths.h"
#include "commands/console/command_line.h"
#include "commands/console/console.h"
#include "training/catalogs/open_catalog.h"
#include "training/catalogs/selection.h"
#include "training/contract/plan_options.h"
#include "training/keys/dataset_keys.h"
#include "training/plans/make_plan.h"
#include "training/plans/padding.h"
#include "training/plans/plan_checks.h"

namespace millrace {
namespace {

using PlanOutcome = Result<void, std::string>;
using training::Catalog;
using training::PlanOptions;
using OpenedStreams = Result<std::shared_ptr<const Catalog>, std::string>;

struct PlanArguments {
  std::string streams, lengths;  // exactly one
  std::string mode, spec;
  std::string seed;  // empty: no shuffling
  std::uint64_t epoch = 0;
  training::Rank rank;
  PlanOptions options;
  std::string split, part, max_stream;
};

// The options of the command for keys that have another name.
std::string option_of(std::string key) {
  key.resize(std::min(key.find('.'), key.size()));  // split.valid
  using Name = std::pair<std::string_view, std::string_view>;
  constexpr std::array names{Name{"rows", "max-seqs"},
                             Name{"max_padded_frames", "batch-size"},
                             Name{"packed_batch_size", "packed-batch-size"},
                             Name{"max_stream", "max-stream"},
                             Name{"chunk", "spec"},
                             Name{"streams", "streams or --lengths"}};
  const auto found = std::ranges::find(names, std::string_view(key), &Name::first);
  return "--" + (found == names.end() ? key : std::string(found->second));
}

// The rule for frames of this type; nullopt: whole streams, which size=0 means.
Result<std::optional<ChunkRule>, std::string> rule_of(const std::string& spec,
                                                      const FrameType& type) {
  const auto keys = split_rule_keys(spec);
  if (!keys) return "--spec: " + keys.error();
  const auto is_zero = [](const auto& key) { return key.second == "0"; };
  const auto size = std::ranges::find(*keys, "size", &RuleKeys::value_type::first);
  if (size != keys->end() && is_zero(*size)) {
    if (std::ranges::all_of(*keys, is_zero)) return std::optional<ChunkRule>();
    return std::string("--spec: size=0, whole streams, cannot be combined with other keys");
  }
  const auto rule = parse_rule(*keys, {.rate = type.rate, .features = type.features});
  if (!rule) return "--spec: " + rule.error().message;
  return std::optional(*rule);
}

// Streams of audio without frames, to look at a plan. Stream i has its number as its name.
class ListedLengths final : public Catalog {
 public:
  explicit ListedLengths(std::vector<std::uint64_t> lengths) : lengths_(std::move(lengths)) {}

  const FrameType& frame_type() const override { return type_; }
  std::uint64_t size() const override { return lengths_.size(); }
  std::uint64_t frames(std::uint64_t stream) const override { return lengths_[stream]; }
  std::string name(std::uint64_t stream) const override { return std::to_string(stream); }
  std::uint64_t digest() const override { return 0; }
  // There is nothing to read.
  std::unique_ptr<training::CatalogReader> reader() const override { return nullptr; }

 private:
  FrameType type_;
  std::vector<std::uint64_t> lengths_;
};

// Reads a JSON array of lengths in frames. The error names the file.
OpenedStreams open_lengths(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return path + ": cannot be read";
  const std::string text(std::istreambuf_iterator<char>(file), {});
  boost::json::error_code failed;
  const boost::json::value parsed = boost::json::parse(text, failed);
  const auto* array = failed ? nullptr : parsed.if_array();
  if (array == nullptr) return path + ": must be a JSON array of lengths in frames";
  std::vector<std::uint64_t> lengths;
  for (const boost::json::value& value : *array) {
    boost::json::error_code invalid;
    lengths.push_back(value.to_number<std::uint64_t>(invalid));
    if (invalid || lengths.back() > max_position)
      return path + ": " + boost::json::serialize(value) + " must be a whole number from 0 to " +
             std::to_string(max_position);
  }
  return std::make_shared<const ListedLengths>(std::move(lengths));
}

// False for whole streams and the chunks of RETURNN. The type of the frames matters to lengths
// only.
bool cuts_events(const PlanArguments& arguments) {
  const auto rule = rule_of(arguments.spec, FrameType());
  const bool whole = rule && !*rule;
  return !whole && !arguments.mode.starts_with("returnn");
}

OpenedStreams open_all(const PlanArguments& arguments) {
  if (arguments.streams.empty() == arguments.lengths.empty())
    return std::string("exactly one of --streams and --lengths must be given");
  if (!arguments.lengths.empty()) return open_lengths(arguments.lengths);
  training::CatalogSettings settings;
  settings.path = arguments.streams;
  settings.cuts_events = cuts_events(arguments);
  auto catalog = training::open_catalog(settings);
  if (!catalog) return catalog.error().message;
  return std::move(*catalog);
}

// The keys of a data set that select streams.
Result<training::DatasetKeys, std::string> selecting_keys(const PlanArguments& arguments) {
  boost::json::object keys, split;
  std::stringstream parts(arguments.split);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    double fraction = 0;
    const char* end = part.data() + part.size();
    if (equals == part.npos || std::from_chars(part.data() + equals + 1, end, fraction).ptr != end)
      return "--split: \"" + part + "\" must be NAME=FRACTION; separate several by commas";
    split[part.substr(0, equals)] = fraction;
  }
  if (!split.empty()) keys["split"] = split;
  if (!arguments.part.empty()) keys["part"] = arguments.part;
  const std::string& limit = arguments.max_stream;
  if (!limit.empty()) keys["max_stream"] = limit;
  if (std::uint64_t frames = 0; lacks_unit(limit))
    if (std::from_chars(limit.data(), limit.data() + limit.size(), frames).ec == std::errc{})
      keys["max_stream"] = frames;
  auto read = training::read_dataset_keys(keys);
  if (!read) return option_of(read.error().key) + ": " + read.error().message;
  return std::move(*read);
}

OpenedStreams open(const PlanArguments& arguments) {
  const auto all = open_all(arguments);
  if (!all) return all.error();
  const auto keys = selecting_keys(arguments);
  if (!keys) return keys.error();
  const auto selection = training::selection_of(*keys, (*all)->frame_type());
  if (!selection) return option_of(selection.error().key) + ": " + selection.error().message;
  const auto selected = training::select_streams(*all, *selection);
  if (!selected) return option_of(selected.error().key) + ": " + selected.error().message;
  return *selected;
}

Result<PlanOptions, std::string> options_of(const PlanArguments& arguments, const FrameType& type) {
  PlanOptions options = arguments.options;
  for (const auto mode : values_of<training::PlanMode>())
    if (training::mode_name(mode) == arguments.mode) options.mode = mode;
  const auto rule = rule_of(arguments.spec, type);
  if (!rule) return rule.error();
  options.chunk = *rule;
  options.shuffle = !arguments.seed.empty();
  if (!options.shuffle) return options;
  const auto* end = arguments.seed.data() + arguments.seed.size();
  const auto [stop, error] = std::from_chars(arguments.seed.data(), end, options.seed);
  if (error != std::errc{} || stop != end)
    return "--seed: \"" + arguments.seed + "\" must be a whole number of at least 0";
  return options;
}

std::string line_of(const training::PlannedBatch& batch) {
  std::string line = "[";
  for (const training::PlannedRow& row : batch.framed) {
    line += line.size() > 1 ? ",[" : "[";
    line += std::to_string(row.stream) + ',' + std::to_string(row.row.begin) + ',' +
            std::to_string(row.row.end()) + ']';
  }
  return line += "]\n";
}

PlanOutcome print(const PlanArguments& arguments, Console& console) {
  const auto catalog = open(arguments);
  if (!catalog) return catalog.error();
  const auto options = options_of(arguments, (*catalog)->frame_type());
  if (!options) return options.error();
  const auto plan = training::make_plan(**catalog, *options, arguments.rank);
  if (!plan) return option_of(plan.error().key) + ": " + plan.error().message;
  const auto epoch = (*plan)->epoch(arguments.epoch);
  if (const auto warning =
          training::padding_warning(**catalog, *options, arguments.rank, epoch->totals()))
    console.err << "millrace plan: warning: " << *warning << '\n';
  const auto cursor = epoch->cursor(arguments.rank, 0, 1);
  for (training::PlannedBatch batch; console.out && cursor->next(batch);)
    console.out << line_of(batch);
  if (!console.out.flush()) return std::string("the batches cannot be written");
  return {};
}

void add_options(Command& command, PlanArguments& into) {
  command
      .add("--streams", &into.streams,
           "Streams of a training set: a folder of audio files, a manifest, or recordings")
      .type("PATH");
  command.add("--lengths", &into.lengths, "JSON array with the length of each stream in frames")
      .type("FILE");
  command
      .add("--split", &into.split,
           "Divide the streams by their names, as valid=0.05; the others are train")
      .type("NAME=FRACTION,...");
  command.add("--part", &into.part, "Part of the split; default: train").type("NAME");
  command
      .add("--max-stream", &into.max_stream,
           "Longest stream, as 60s; longer ones are divided into several")
      .type("LENGTH");
  std::vector<std::string> modes;
  for (const auto mode : values_of<training::PlanMode>())
    modes.emplace_back(training::mode_name(mode));
  command.add("--mode", &into.mode, "How batches are made of the streams").required().one_of(modes);
  command.add("--spec", &into.spec, rule_help + std::string("; size=0: whole streams"))
      .type("KEY=VALUE,...")
      .required();
  command
      .add("--seed", &into.seed,
           "Shuffle with this seed; default: the order of the streams, without shuffling")
      .type("N");
  command.add("--epoch", &into.epoch, "Epoch to print").type("N").shows_default();
  command.add("--rank", &into.rank.rank, "Rank to print, less than --world")
      .type("N")
      .shows_default();
  command.add("--world", &into.rank.world, "Number of ranks").type("N").shows_default();
  command.add("--slots", &into.options.slots, "Slots of all ranks together; stateful only")
      .type("N");
  command.add("--max-seqs", &into.options.rows, "Most rows of a batch; not stateful").type("N");
  command
      .add("--batch-size", &into.options.max_padded_frames,
           "Most frames of a batch, padding included; not stateful")
      .type("N");
  command
      .add("--order", &into.options.order,
           "Order of whole streams by length: sorted, sorted_reverse, laplace:BINS or "
           "laplace:.STREAMS; not stateful")
      .type("ORDER");
  command
      .add("--buckets", &into.options.bucket_count,
           "Number of groups of whole streams by length; stateless only")
      .type("N");
  command
      .add("--packed-batch-size", &into.options.packed_batch_size,
           "Most frames of a batch without padding; RETURNN's modes only")
      .type("N");
}

}  // namespace

void add_plan_command(CommandLine& program, Console& console) {
  auto arguments = std::make_shared<PlanArguments>();
  Command command = program.add(
      "plan",
      "Print the training batches of an epoch, without reading frames: [[stream,begin,end],...]");
  add_options(command, *arguments);
  command.run(console, [arguments, &console] {
    const auto printed = print(*arguments, console);
    if (!printed) throw std::runtime_error(printed.error());
  });
}

}  // namespace millrace
