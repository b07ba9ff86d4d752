// SPDX-License-Identifier: Apache-2.0
#include "workers/worker.h"

#include "workers/attachment.h"

namespace millrace {

Worker::Worker(const std::string& url, const WorkerSettings& settings,
               const std::function<void()>& meanwhile)
    : attachment_(std::make_unique<Attachment>(url, settings, meanwhile)) {}
Worker::~Worker() = default;
Worker::Worker(Worker&&) noexcept = default;
Worker& Worker::operator=(Worker&&) noexcept = default;

std::optional<WorkerBatch> Worker::next_until(Time deadline) {
  return attachment_->next_until(deadline);
}
void Worker::done(WorkerBatch& batch, std::span<const Answer> answers,
                  std::span<const Answer> mark_answers) {
  attachment_->done(batch, answers, mark_answers);
}
void Worker::use_on(const WorkerBatch& batch, DeviceStream stream) {
  attachment_->use_on(batch, stream);
}
void Worker::bye() { attachment_->bye(); }
void Worker::close() { attachment_->close(); }
void Worker::interrupt() noexcept { attachment_->interrupt(); }
bool Worker::ended() const { return attachment_->ended(); }
std::uint32_t Worker::company() const { return attachment_->company(); }

std::uint32_t Worker::slots() const { return attachment_->welcome().slots; }
std::uint32_t Worker::rows() const { return attachment_->welcome().rows; }
std::uint32_t Worker::width() const { return attachment_->welcome().width; }
std::uint32_t Worker::values() const { return frames().values; }
Element Worker::dtype() const { return frames().element; }
double Worker::rate() const { return frames().rate; }
const FrameType& Worker::frames() const { return attachment_->welcome().frames; }
const std::string& Worker::chunk() const { return attachment_->welcome().chunk; }
const std::string& Worker::device() const { return attachment_->device().name(); }
int Worker::ordinal() const { return attachment_->device().ordinal(); }

}  // namespace millrace
