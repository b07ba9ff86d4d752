// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// Where workers and the service meet when nobody says otherwise; both ends ask here. In this
// order: $MILLRACE_WORKERS, unix:$XDG_RUNTIME_DIR/millrace/workers.sock, and the same in a private
// directory of the user under /tmp.
std::string default_workers_url();

// The path of "unix:PATH"; nothing for any other url, and for a path that no socket can have.
std::optional<std::string> local_path(std::string_view url);

// The longest path that a socket can have, in bytes.
inline constexpr std::size_t max_local_path = 107;

// Throws std::runtime_error if the directory of `path` belongs to another user than this one or
// root, or if its group or others may write to it: they could put a socket of their own there.
// Nothing if it does not exist.
void check_private_directory(const std::string& path);

// The directory of `path`, "." for a bare name.
std::string directory_of(const std::string& path);

}  // namespace millrace
