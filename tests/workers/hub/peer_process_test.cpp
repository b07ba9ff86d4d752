// SPDX-License-Identifier: Apache-2.0
#include "workers/hub/peer_process.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <system_error>

#include "tests/support/descriptor_limit.h"
#include "tests/support/patience.h"
#include "tests/support/temporary_directory.h"
#include "tests/workers/library/child.h"
#include "transport/net/framed_socket.h"
#include "transport/net/local_listener.h"

using namespace millrace;
using namespace millrace::test;

namespace {

// A child process with a connection to this process. It closes the connection when it receives a
// byte.
class Peer {
 public:
  Peer()
      : child_([path = listener_.path()] {
          const FramedSocket socket = FramedSocket::connect(path, {});
          pollfd input{socket.native_handle(), POLLIN, 0};
          ::poll(&input, 1, -1);
          char byte = 0;  // no byte at the shutdown of our end: the connection stays
          if (::read(socket.native_handle(), &byte, 1) != 1) ::pause();
        }) {
    await(listener_.native_handle());
    connection_ = std::move(**try_accept(listener_.native_handle()));
  }

  int connection() const { return connection_.get(); }

  void let_it_hang_up() {
    REQUIRE(::write(connection(), "x", 1) == 1);
    pollfd end{connection(), POLLRDHUP, 0};
    REQUIRE(::poll(&end, 1, std::chrono::milliseconds(patience).count()) == 1);
  }
  void kill() { child_.kill(); }

 private:
  static void await(int descriptor) {
    pollfd input{descriptor, POLLIN, 0};
    REQUIRE(::poll(&input, 1, std::chrono::milliseconds(patience).count()) == 1);
  }

  TemporaryDirectory directory_;
  LocalListener listener_{directory_ / "peer.sock"};
  Child child_;
  FileDescriptor connection_;
};

struct Watch {
  net::io_context io;
  std::optional<PeerProcess> process;
  int gone = 0;

  void begin(int connection, FileDescriptor pidfd) {
    process.emplace(io.get_executor(), std::move(pidfd), connection);
    process->when_ended([this] { ++gone; });
    io.poll();
  }
  // The number of calls of the callback so far, after a time in which a call would have happened.
  int calls() {
    io.restart();
    io.run_for(patience);
    return gone;
  }
};

}  // namespace

TEST_CASE("a process counts as ended when it has ended, not when it hangs up") {
  Peer peer;
  Watch watch;
  const bool by_number = GENERATE(false, true);
  watch.begin(peer.connection(),
              by_number ? pidfd_by_pid(peer.connection()) : pidfd_of_peer(peer.connection()));
  peer.let_it_hang_up();
  watch.io.poll();
  CHECK(watch.gone == 0);
  peer.kill();
  CHECK(watch.calls() == 1);
}

TEST_CASE("without a pidfd a process counts as ended when it hangs up, also if our end is closed") {
  std::optional<Peer> peer(std::in_place);
  Watch watch;
  watch.begin(peer->connection(), FileDescriptor());
  ::shutdown(peer->connection(), SHUT_WR);
  watch.io.poll();
  CHECK(watch.gone == 0);
  peer->kill();
  CHECK(watch.calls() == 1);
}

TEST_CASE("without a pidfd, input from a process is not a hang-up") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const FileDescriptor ours(ends[0]);
  std::optional<FileDescriptor> theirs(ends[1]);
  Watch watch;
  watch.begin(ours.get(), FileDescriptor());
  REQUIRE(::write(theirs->get(), "x", 1) == 1);
  watch.io.poll();
  CHECK(watch.gone == 0);
  theirs.reset();
  CHECK(watch.calls() == 1);
}

TEST_CASE("the end of a process before it is watched is reported") {
  Peer peer;
  Watch watch;
  peer.kill();
  watch.begin(peer.connection(), pidfd_of_peer(peer.connection()));
  CHECK(watch.calls() == 1);
}

TEST_CASE(
    "there is no pidfd by the id of a process that hung up: another process may have the id") {
  Peer peer;
  CHECK(pidfd_by_pid(peer.connection()));
  peer.let_it_hang_up();
  CHECK_FALSE(pidfd_by_pid(peer.connection()));
}

TEST_CASE("the end of a process is not reported after its PeerProcess was destroyed") {
  Peer peer;
  Watch watch;
  watch.begin(peer.connection(), pidfd_of_peer(peer.connection()));
  watch.process.reset();
  peer.kill();
  CHECK(watch.calls() == 0);
}

TEST_CASE("connections of one process are watched by one descriptor while it lives") {
  Peer one, other;
  net::io_context io;
  PeerProcesses all;
  const auto of = [&](const Peer& peer) {
    return all.peer_of(peer.connection(), io.get_executor());
  };
  auto first = of(one);
  CHECK(of(one) == first);
  CHECK(of(other) != first);
  int gone = 0;
  for (int i = 0; i < 2; ++i) of(one)->when_ended([&] { ++gone; });
  one.kill();
  io.run_for(patience);
  CHECK(gone == 2);
  CHECK(of(one) != first);
}

TEST_CASE("too few descriptors to watch a process are an error") {
  Peer peer;
  Watch watch;
  const DescriptorLimit none(0);
  CHECK_THROWS_AS(watch.begin(peer.connection(), pidfd_of_peer(peer.connection())),
                  std::system_error);
}
