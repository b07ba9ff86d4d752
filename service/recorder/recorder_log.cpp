// SPDX-License-Identifier: Apache-2.0
#include "service/recorder/recorder_log.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>

#include "recording/files/directory.h"

namespace millrace {

namespace {

// A few of the streams, and the number of the others.
std::string some_of(const std::vector<std::string>& streams) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(streams.size(), most); ++i)
    text += (i > 0 ? ", " : "") + streams[i];
  if (streams.size() > most) text += ", and " + std::to_string(streams.size() - most) + " more";
  return text;
}

}  // namespace

RecorderLog::RecorderLog(LogWriter& writer, std::function<void(recording::FileNumber)> on_sealed,
                         std::function<void(std::uint64_t)> on_opened)
    : log_(writer, stats_), on_sealed_(std::move(on_sealed)), on_opened_(std::move(on_opened)) {}

void RecorderLog::skipped(std::string_view file, std::string_view why) {
  log_.warning("recording skipped file", {{"file", file}, {"why", why}});
}

void RecorderLog::shared(unsigned mode) {
  std::array<char, 8> octal;
  std::snprintf(octal.data(), octal.size(), "%04o", mode);
  log_.warning("recording directory is shared",
               {{"mode", octal.data()}, {"note", "run chmod 700 on [recording] directory"}});
}

void RecorderLog::recovered(const recording::Recovered& what) {
  log_.warning("recording recovered", {{"file", recording::Directory::file_name(what.file)},
                                       {"cut_bytes", std::to_string(what.cut_bytes)},
                                       {"lost_bytes", std::to_string(what.lost_bytes)},
                                       {"streams", some_of(what.streams)}});
  for (const std::string& notice : what.notices) failed(notice);
}

void RecorderLog::left_unsealed(recording::FileNumber file, std::string_view why) {
  log_.warning("recording left unsealed", {{"file", recording::Directory::file_name(file)},
                                           {"why", why},
                                           {"note", "millrace recordings repair seals the file"}});
}

void RecorderLog::suspended(std::string_view why) {
  log_.warning("recording suspended", {{"why", why}});
}

void RecorderLog::resumed() { log_.info("recording resumed", {}); }

void RecorderLog::dropped(std::uint64_t slices, recording::DropReason reason) {
  log_.warning("recording dropped slices",
               {{"slices", std::to_string(slices)}, {"why", name_of(reason)}});
}

void RecorderLog::failed(std::string_view why) {
  log_.warning("recording upkeep failed", {{"why", why}});
}

void RecorderLog::rewritten(recording::FileNumber file, std::uint64_t bytes) {
  log_.info("recording rewritten", {{"file", recording::Directory::file_name(file)},
                                    {"bytes", std::to_string(bytes)},
                                    {"why", "streams were removed"}});
}

void RecorderLog::deleted(const recording::Deleted& what) {
  log_.info("recording deleted", {{"files", std::to_string(what.files.size())},
                                  {"first", recording::Directory::file_name(what.files.front())},
                                  {"last", recording::Directory::file_name(what.files.back())},
                                  {"bytes", std::to_string(what.bytes)},
                                  {"keep_for", std::to_string(what.by_age)},
                                  {"keep", std::to_string(what.files.size() - what.by_age)}});
}

void RecorderLog::waits_for_process() {
  log_.warning("recording upkeep waits for another process",
               {{"note", "millrace recordings rm or repair is running, or was stopped"}});
}

void RecorderLog::waits_for_clock() {
  log_.info("recording upkeep waits for the clock",
            {{"note", "keep_for applies when the wall clock was not set for an hour"}});
}

}  // namespace millrace
