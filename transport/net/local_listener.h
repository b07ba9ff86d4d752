// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/un.h>

#include <optional>
#include <string>
#include <system_error>

#include "base/result.h"
#include "base/time.h"
#include "transport/net/file_descriptor.h"

namespace millrace {

// A listening Unix socket at a path that only this user can connect to (0600; its directory is
// made, 0700, where it is missing, and is private: check_private_directory). The file that a dead
// process left is replaced, a live one never, and no file that is not a socket: also where two
// listeners start at once. The file is removed with the listener.
//
// Confined to one thread.
class LocalListener {
 public:
  // Locks the directory while it binds; waits up to `lock_patience` for another process that has
  // locked it. Throws std::runtime_error (std::system_error) that names the path: too long, in use,
  // not ours, no permission, its directory locked.
  explicit LocalListener(const std::string& path, Duration lock_patience = std::chrono::seconds(2));
  ~LocalListener();
  LocalListener(const LocalListener&) = delete;
  LocalListener& operator=(const LocalListener&) = delete;

  int native_handle() const { return socket_.get(); }
  const std::string& path() const { return path_; }

 private:
  void bind(const sockaddr_un& address);

  const std::string path_;
  FileDescriptor socket_;
  dev_t device_ = 0;  // of the file, so that nobody else's is removed
  ino_t inode_ = 0;
};

// The next connection of a listening socket that does not block; nothing while there is none. An
// error is of this one call: the listener goes on (too many open files: wait and try again).
[[nodiscard]] Result<std::optional<FileDescriptor>, std::error_code> try_accept(int listening);

}  // namespace millrace
