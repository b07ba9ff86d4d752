// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/un.h>

#include <optional>
#include <string>
#include <system_error>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "base/time.h"

namespace millrace {

// A listening Unix socket that only this user can connect to. The file has mode 0600. Its directory
// is made with mode 0700 if it is missing, and must be private (check_private_directory). The file
// of a dead process is replaced. The file of a live process, or a file that is not a socket, is
// never replaced, even if two listeners start at the same time. The destructor removes the file.
//
// Confined to one thread.
class LocalListener {
 public:
  // Locks the directory while it binds, and waits up to `lock_patience` for another process that
  // holds this lock. Throws std::runtime_error (or std::system_error) that names the path: it is in
  // use, it belongs to another user, there is no permission, or its directory stays locked. Throws
  // std::invalid_argument if the path is empty or too long.
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
  dev_t device_ = 0;  // device of the file: another process's file at this path must not be removed
  ino_t inode_ = 0;
};

// The next connection of a non-blocking listening socket; nullopt if no connection waits. After an
// error the listener can still be used (too many open files: wait, then try again).
[[nodiscard]] Result<std::optional<FileDescriptor>, std::error_code> try_accept(int listening);

}  // namespace millrace
