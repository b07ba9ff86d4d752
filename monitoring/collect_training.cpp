// SPDX-License-Identifier: Apache-2.0
#include "monitoring/collect.h"

namespace millrace {

using training::TrainingStats;

void collect_training(const Sources& sources, Families& into) {
  const Shards<TrainingStats>& plans = sources.training;
  if (plans.empty()) return;
  into.begin_gauge("millrace_training_trainers", "Attached trainers.");
  into.add({}, sum(plans, &TrainingStats::trainers));
  into.begin_counter("millrace_training_batches_total", "Batches handed over.");
  into.add({}, sum(plans, &TrainingStats::batches));
  into.begin_counter("millrace_training_frames_total",
                     "Frames in these batches, padding included.");
  into.add({}, sum(plans, &TrainingStats::frames));
  into.begin_counter("millrace_training_frames_padded_total", "Padding frames in these batches.");
  into.add({}, sum(plans, &TrainingStats::padding));
  into.begin_histogram("millrace_training_fill_duration_seconds", "Time to fill one batch.");
  into.add({}, histograms(plans, &TrainingStats::fill), per_second);
  into.begin_counter("millrace_training_wait_seconds_total",
                     "Time that trainers with a credit waited for a batch.");
  into.add({}, sum(plans, &TrainingStats::waited) / per_second);
  into.begin_counter("millrace_training_errors_total", "Streams that could not be delivered.");
  add_each(into, {}, "reason", plans, &TrainingStats::errors);
  into.begin_gauge("millrace_training_epoch", "Epoch of the rank that is furthest behind.");
  into.add({}, sum(plans, &TrainingStats::epoch));
  into.begin_gauge("millrace_training_step", "Step of the rank that is furthest behind.");
  into.add({}, sum(plans, &TrainingStats::step));
}

}  // namespace millrace
