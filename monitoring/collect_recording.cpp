// SPDX-License-Identifier: Apache-2.0
#include "monitoring/collect.h"

namespace millrace {

namespace {

using recording::DropReason;
using recording::RecordingStats;
using recording::TapStats;

void collect_slices(const Sources& sources, Families& into) {
  const Shards<RecordingStats>& recorder = sources.recorder;
  into.begin_gauge("millrace_recording_streams", "Streams being recorded.");
  into.add({}, sum(recorder, &RecordingStats::streams));
  into.begin_histogram("millrace_recording_queue_wait_seconds",
                       "Time that frames waited for the recorder.");
  into.add({}, histograms(recorder, &RecordingStats::queue_wait), per_second);
  into.begin_counter("millrace_recording_records_total", "Records appended to recording files.");
  into.add({}, sum(recorder, &RecordingStats::slices));
  into.begin_counter("millrace_recording_records_dropped_total", "Records not recorded.");
  for (const DropReason reason : values_of<DropReason>())
    into.add({{"reason", std::string(name_of(reason))}},
             sum_of(recorder, &RecordingStats::dropped, reason) +
                 sum_of(sources.taps, &TapStats::dropped, reason));
  into.begin_counter("millrace_recording_written_bytes_total",
                     "Bytes appended to recording files.");
  into.add({}, sum(recorder, &RecordingStats::written_bytes));
}

void collect_disk(const Shards<RecordingStats>& recorder, Families& into) {
  into.begin_counter("millrace_recording_errors_total", "Failed file operations of the recorder.");
  add_each(into, {}, "op", recorder, &RecordingStats::errors);
  into.begin_histogram("millrace_recording_write_duration_seconds",
                       "Duration of one append to a recording file.");
  into.add({}, histograms(recorder, &RecordingStats::write_time), per_second);
  into.begin_histogram("millrace_recording_fsync_duration_seconds",
                       "Duration of one fdatasync of a recording file.");
  into.add({}, histograms(recorder, &RecordingStats::sync_time), per_second);
  into.begin_gauge("millrace_recording_unsynced_bytes",
                   "Bytes written to recording files and not yet synced.");
  into.add({}, sum(recorder, &RecordingStats::unsynced_bytes));
  into.begin_gauge("millrace_recording_last_sync_timestamp_seconds",
                   "Unix time of the last successful fdatasync.");
  into.add({}, sum(recorder, &RecordingStats::last_sync));
  into.begin_gauge("millrace_recording_disk_free_bytes",
                   "Free bytes on the file system of the recordings.");
  into.add({}, sum(recorder, &RecordingStats::free_bytes));
  into.begin_gauge("millrace_recording_suspended",
                   "1 while recording is suspended because of the disk.");
  into.add({}, sum(recorder, &RecordingStats::suspended));
  into.begin_counter("millrace_recording_files_total", "Recording files by event.");
  add_each(into, {}, "event", recorder, &RecordingStats::files);
  into.begin_counter("millrace_recording_recovery_truncated_bytes_total",
                     "Bytes of torn tails that were cut at the start.");
  into.add({}, sum(recorder, &RecordingStats::truncated_bytes));
}

}  // namespace

void collect_recording(const Sources& sources, Families& into) {
  if (sources.recorder.empty()) return;
  collect_slices(sources, into);
  collect_disk(sources.recorder, into);
}

}  // namespace millrace
