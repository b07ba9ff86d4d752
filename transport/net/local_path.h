// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// The default address for workers, used by the service and by workers. The first available of:
// $MILLRACE_WORKERS, unix:$XDG_RUNTIME_DIR/millrace/workers.sock,
// unix:/tmp/millrace-UID/workers.sock.
std::string default_workers_url();

// The default address for trainers of a server of batches: trainers.sock in the same directory,
// whatever $MILLRACE_WORKERS is.
std::string default_trainers_url();

// The path of "unix:PATH"; nullopt for any other url, and for a path that is empty, too long, or
// contains a NUL.
std::optional<std::string> local_path(std::string_view url);

// The longest path of a Unix socket, in bytes.
inline constexpr std::size_t max_local_path = 107;

// Throws std::runtime_error if the directory of `path` belongs to another user (root is accepted),
// or if its group or others may write to it: they could replace the socket with their own. Does
// nothing if the directory does not exist.
void check_private_directory(const std::string& path);

// The directory of `path`, "." for a bare name.
std::string directory_of(const std::string& path);

}  // namespace millrace
