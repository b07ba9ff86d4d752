// SPDX-License-Identifier: Apache-2.0
#include "training/processes/process_channel.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

namespace millrace::training {

namespace {

constexpr std::size_t unit = 1 << 20;            // bytes of memory
constexpr std::size_t kept = 64 << 20;           // bytes of memory that later calls need not use
constexpr std::uint32_t most_answer = 64 << 20;  // bytes
constexpr auto start_limit = std::chrono::minutes(5);  // for an interpreter and its imports

// Milliseconds up to the deadline, for poll(): at most a second, so that any deadline fits.
int wait_until(Time deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000));
}

// A deadline that does not overflow.
Time deadline_after(Duration longest) {
  return Clock::now() + std::min<Duration>(longest, std::chrono::hours(1'000'000));
}

}  // namespace

// Processes that are forked later get neither the mapping nor the descriptor: they would keep the
// memory alive when this process has replaced it.
MutableBytes ProcessChannel::memory(std::size_t bytes) {
  const std::size_t have = memory_ ? memory_->bytes().size() : 0;
  if (!memory_ || have < bytes || (have > kept && bytes < have / 4)) {
    memory_.reset();
    memory_ = SharedMemory::create((bytes + bytes / 8 + unit - 1) / unit * unit + unit);
    ::madvise(memory_->bytes().data(), memory_->bytes().size(), MADV_DONTFORK);
    is_new_ = true;
  }
  return memory_->bytes();
}

std::optional<std::string> ProcessChannel::call(std::string_view request, Duration longest) {
  std::uint32_t bytes = 0;
  const MutableBytes head = std::as_writable_bytes(std::span(&bytes, 1));
  Time deadline = Clock::now() + start_limit;
  if (is_ready_ || receive(head, deadline)) {
    is_ready_ = true;
    deadline = deadline_after(longest);
    std::string answer;
    if (send(request, deadline) && receive(head, deadline) && bytes <= most_answer) {
      answer.resize(bytes);
      if (receive(std::as_writable_bytes(std::span(answer)), deadline)) return answer;
    }
  }
  if (Clock::now() < deadline)
    end_ = end_of_process();
  else
    end_ = "it has not returned in time, and its process was ended";
  kill();
  return std::nullopt;
}

bool ProcessChannel::send(std::string_view request, Time deadline) {
  std::array<std::uint32_t, 2> head{static_cast<std::uint32_t>(request.size()),
                                    std::uint32_t{is_new_}};
  iovec part{head.data(), sizeof head};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (is_new_) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int descriptor = memory_->descriptor();
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  // The socket is empty, so the head is sent as a whole.
  if (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) !=
      static_cast<ssize_t>(sizeof head))
    return false;
  if (std::exchange(is_new_, false)) memory_->close_descriptor();
  while (!request.empty()) {
    if (!wait(POLLOUT, deadline)) return false;
    const ssize_t sent =
        ::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EINTR && errno != EAGAIN) return false;
    request.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
  }
  return true;
}

bool ProcessChannel::receive(MutableBytes into, Time deadline) {
  while (!into.empty()) {
    if (!wait(POLLIN, deadline)) return false;
    const ssize_t received = ::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
    if (received < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (received <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(received));
  }
  return true;
}

// A process that it has forked may hold its socket: then only the end of the process itself shows.
bool ProcessChannel::wait(short event, Time deadline) const {
  for (;;) {
    std::array<pollfd, 2> waits{pollfd{socket_.get(), event, 0}, {process_.get(), POLLIN, 0}};
    const int ready = ::poll(waits.data(), waits.size(), wait_until(deadline));
    if (ready > 0) return waits[0].revents != 0;
    if (ready == 0 && Clock::now() >= deadline) return false;
  }
}

bool ProcessChannel::has_ended() const {
  pollfd waits{process_.get(), POLLIN, 0};
  return ::poll(&waits, 1, 0) > 0;
}

void ProcessChannel::kill() const {
  ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
}

// A child of this process has a status, which stays for the one that started it.
std::string ProcessChannel::end_of_process() const {
  pollfd waits{process_.get(), POLLIN, 0};
  // The end of its socket comes before that of the process.
  if (::poll(&waits, 1, 1000) == 0) return "its process has closed its connection";
  siginfo_t status{};
  const auto process = static_cast<id_t>(process_.get());
  if (::waitid(P_PIDFD, process, &status, WEXITED | WNOHANG | WNOWAIT) != 0 || status.si_pid == 0)
    return "its process has ended";
  if (status.si_code == CLD_EXITED)
    return "its process has ended with exit code " + std::to_string(status.si_status);
  return "its process was ended by signal " + std::to_string(status.si_status) + " (" +
         ::strsignal(status.si_status) + ")";
}

}  // namespace millrace::training
