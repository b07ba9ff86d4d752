// SPDX-License-Identifier: Apache-2.0
#include "transport/net/local_listener.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string>

#include "transport/net/local_address.h"
#include "transport/net/local_path.h"

namespace millrace {
namespace {

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

void make_directory(const std::string& path) {
  const std::string directory = directory_of(path);
  if (::mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) return;
  const int error = errno;
  const std::string parent = directory_of(directory);
  struct stat status {};
  if (error == EACCES && ::stat(parent.c_str(), &status) == 0 && status.st_uid != ::geteuid())
    throw std::runtime_error("cannot create the directory " + directory + ": " + parent +
                             " belongs to user " + std::to_string(status.st_uid) +
                             ", and this process runs as user " + std::to_string(::geteuid()));
  fail(error, directory);
}

constexpr int lock_retry_ms = 10;

// Locks the directory until the returned descriptor is closed.
FileDescriptor lock_directory(const std::string& path, Duration patience) {
  const std::string directory = directory_of(path);
  FileDescriptor lock(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock) fail(errno, directory);
  const Time until = Clock::now() + patience;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) fail(errno, directory);
    if (Clock::now() >= until) fail(EWOULDBLOCK, directory + ": locked by another process");
    ::poll(nullptr, 0, lock_retry_ms);
  }
  return lock;
}

// True if the file is a socket on which no process listens any more.
bool is_stale(const std::string& path, const sockaddr_un& address) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  const FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace

LocalListener::LocalListener(const std::string& path, Duration lock_patience)
    : path_(path), socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  if (!socket_) fail(errno, path_);
  const sockaddr_un address = local_address(path_);
  make_directory(path_);
  check_private_directory(path_);
  // Held until this socket listens: another process must not treat its file as a dead process's.
  const FileDescriptor lock = lock_directory(path_, lock_patience);
  bind(address);
  struct stat status {};
  if (::lstat(path_.c_str(), &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
  if (::listen(socket_.get(), SOMAXCONN) != 0) fail(errno, path_);
}

void LocalListener::bind(const sockaddr_un& address) {
  // Before bind, so that the file never has another mode.
  if (::fchmod(socket_.get(), 0600) != 0) fail(errno, path_);
  const auto try_bind = [&] {
    return ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  };
  if (try_bind()) return;
  const int error = errno;
  if (error != EADDRINUSE || !is_stale(path_, address)) fail(error, path_);
  ::unlink(path_.c_str());
  if (!try_bind()) fail(errno, path_);
}

LocalListener::~LocalListener() {
  struct stat status {};
  if (::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_)
    ::unlink(path_.c_str());
}

Result<std::optional<FileDescriptor>, std::error_code> try_accept(int listening) {
  for (;;) {
    FileDescriptor socket(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) return std::optional(std::move(socket));
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::optional<FileDescriptor>();
    if (errno != EINTR && errno != ECONNABORTED)
      return std::error_code(errno, std::generic_category());
  }
}

}  // namespace millrace
