// SPDX-License-Identifier: Apache-2.0
#include "transport/net/local_listener.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <barrier>
#include <catch2/catch.hpp>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "tests/support/skipped.h"
#include "tests/support/temporary_directory.h"
#include "transport/net/framed_socket.h"
#include "transport/net/local_address.h"
#include "transport/net/local_path.h"

using namespace millrace;
using namespace millrace::test;

namespace {

mode_t mode_of(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 0777U : 0;
}
bool exists(const std::string& path) { return std::filesystem::exists(path); }

// Creates the file of a socket on which no process listens, as after a killed process.
void leave_stale_socket(const std::string& path) {
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  const sockaddr_un address = local_address(path);
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

// Sets an environment variable and restores it at the end.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    if (value) {
      ::setenv(name, value, 1);
    } else {
      ::unsetenv(name);
    }
  }
  ~Environment() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("a listener accepts connections, and returns nullopt when none waits") {
  const TemporaryDirectory directory;
  LocalListener listener(directory / "workers.sock");
  CHECK_FALSE((*try_accept(listener.native_handle())).has_value());
  auto client = FramedSocket::connect(listener.path(), {});
  auto accepted = *try_accept(listener.native_handle());
  REQUIRE(accepted.has_value());
  FramedSocket server(std::move(*accepted), {});
  CHECK(client.try_send(Bytes()) == FramedSocket::Sent::accepted);
  CHECK((*server.try_receive()).has_value());
}

TEST_CASE("the socket and the directory made for it are this user's alone") {
  const TemporaryDirectory directory;
  const LocalListener listener(directory / "millrace/workers.sock");
  CHECK(mode_of(directory / "millrace") == 0700);
  CHECK(mode_of(directory / "millrace/workers.sock") == 0600);
}

TEST_CASE("the file is removed with its listener") {
  const TemporaryDirectory directory;
  { const LocalListener listener(directory / "workers.sock"); }
  CHECK_FALSE(exists(directory / "workers.sock"));
}

TEST_CASE("a file that a dead process left is replaced") {
  const TemporaryDirectory directory;
  leave_stale_socket(directory / "workers.sock");
  const LocalListener listener(directory / "workers.sock");
  CHECK_NOTHROW(FramedSocket::connect(listener.path(), {}));
}

TEST_CASE("a socket in use is an error that names it and leaves it alone") {
  const TemporaryDirectory directory;
  const LocalListener first(directory / "workers.sock");
  CHECK_THROWS_WITH(LocalListener(directory / "workers.sock"),
                    Catch::Contains("workers.sock") && Catch::Contains("in use"));
  CHECK_NOTHROW(FramedSocket::connect(first.path(), {}));
}

TEST_CASE("a file that is not a socket is never removed") {
  const TemporaryDirectory directory;
  std::ofstream(directory / "workers.sock") << "precious";
  CHECK_THROWS(LocalListener(directory / "workers.sock"));
  CHECK(exists(directory / "workers.sock"));
}

TEST_CASE("a listener that was replaced does not remove its successor's file") {
  const TemporaryDirectory directory;
  auto first = std::make_unique<LocalListener>(directory / "workers.sock");
  std::filesystem::remove(directory / "workers.sock");
  const LocalListener second(directory / "workers.sock");
  first.reset();
  CHECK(exists(directory / "workers.sock"));
}

TEST_CASE("a directory that others may write to is refused") {
  const TemporaryDirectory directory;
  for (const mode_t mode : {0777, 0770, 0702, 01777}) {
    REQUIRE(::chmod(directory.path().c_str(), mode) == 0);
    CHECK_THROWS_WITH(LocalListener(directory / "workers.sock"),
                      Catch::Contains("other users can write") && Catch::Contains("chmod go-w"));
    CHECK_THROWS(check_private_directory(directory / "workers.sock"));
  }
  REQUIRE(::chmod(directory.path().c_str(), 0755) == 0);
  CHECK_NOTHROW(LocalListener(directory / "workers.sock"));
  CHECK_NOTHROW(check_private_directory(directory / "not there/workers.sock"));
}

TEST_CASE("a directory of another user is refused, also by root") {
  if (::geteuid() != 0) return say_skipped("only root can make one");
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "other");
  std::filesystem::create_directory_symlink(directory / "own", directory / "link");
  std::filesystem::create_directory(directory / "own");
  REQUIRE(::lchown((directory / "other").c_str(), 12345, 12345) == 0);
  CHECK_THROWS_WITH(LocalListener(directory / "other/workers.sock"),
                    Catch::Contains("another user"));
  CHECK_NOTHROW(LocalListener(directory / "link/workers.sock"));
  REQUIRE(::lchown((directory / "link").c_str(), 12345, 12345) == 0);
  CHECK_THROWS_WITH(LocalListener(directory / "link/workers.sock"),
                    Catch::Contains("another user"));
}

TEST_CASE("if two listeners start at once on the file of a dead one, one of them listens") {
  const TemporaryDirectory directory;
  const std::string path = directory / "workers.sock";
  for (int round = 0; round < 100; ++round) {
    leave_stale_socket(path);
    std::array<std::unique_ptr<LocalListener>, 2> listeners;
    std::barrier start(2);
    const auto listen = [&](std::unique_ptr<LocalListener>& place) {
      start.arrive_and_wait();
      try {
        place = std::make_unique<LocalListener>(path);
      } catch (const std::exception&) {
      }
    };
    {
      const std::jthread first([&] { listen(listeners[0]); }),
          second([&] { listen(listeners[1]); });
    }
    REQUIRE((listeners[0] == nullptr) != (listeners[1] == nullptr));
    CHECK_NOTHROW(FramedSocket::connect(path, {}));
  }
}

TEST_CASE("a path too long for a socket is an error that names the limit") {
  const TemporaryDirectory directory;
  CHECK_THROWS_WITH(LocalListener(directory / std::string(107, 'a')), Catch::Contains("107 bytes"));
}

TEST_CASE("workers and the service use the path of the environment, or the default of the user") {
  const Environment named("MILLRACE_WORKERS", nullptr);
  const Environment runtime("XDG_RUNTIME_DIR", "/run/user/7");
  CHECK(default_workers_url() == "unix:/run/user/7/millrace/workers.sock");
  CHECK(default_trainers_url() == "unix:/run/user/7/millrace/trainers.sock");
  const Environment without("XDG_RUNTIME_DIR", nullptr);
  CHECK(default_workers_url() ==
        "unix:/tmp/millrace-" + std::to_string(::geteuid()) + "/workers.sock");
  const Environment with("MILLRACE_WORKERS", "unix:w.sock");
  CHECK(default_workers_url() == "unix:w.sock");
}

TEST_CASE("only a unix url has a local path") {
  CHECK(local_path("unix:/a/b.sock") == "/a/b.sock");
  CHECK(local_path("unix:w.sock") == "w.sock");
  CHECK_FALSE(local_path("tcp://127.0.0.1:1"));
  CHECK_FALSE(local_path("unix:"));
  CHECK_FALSE(local_path("unix:" + std::string(108, 'a')));
  CHECK_FALSE(local_path(std::string("unix:a\0b", 8)));
}

TEST_CASE("a directory that another process keeps locked is an error that names it") {
  const TemporaryDirectory directory;
  const std::string folder = std::filesystem::path(directory / "workers.sock").parent_path();
  FileDescriptor other(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(other.get(), LOCK_EX) == 0);
  CHECK_THROWS_WITH(LocalListener(directory / "workers.sock", std::chrono::milliseconds(20)),
                    Catch::Contains(folder + ": locked by another process"));
  other = FileDescriptor();
  LocalListener listener(directory / "workers.sock");
}
