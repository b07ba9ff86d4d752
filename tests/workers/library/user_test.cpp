// SPDX-License-Identifier: Apache-2.0
// Which users' services a worker accepts.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "base/file_descriptor.h"
#include "tests/support/skipped.h"
#include "tests/support/temporary_directory.h"
#include "tests/workers/library/child.h"
#include "transport/net/local_address.h"
#include "workers/library/worker.h"

using namespace millrace;
using namespace millrace::test;

namespace {

bool is_listening(const FileDescriptor& socket) {
  int listens = 0;
  socklen_t size = sizeof listens;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size);
  return listens == 1;
}

}  // namespace

TEST_CASE("a worker refuses a service of another user") {
  if (::geteuid() != 0) return say_skipped("only root can start a process of another user");
  const TemporaryDirectory directory;
  const std::string path = directory / "workers.sock";
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = local_address(path);
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  const Child other([&] {
    if (::setuid(12345) == 0) ::listen(socket.get(), 1);
  });
  while (!is_listening(socket)) std::this_thread::yield();
  CHECK_THROWS_WITH(Worker("unix:" + path),
                    Catch::Contains("the listener there belongs to another user"));
}
