// SPDX-License-Identifier: Apache-2.0
#include "replay/rows/replayed_rows.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

using Kind = Event::Kind;

// Memory of copies that is kept for later rows.
constexpr std::size_t most_spare = 16;
constexpr std::size_t digested_together = 64 * recording::RowDigest::row_bytes;

}  // namespace

ReplayedRows::ReplayedRows(recording::JoinedReader& items, const CutSettings& settings,
                           const Pace& pace, AnswerComparison* comparison)
    : items_(items),
      settings_(settings),
      pace_(pace),
      comparison_(comparison),
      frames_(settings_.frames.bytes()) {
  begin_part();
}

void ReplayedRows::begin_part() {
  before_ = frames_.end();
  digest_ = {};
  digested_.clear();
  if (settings_.other_rule)
    cutter_.emplace(settings_.rule,
                    Decisions{.stream = settings_.name, .rate = settings_.frames.rate});
  else
    cutter_.emplace(settings_.rule);
}

std::optional<ReadyRow> ReplayedRows::next(Time now) {
  due_ = Time::max();
  // Rows are cut several at a time: the last of them reports that they are in batches.
  if (waiting() <= max_ready_rows / 2) full_ = false;
  while (!ended() && !full_) {
    if (const auto row = cutter_->next()) {
      if (!settings_.other_rule && row->seq >= items_.rows_until()) continue;
      return give(*row, now);
    }
    frames_.release(before_ + cutter_->keep_from());
    if (!feed(now)) break;
  }
  return std::nullopt;
}

// Adds the next event, or a part of its frames. False: it is not due, or there are no more.
bool ReplayedRows::feed(Time now) {
  if (!event_ && !read()) return false;
  if (last_due_ > now) {
    due_ = last_due_;
    return false;
  }
  // The lanes drop an aborted stream with all its rows if no worker has had one.
  if (event_->event.kind == Kind::abort && !begun_ && !outstanding_.empty()) return false;
  if (!cutter_->allows(event_->event)) {
    abort_because("a body of " + std::to_string(event_->event.count) +
                  " frames is not one of the rule");
    return true;
  }
  if (event_->event.kind != Kind::frames) {
    if (event_->event.kind == Kind::open) begin_part();
    cutter_->add(event_->event);
    if (event_->event.has_text())
      messages_.push_back(
          {cutter_->position(), std::string(event_->text), event_->event.kind == Kind::set});
    event_.reset();
    return true;
  }
  Event part = event_->event;
  if (cutter_->decides()) part.count = std::min(part.count, cutter_->frames_until_next());
  const std::size_t bytes = static_cast<std::size_t>(part.count) * settings_.frames.bytes();
  frames_.append(event_->frames.first(bytes));
  cutter_->add(part);
  event_->frames = event_->frames.subspan(bytes);
  event_->event.count -= part.count;
  if (event_->event.count == 0) event_.reset();
  return true;
}

ReadyRow ReplayedRows::give(const Row& row, Time now) {
  ++rows_;
  digest(row);
  ReadyRow ready{.row = row, .window = {}, .arrived = now, .ready = now};
  Outstanding kept{.row = row, .copy = {}};
  if (row.has_frames()) {
    if (!spare_.empty()) {
      kept.copy = std::move(spare_.back());
      spare_.pop_back();
    }
    ready.window =
        frames_.window(before_ + cutter_->index(row.window_begin()), row.window(), kept.copy);
  }
  if (!messages_.empty())
    ready.posts = (kept.posts = std::make_unique<StreamPosts>(std::exchange(messages_, {}))).get();
  outstanding_.push_back(std::move(kept));
  full_ = waiting() >= max_ready_rows;
  ready.notify_batched = !begun_ || full_;
  return ready;
}

void ReplayedRows::digest(const Row& row) {
  const auto bytes = recording::RowDigest::bytes_of(row);
  digested_.insert(digested_.end(), bytes.begin(), bytes.end());
  if (digested_.size() < digested_together) return;
  digest_.add_bytes(digested_);
  digested_.clear();
}

void ReplayedRows::batched(std::uint64_t seq) {
  begun_ = true;
  if (outstanding_.empty() || seq < outstanding_.front().row.seq) return;
  const std::size_t count = seq - outstanding_.front().row.seq + 1;
  batched_ = std::clamp(count, batched_, outstanding_.size());
}

std::optional<Row> ReplayedRows::done(std::uint64_t seq) {
  if (outstanding_.empty() || outstanding_.front().row.seq != seq) return std::nullopt;
  begun_ = true;
  batched_ -= std::min<std::size_t>(batched_, 1);
  Outstanding oldest = outstanding_.pop_front();
  if (oldest.copy.capacity() > 0 && spare_.size() < most_spare)
    spare_.push_back(std::move(oldest.copy));
  return oldest.row;
}

// Answers may be missing where no event is.
std::optional<recording::RecordedItem> ReplayedRows::next_item() {
  auto item = items_.next();
  const std::size_t missing = items_.missing_count();
  if (missing > missing_parts_ && comparison_) comparison_->cut();
  missing_parts_ = missing;
  return item;
}

// Reads up to the next event of the chunker. False: there are no more events.
bool ReplayedRows::read() {
  while (!event_) {
    if (items_over_) return false;
    const auto item = next_item();
    if (!item) {
      items_over_ = true;
      // A stream that is still being recorded, up to now.
      if (!ended()) take(recording::RecordedEvent{.event = {Kind::abort, Cause::recorder}});
      return event_.has_value();
    }
    std::visit([this](const auto& one) { take(one); }, *item);
  }
  return true;
}

void ReplayedRows::read_rest() {
  while (!items_over_) {
    const auto item = next_item();
    if (item)
      std::visit([this](const auto& one) { take(one); }, *item);
    else
      items_over_ = true;
  }
  if (comparison_) comparison_->recorded_all();
}

void ReplayedRows::take(recording::RecordedEvent event) {
  if (event.event.kind == Kind::open) missing_ = false;
  if (event.event.cause == Cause::recorder) {
    missing_ = true;
    if (comparison_) comparison_->cut();
  }
  if (settings_.other_rule && !unbroken_.take(event, items_)) return;
  if (leaves_out(event.event)) return;
  event_ = event;
  last_due_ = std::max(last_due_, pace_.due(event.at));
}

void ReplayedRows::take(const recording::RecordedAnswer& answer) {
  if (comparison_) comparison_->recorded(answer);
}

void ReplayedRows::take(const recording::StreamTotals& totals) {
  if (missing_ || settings_.other_rule || !totals.complete || !problem_.empty()) return;
  digest_.add_bytes(digested_);
  digested_.clear();
  differs_ = totals.rows != digest_.rows() || totals.digest != digest_.value();
}

bool ReplayedRows::leaves_out(const Event& event) const {
  if (!settings_.other_rule) return false;
  const bool ends_segment = event.kind == Kind::flush || event.kind == Kind::reset;
  return event.kind == Kind::size || (ends_segment && event.cause == Cause::endpoint);
}

void ReplayedRows::abort_because(std::string why) {
  problem_ = std::move(why);
  items_over_ = true;
  event_ = recording::RecordedEvent{.event = {Kind::abort, Cause::recorder}};
  if (comparison_) comparison_->cut();
}

}  // namespace millrace
