// SPDX-License-Identifier: Apache-2.0
#include "commands/streaming/streaming_files.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "commands/input/opus_source.h"

namespace millrace {

StreamingFiles::StreamingFiles(Client& client, const StreamPlan& plan, Console& console)
    : client_(client), plan_(plan), console_(console), output_(console, plan.look) {}

void StreamingFiles::add(std::size_t lane, const FilePart& part, std::size_t times) {
  lanes_.resize(std::max(lanes_.size(), lane + 1));
  lanes_[lane].parts.insert(lanes_[lane].parts.end(), times, part);
}

void StreamingFiles::run() {
  (void)client_.descriptor();  // the client reports changes from here on
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) advance(lane, Clock::now());
  while (!by_stream_.empty()) {
    await_change();
    const Time now = Clock::now();
    for (const std::uint64_t stream : client_.changed())
      if (const auto found = by_stream_.find(stream); found != by_stream_.end())
        advance(found->second, now);
    while (!due_.empty() && due_.begin()->first <= now) advance(due_.begin()->second, now);
    if (std::exchange(has_input_, false) && reader_) advance(*reader_, now);
  }
}

void StreamingFiles::await_change() {
  const Time due = due_.empty() ? Clock::now() : due_.begin()->first;
  const Duration left = std::max(Duration::zero(), Duration(due - Clock::now()));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec time{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
  const int input = reader_ ? lanes_[*reader_].stream->awaited_descriptor() : -1;
  std::array<pollfd, 2> changed{pollfd{client_.descriptor(), POLLIN, 0}, pollfd{input, POLLIN, 0}};
  (void)::ppoll(changed.data(), changed.size(), due_.empty() ? nullptr : &time, nullptr);
  has_input_ = changed[1].revents != 0;
}

void StreamingFiles::advance(std::size_t number, Time now) {
  Lane& lane = lanes_[number];
  due_.erase({lane.due, number});
  lane.due = Time::max();
  while (!lane.parts.empty()) {
    if (!lane.stream && !begin(lane)) continue;
    const FilePart& part = lane.parts.front();
    by_stream_.erase(lane.stream->number());
    const auto due = lane.stream->advance(now);
    if (lane.stream->averages()) report_average(part);
    if (due) {
      by_stream_[lane.stream->number()] = number;
      if (part.path == "-") reader_ = number;
      lane.due = *due;
      if (lane.due != Time::max()) due_.emplace(lane.due, number);
      return;
    }
    if (!lane.stream->failure().empty()) fail(lane, lane.stream->failure());
    if (reader_ == number) reader_.reset();
    lane.stream.reset();
    lane.parts.pop_front();
  }
}

// Returns false if the file cannot be read, after an error message.
bool StreamingFiles::begin(Lane& lane) {
  const FilePart& part = lane.parts.front();
  auto source = open_audio(part.path, plan_.raw);
  if (source && plan_.opus) source = OpusSource::open(std::move(*source));
  if (source) {
    lane.stream = std::make_unique<FileStream>(client_, plan_, part, std::move(*source), output_);
    return true;
  }
  fail(lane, source.error());
  lane.parts.pop_front();
  return false;
}

// Once for each file, however often it is streamed.
void StreamingFiles::report_average(const FilePart& part) {
  if (!averaged_.insert(part.path).second) return;
  print_problem(output_, part,
                "notice: the channels are averaged; --split makes a stream of each, --channel 0 "
                "selects one");
}

void StreamingFiles::fail(const Lane& lane, const std::string& why) {
  print_problem(output_, lane.parts.front(), why);
  console_.exit_code = 1;
}

}  // namespace millrace
