// SPDX-License-Identifier: Apache-2.0
#include "training/processes/process_channel.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace millrace::training {

namespace {

constexpr std::size_t least_memory = 1 << 20;    // bytes
constexpr std::uint32_t most_answer = 64 << 20;  // bytes
constexpr int end_wait = 1000;  // ms; from the end of the socket to that of the process

// Milliseconds up to the deadline, for poll(): at most a second, so that any deadline fits.
int wait_until(Time deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000));
}

}  // namespace

MutableBytes ProcessChannel::memory(std::size_t bytes) {
  if (!memory_ || memory_->bytes().size() < bytes) {
    memory_.reset();
    memory_ = SharedMemory::create(std::bit_ceil(std::max(bytes, least_memory)));
    is_new_ = true;
  }
  return memory_->bytes();
}

std::optional<std::string> ProcessChannel::call(std::string_view request, Time deadline) {
  std::uint32_t bytes = 0;
  std::string answer;
  if (send(request) && receive(std::as_writable_bytes(std::span(&bytes, 1)), deadline) &&
      bytes <= most_answer) {
    answer.resize(bytes);
    if (receive(std::as_writable_bytes(std::span(answer)), deadline)) return answer;
  }
  if (Clock::now() < deadline) {
    end_ = end_of_process();
  } else {
    kill();
    end_ = "it has not returned in time, and its process was ended";
  }
  return std::nullopt;
}

bool ProcessChannel::send(std::string_view request) {
  std::array<std::uint32_t, 2> head{static_cast<std::uint32_t>(request.size()),
                                    std::uint32_t{is_new_}};
  std::array<iovec, 2> parts{iovec{head.data(), sizeof head},
                             iovec{const_cast<char*>(request.data()), request.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (std::exchange(is_new_, false)) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int descriptor = memory_->descriptor();
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  ssize_t sent = 0;
  do sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent < static_cast<ssize_t>(sizeof head)) return false;
  for (std::string_view rest = request.substr(static_cast<std::size_t>(sent) - sizeof head);
       !rest.empty();) {
    sent = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    rest.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
  }
  return true;
}

bool ProcessChannel::receive(MutableBytes into, Time deadline) {
  while (!into.empty()) {
    pollfd waits{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waits, 1, wait_until(deadline));
    if (ready == 0 && Clock::now() >= deadline) return false;
    if (ready <= 0) continue;
    const ssize_t received = ::recv(socket_.get(), into.data(), into.size(), 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(received));
  }
  return true;
}

void ProcessChannel::kill() const {
  ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
}

// A child of this process has a status, which stays for the one that started it.
std::string ProcessChannel::end_of_process() const {
  pollfd waits{.fd = process_.get(), .events = POLLIN, .revents = 0};
  (void)::poll(&waits, 1, end_wait);
  siginfo_t status{};
  if (::waitid(P_PIDFD, static_cast<id_t>(process_.get()), &status, WEXITED | WNOHANG | WNOWAIT) ==
          0 &&
      status.si_pid != 0) {
    if (status.si_code == CLD_EXITED)
      return "its process has ended with exit code " + std::to_string(status.si_status);
    return "its process was ended by signal " + std::to_string(status.si_status) + " (" +
           ::strsignal(status.si_status) + ")";
  }
  return "its process has ended";
}

}  // namespace millrace::training
