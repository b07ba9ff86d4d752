// SPDX-License-Identifier: Apache-2.0
#include "training/serving/served_plan.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "chunker/rule_json.h"
#include "gpu/host/companion_layout.h"
#include "gpu/host/slab_ring.h"
#include "schemas/text.h"
#include "training/plans/make_plan.h"
#include "training/plans/origin.h"
#include "workers/plan/plan_text.h"

namespace millrace::training {

namespace wp = worker_protocol;

namespace {

// Most marker rows of a batch: a stream with inner events can have several after one row. Where a
// stream with too many is skipped, that does not depend on the streams beside it: then there is
// room for as many after each row as a stream alone has in practice.
std::uint32_t most_marks(const ServedPlan& served, std::uint32_t rows) {
  return std::max(1024u, (served.skip_failed ? 256 : 16) * rows);
}

// A plan may have wide batches of few rows, and narrow ones of many.
std::size_t most_companion_bytes(const ServedPlan& served, const Plan& plan, Rank rank) {
  const std::uint64_t rows = plan.most_rows(rank), frames = plan.most_padded_frames(rank);
  std::size_t bytes = 0;
  for (const CompanionFormat& companion : served.catalog->companions()) {
    const std::uint64_t by_rows = rows * companion.most_entries(plan.most_body());
    const std::uint64_t by_frames =
        (frames / companion.frames_per_entry + rows) * companion.entries_per_frame;
    bytes += std::min(by_rows, by_frames) * companion.entry_bytes() + slab_alignment;
  }
  return bytes;
}

// Most bytes of the names and meta in a message. The limit of unread messages has room for them.
constexpr std::size_t max_texts = std::size_t{32} << 20;

// Bytes of a name that is cut.
constexpr std::size_t most_cut_name = 256;

ReadError too_long(std::string_view what, std::size_t bytes, std::size_t most) {
  return {DataFault::format, "its " + std::string(what) + " has " + std::to_string(bytes) +
                                 " bytes; a trainer receives at most " + std::to_string(most)};
}

// Adds the texts of a stream, and their bytes to `texts`.
std::optional<TextError> add_text(const Catalog& catalog, wp::OpenedStream& stream,
                                  std::size_t& texts) {
  const std::uint64_t at = number(stream.stream);
  stream.name = catalog.name(at);
  stream.options = catalog.meta(at);
  if (stream.name.size() > wp::max_catalog_name)
    return TextError{at, stream.name, too_long("name", stream.name.size(), wp::max_catalog_name)};
  if (stream.options.size() > wp::max_meta)
    return TextError{at, stream.name, too_long("meta", stream.options.size(), wp::max_meta)};
  texts += stream.name.size() + stream.options.size();
  if (texts > max_texts)
    return TextError{
        at, stream.name,
        too_long("batch, with the names and meta of all its streams,", texts, max_texts)};
  return std::nullopt;
}

}  // namespace

std::size_t slab_bytes(const ServedPlan& served, const Plan& plan, Rank rank) {
  const std::uint32_t rows = plan.most_rows(rank);
  const std::size_t tensor =
      plan.most_padded_frames(rank) * served.format.values * size_of(served.format.dtype);
  const SlabLayout rest = layout_of({.rows = rows,
                                     .marks = most_marks(served, rows),
                                     .width = 0,
                                     .companions = most_companion_bytes(served, plan, rank)});
  return SlabRing::slab_bytes_for(tensor + slab_alignment + rest.bytes);
}

std::size_t most_batch_bytes(const ServedPlan& served) {
  const Rank alone{};
  const auto plan = make_plan(*served.catalog, served.options, alone);
  return plan ? slab_bytes(served, **plan, alone) : 0;
}

// In turns, each server opens every stream: it repeats the work of the others, and a stream that
// only one server cannot read is skipped only in the steps of this server.
bool shares_slots(const ServedPlan& served) {
  return served.function || served.skip_failed || served.catalog->decodes();
}

wp::Welcome welcome_of(const ServedPlan& served, const Plan& plan, const wp::TrainerHello& trainer,
                       std::uint64_t steps, bool shares_slots) {
  const Rank rank{trainer.rank, trainer.world};
  const std::uint32_t slots = plan.slots(rank);
  const auto companions = served.catalog->companions();
  wp::Welcome welcome;
  welcome.rows = plan.most_rows(rank);
  // Rows without state have the number of their row as slot.
  welcome.slots = slots > 0 ? slots : welcome.rows;
  welcome.width = plan.most_columns();
  welcome.frames = served.catalog->frame_type();
  welcome.frames.element = served.format.dtype;
  welcome.chunk = served.options.chunk ? to_json(*served.options.chunk) : "null";
  welcome.context = served.format.context;
  welcome.repeat = served.format.repeat;
  welcome.width_buckets = {welcome.width};
  welcome.plan = to_json(PlanText{.origin = origin_of(*served.catalog, served.options),
                                  .epoch = trainer.epoch,
                                  .steps = steps,
                                  .epochs = served.epochs,
                                  .slots = slots,
                                  .companions = {companions.begin(), companions.end()},
                                  .shares_slots = shares_slots});
  return welcome;
}

std::uint64_t padding_of(const worker_protocol::HandedBatch& batch) {
  std::uint64_t columns = std::uint64_t{batch.rows} * batch.width;
  for (const worker_protocol::RowEntry& row : batch.framed)
    columns -= std::uint64_t{row.left} + row.size + row.right;
  return columns;
}

std::optional<TextError> add_texts(const Catalog& catalog, std::vector<wp::OpenedStream>& opened) {
  std::size_t texts = 0;
  for (wp::OpenedStream& stream : opened)
    if (auto error = add_text(catalog, stream, texts)) return error;
  return std::nullopt;
}

std::vector<TextError> add_short_texts(const Catalog& catalog,
                                       std::vector<wp::OpenedStream>& opened) {
  std::vector<TextError> errors;
  std::size_t texts = 0;
  for (wp::OpenedStream& stream : opened) {
    const std::size_t before = texts;
    auto error = add_text(catalog, stream, texts);
    if (!error) continue;
    if (stream.name.size() > wp::max_catalog_name)
      stream.name = cut_text(stream.name, most_cut_name);
    const auto has_room = [&] {
      return before + stream.name.size() + stream.options.size() <= max_texts;
    };
    if (stream.options.size() > wp::max_meta || !has_room()) stream.options.clear();
    if (!has_room()) stream.name = cut_text(stream.name, most_cut_name);
    texts = before + stream.name.size() + stream.options.size();
    errors.push_back(std::move(*error));
  }
  return errors;
}

}  // namespace millrace::training
