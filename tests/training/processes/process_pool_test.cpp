// SPDX-License-Identifier: Apache-2.0
#include "training/processes/process_pool.h"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "tests/support/bytes.h"
#include "tests/support/patience.h"

using namespace millrace;
using namespace millrace::test;
using training::DataFault;
using training::ProcessCall;
using training::ProcessChannel;
using training::ProcessPool;

namespace {

// Processes that only sleep, and a thread for each of them that answers in its place.
class Processes {
 public:
  // Gives the answer to a request. An empty one: the process ends.
  using Answer = std::function<std::string(const std::string& request, MutableBytes memory)>;

  explicit Processes(Answer answer) : answer_(std::move(answer)) {}
  ~Processes() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }

  ProcessChannel start() {
    ++started;
    std::array<int, 2> sockets{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) == 0);
    std::array<char, 6> name{"sleep"}, time{"1000"};
    std::array<char*, 3> arguments{name.data(), time.data(), nullptr};
    pid_t child = 0;
    REQUIRE(::posix_spawnp(&child, "sleep", nullptr, nullptr, arguments.data(), environ) == 0);
    children_.push_back(child);
    threads_.emplace_back(
        [this, socket = sockets[1], child] { serve(FileDescriptor(socket), child); });
    return {FileDescriptor(sockets[0]),
            FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)))};
  }

  // They wait for their parent.
  void kill_all() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      siginfo_t status{};
      (void)::waitid(P_PID, static_cast<id_t>(child), &status, WEXITED | WNOWAIT);
    }
  }

  std::atomic<int> started{0};

 private:
  void serve(FileDescriptor socket, pid_t child) {
    std::optional<SharedMemory> memory;
    const std::uint32_t ready = 0;
    (void)::send(socket.get(), &ready, sizeof ready, MSG_NOSIGNAL);
    for (;;) {
      std::array<std::uint32_t, 2> head{};
      iovec part{head.data(), sizeof head};
      alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      if (::recvmsg(socket.get(), &message, MSG_WAITALL) < static_cast<ssize_t>(sizeof head))
        return;
      if (const cmsghdr* const header = CMSG_FIRSTHDR(&message)) {
        int descriptor = -1;
        std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
        const FileDescriptor owned(descriptor);
        memory = SharedMemory::map(descriptor, 1 << 20);
      }
      std::string request(head[0], ' ');
      (void)::recv(socket.get(), request.data(), request.size(), MSG_WAITALL);
      const std::string answer = answer_(request, memory->bytes());
      if (answer.empty()) {
        ::kill(child, SIGKILL);
        return;
      }
      const auto size = static_cast<std::uint32_t>(answer.size());
      (void)::send(socket.get(), &size, sizeof size, MSG_NOSIGNAL);
      (void)::send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }

  const Answer answer_;
  std::vector<pid_t> children_;
  std::vector<std::jthread> threads_;
};

struct Pool {
  explicit Pool(Processes::Answer answer, std::size_t count = 1, Duration longest = patience)
      : processes(std::move(answer)),
        pool(count, longest, [this](std::size_t) { return processes.start(); }) {}

  std::string error(const ProcessCall& call) {
    const auto values = pool.call(call);
    REQUIRE(values.has_error());
    CHECK(values.error().fault == DataFault::function);
    return values.error().message;
  }

  Processes processes;
  ProcessPool pool;
};

ProcessCall call_with(std::vector<Bytes> given = {}, std::size_t room = 0) {
  return {.request = "{\"source\":0",
          .given = std::move(given),
          .room = room,
          .fault = DataFault::function,
          .name = "augment"};
}

}  // namespace

TEST_CASE("arguments and values go through shared memory, each aligned") {
  const auto first = bytes_of(std::vector<std::int16_t>{1, 2, 3}),
             second = bytes_of(std::vector<std::int16_t>{4});
  std::string asked;
  Pool one([&](const std::string& request, MutableBytes memory) {
    asked = request;
    std::memcpy(&memory[128], &memory[0], 6);  // the room begins at 128
    std::memcpy(&memory[192], &memory[64], 2);
    return R"({"returned":[6,2]})";
  });
  const auto values = one.pool.call(call_with({first, second}, 66));
  REQUIRE(values.has_value());
  CHECK((*values == ProcessPool::Values{first, second}));
  CHECK(asked == R"({"source":0,"given":[6,2],"room":66})");
}

TEST_CASE("memory grows with the call that needs it") {
  Pool one([&](const std::string&, MutableBytes memory) {
    memory[0] = std::byte{7};
    return R"({"returned":[1]})";
  });
  for (const std::size_t room : {std::size_t{1}, std::size_t{3} << 20, std::size_t{1}}) {
    const auto values = one.pool.call(call_with({}, room));
    REQUIRE(values.has_value());
    CHECK((*values == ProcessPool::Values{{std::byte{7}}}));
  }
}

TEST_CASE("two calls at the same time have a process each, and a third one waits") {
  std::counting_semaphore<> in_call(0), go(0);
  Pool two(
      [&](const std::string&, MutableBytes) {
        in_call.release();
        go.acquire();
        return R"({"returned":[]})";
      },
      2);
  two.pool.start();
  CHECK(two.processes.started == 2);
  std::atomic<int> returned{0};
  std::vector<std::jthread> callers;
  for (int i = 0; i < 3; ++i)
    callers.emplace_back([&] {
      if (two.pool.call(call_with())) ++returned;
    });
  CHECK(in_call.try_acquire_for(patience));
  CHECK(in_call.try_acquire_for(patience));
  CHECK_FALSE(in_call.try_acquire());
  go.release();
  CHECK(in_call.try_acquire_for(patience));
  go.release(2);
  callers.clear();
  CHECK(returned == 3);
}

TEST_CASE("the error of a function is that of its call") {
  Pool one([](const std::string&, MutableBytes) { return R"({"error":"no luck"})"; });
  CHECK(one.error(call_with()) == "augment: no luck");
  CHECK(one.processes.started == 1);
}

TEST_CASE("an invalid answer is an error of its call") {
  std::string answer;
  Pool one([&](const std::string&, MutableBytes) { return answer; });
  for (const char* invalid : {"{", "[]", "{}", R"({"returned":1})", R"({"returned":[-1]})",
                              R"({"returned":[11]})", R"({"returned":[1,1]})"}) {
    INFO(invalid);
    answer = invalid;
    CHECK(one.error(call_with({}, 10)) == "augment: its process sent an invalid answer");
  }
}

TEST_CASE("a process that ends is an error of its call, and the next call has a new one") {
  std::atomic<bool> ends{true};
  Pool one([&](const std::string&, MutableBytes) {
    return ends.exchange(false) ? "" : R"({"returned":[]})";
  });
  CHECK(one.error(call_with()) == "augment: its process was ended by signal 9 (Killed)");
  CHECK(one.pool.call(call_with()).has_value());
  CHECK(one.processes.started == 2);
}

TEST_CASE("a process that has ended while it was idle is replaced, without an error") {
  Pool one([](const std::string&, MutableBytes) { return R"({"returned":[]})"; });
  CHECK(one.pool.call(call_with()).has_value());
  one.processes.kill_all();
  CHECK(one.pool.call(call_with()).has_value());
  CHECK(one.processes.started == 2);
}

TEST_CASE("a process that ends while another one has its socket is seen to end") {
  Processes* processes = nullptr;
  std::binary_semaphore returns(0);
  Pool one([&](const std::string&, MutableBytes) {
    processes->kill_all();
    returns.acquire();
    return "";
  });
  processes = &one.processes;
  CHECK(one.error(call_with()) == "augment: its process was ended by signal 9 (Killed)");
  returns.release();
}

TEST_CASE("an answer may have bytes that are not UTF-8, as those of file names") {
  Pool one([](const std::string&, MutableBytes) { return R"({"error":"caf\udce9"})"; });
  CHECK(one.error(call_with()).starts_with("augment: caf"));
}

TEST_CASE("a call has a longest time, after which its process is ended") {
  std::binary_semaphore returns(0);
  Pool one(
      [&](const std::string&, MutableBytes) {
        returns.acquire();
        return "";
      },
      1, Duration(1));
  CHECK(one.error(call_with()) ==
        "augment: it has not returned in time, and its process was ended");
  returns.release();
}

TEST_CASE("stop() ends a call, and a later start() makes new processes") {
  std::binary_semaphore in_call(0), returns(0);
  std::atomic<bool> waits{true};
  Pool one([&](const std::string&, MutableBytes) -> std::string {
    if (!waits.exchange(false)) return R"({"returned":[]})";
    in_call.release();
    returns.acquire();
    return "";
  });
  std::string error;
  {
    const std::jthread caller([&] { error = one.error(call_with()); });
    CHECK(in_call.try_acquire_for(patience));
    one.pool.stop();
    returns.release();  // as the end of the process does
  }
  CHECK(error == "augment: its process was ended by signal 9 (Killed)");
  CHECK(one.error(call_with()) == "augment: the processes were ended");
  one.pool.start();
  CHECK(one.pool.call(call_with()).has_value());
}

TEST_CASE("a process that cannot be started is an error of the call") {
  ProcessPool pool(1, patience,
                   [](std::size_t) -> ProcessChannel { throw std::runtime_error("no process"); });
  const auto values = pool.call(call_with());
  REQUIRE(values.has_error());
  CHECK(values.error().message == "augment: no process");
  CHECK_THROWS_WITH(pool.start(), "no process");
  CHECK(pool.call(call_with()).error().message == "augment: no process");
}
