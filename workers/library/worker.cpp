// SPDX-License-Identifier: Apache-2.0
#include "workers/library/worker.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/message_room.h"
#include "schemas/json_text.h"
#include "schemas/text.h"
#include "workers/library/attachment.h"
#include "workers/library/connect_service.h"
#include "workers/library/handshake.h"

namespace millrace {
namespace {

constexpr std::size_t max_name = 256;  // bytes
constexpr std::size_t max_answer_bytes =
    worker_protocol::max_to_service - 4096;  // bytes of the answers to one batch
constexpr std::size_t answer_overhead = 16;  // bytes per answer in the message

void check(const WorkerSettings& settings) {
  using worker_protocol::max_credits;
  if (!settings.watch && (settings.credits < 1 || settings.credits > max_credits))
    throw std::invalid_argument("credits must be 1 to " + std::to_string(max_credits) + ", not " +
                                std::to_string(settings.credits));
  const auto check_text = [](const char* argument, const std::string& text) {
    if (!text.empty() && !is_printable(text, max_name))
      throw std::invalid_argument(std::string(argument) +
                                  " must be text of at most 256 bytes without control characters");
  };
  if (const auto& trainer = settings.trainer) {
    if (settings.watch || settings.alone)
      throw std::invalid_argument("a trainer can neither watch nor be alone");
    if (trainer->rank >= trainer->world || trainer->stride < 1)
      throw std::invalid_argument("rank must be less than world, and stride at least 1");
  }
  check_text("pipeline", settings.pipeline);
  check_text("name", settings.name);
}

std::size_t bytes_of(std::span<const Answer> answers) {
  std::size_t bytes = 0;
  for (const Answer& answer : answers) bytes += answer.data.size() + answer_overhead;
  return bytes;
}

void check_answers(const WorkerBatch& batch, std::span<const Answer> answers,
                   std::span<const Answer> mark_answers) {
  const auto fits = [](std::span<const Answer> given,
                       const std::vector<worker_protocol::RowEntry>& rows) {
    return given.empty() || given.size() == rows.size();
  };
  if (!fits(answers, batch.framed()) || !fits(mark_answers, batch.marks()))
    throw std::invalid_argument("a batch must have one answer for each of its rows, or no answers");
  if (bytes_of(answers) + bytes_of(mark_answers) > max_answer_bytes)
    throw std::invalid_argument("the answers of a batch are too long for a message");
}

bool is_valid(const Answer& answer) {
  if (answer.kind == Answer::Kind::json) return is_json(answer.data);
  return answer.kind != Answer::Kind::text || is_utf8(answer.data);
}

void check_late(const Answer& answer) {
  if (answer.kind == Answer::Kind::pending || !is_valid(answer))
    throw std::invalid_argument("the answer to a pending row must be valid, and not pending again");
  if (answer.data.size() > max_answer_bytes)
    throw std::invalid_argument("the answer is too long for a message");
}

void check_message(const Answer& message) {
  const bool sendable = message.kind == Answer::Kind::json || message.kind == Answer::Kind::text ||
                        message.kind == Answer::Kind::bytes;
  if (!sendable || !is_valid(message))
    throw std::invalid_argument("a message must be valid JSON, valid text, or bytes");
  if (message.data.size() > longest_message)
    throw std::invalid_argument("a message has at most " + std::to_string(longest_message) +
                                " bytes, not " + std::to_string(message.data.size()));
}

// The result of `connect`, which is called again until a service listens, up to settings.wait.
template <class Connect>
auto when_it_listens(const WorkerSettings& settings, const std::function<void()>& meanwhile,
                     Connect connect) {
  check(settings);
  const Time deadline = Clock::now() + settings.wait;
  for (bool waiting = false;;) {
    try {
      return connect();
    } catch (const ServiceAbsent& absent) {
      if (Clock::now() >= deadline) throw;
      if (!std::exchange(waiting, true)) settings.on_wait(absent.what(), settings.wait);
    }
    meanwhile();
    ::poll(nullptr, 0, static_cast<int>(meanwhile_interval.count()));
  }
}

}  // namespace

void print_wait(const std::string& why, Duration wait) {
  const double seconds = std::chrono::duration<double>(wait).count();
  std::fprintf(stderr, "%s; waiting for up to %g s\n", why.c_str(), seconds);
}

worker_protocol::Welcome describe(const std::string& url, const WorkerSettings& settings,
                                  const std::function<void()>& meanwhile) {
  return when_it_listens(settings, meanwhile,
                         [&] { return ask_for_description(url, settings, meanwhile); });
}

Worker::Worker(const std::string& url, const WorkerSettings& settings,
               const std::function<void()>& meanwhile)
    : attachment_(when_it_listens(settings, meanwhile, [&] {
        return std::make_unique<Attachment>(url, settings, meanwhile);
      })) {}
Worker::~Worker() = default;
Worker::Worker(Worker&&) noexcept = default;
Worker& Worker::operator=(Worker&&) noexcept = default;

std::optional<WorkerBatch> Worker::next_until(Time deadline) {
  return attachment_->next_until(deadline);
}
void Worker::done(WorkerBatch& batch, std::span<const Answer> answers,
                  std::span<const Answer> mark_answers) {
  check_answers(batch, answers, mark_answers);
  attachment_->done(batch, answers, mark_answers);
}
void Worker::fail(WorkerBatch& batch, const std::string& why) {
  const std::size_t rows = batch.framed().size() + batch.marks().size();
  const std::size_t share = max_answer_bytes / (rows + 1) - answer_overhead;
  attachment_->fail(batch, std::string(cut_text(why, std::min(longest_error, share))));
}
bool Worker::send(StreamId stream, const Answer& message, Time deadline) {
  check_message(message);
  return attachment_->send(stream, message, deadline);
}
void Worker::answer(StreamId stream, std::uint64_t seq, const Answer& answer) {
  check_late(answer);
  attachment_->answer(stream, seq, answer);
}
void Worker::use_on(const WorkerBatch& batch, DeviceStream stream) {
  attachment_->use_on(batch, stream);
}
void Worker::bye() { attachment_->bye(); }
void Worker::close() { attachment_->close(); }
void Worker::interrupt() noexcept { attachment_->interrupt(); }
bool Worker::ended() const { return attachment_->ended(); }
std::uint32_t Worker::company() const { return attachment_->company().workers; }
std::uint32_t Worker::moved_streams() const { return attachment_->company().moved; }
std::uint32_t Worker::waiting_streams() const { return attachment_->company().waiting; }

std::uint32_t Worker::slots() const { return welcome().slots; }
std::uint32_t Worker::rows() const { return welcome().rows; }
std::uint32_t Worker::width() const { return welcome().width; }
std::uint32_t Worker::values() const { return frames().values; }
Element Worker::dtype() const { return frames().element; }
double Worker::rate() const { return frames().rate; }
const FrameType& Worker::frames() const { return welcome().frames; }
const std::string& Worker::chunk() const { return welcome().chunk; }
const std::vector<std::uint32_t>& Worker::row_buckets() const { return welcome().row_buckets; }
const std::vector<std::uint32_t>& Worker::width_buckets() const { return welcome().width_buckets; }
const std::string& Worker::plan() const { return welcome().plan; }
RowColumns Worker::columns() const { return {welcome().context}; }
const std::string& Worker::device() const { return attachment_->device().name(); }
int Worker::ordinal() const { return attachment_->device().ordinal(); }
const worker_protocol::Welcome& Worker::welcome() const { return attachment_->welcome(); }

}  // namespace millrace
