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

// Throws std::runtime_error where the directory of `path` belongs to another user, who could put
// a socket of his own there.
void check_directory_owner(const std::string& path);

}  // namespace millrace
