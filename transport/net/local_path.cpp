// SPDX-License-Identifier: Apache-2.0
#include "transport/net/local_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace millrace {
namespace {

constexpr std::string_view scheme = "unix:";

// nullopt if the variable is not set or is empty.
std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

// A socket in the user's private directory.
std::string private_url(const std::string& name) {
  if (const auto runtime = environment("XDG_RUNTIME_DIR"))
    return "unix:" + *runtime + "/millrace/" + name;
  return "unix:/tmp/millrace-" + std::to_string(::geteuid()) + "/" + name;
}

}  // namespace

std::string default_workers_url() {
  if (const auto url = environment("MILLRACE_WORKERS")) return *url;
  return private_url("workers.sock");
}

std::string default_trainers_url() { return private_url("trainers.sock"); }

std::optional<std::string> local_path(std::string_view url) {
  if (!url.starts_with(scheme)) return std::nullopt;
  const std::string_view path = url.substr(scheme.size());
  // The system would cut the path at a NUL, and use another file.
  if (path.empty() || path.size() > max_local_path || path.find('\0') != path.npos)
    return std::nullopt;
  return std::string(path);
}

std::string directory_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

void check_private_directory(const std::string& path) {
  const std::string directory = directory_of(path);
  const auto is_ours = [](const struct stat& status) {
    return status.st_uid == 0 || status.st_uid == ::geteuid();
  };
  struct stat link {
  }, status{};
  if (::lstat(directory.c_str(), &link) != 0 || ::stat(directory.c_str(), &status) != 0) return;
  if (!is_ours(link) || !is_ours(status))
    throw std::runtime_error("the directory " + directory +
                             " belongs to another user; use one of your own");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    throw std::runtime_error("other users can write to the directory " + directory +
                             "; use one of your own, or run chmod go-w on it");
}

}  // namespace millrace
