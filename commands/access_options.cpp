// SPDX-License-Identifier: Apache-2.0
#include "commands/access_options.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace millrace {
namespace {

std::string token_in(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  std::string token, more;
  if (!file) throw std::invalid_argument("--token-file: " + path + ": " + std::strerror(errno));
  if (!(file >> token) || file >> more)
    throw std::invalid_argument("--token-file: " + path + ": must have one token");
  return token;
}

}  // namespace

void AccessOptions::add_to(Command& command) {
  command
      .add("--ca", &ca,
           "Certificates of the authorities to trust (PEM), for wss://. Default: the system's")
      .type("FILE");
  command
      .add("--certificate", &certificate,
           "The client's own certificate (PEM), for a service that asks for one. Needs --key")
      .type("FILE");
  command.add("--key", &key, "The key of --certificate (PEM), in a file that only its owner reads")
      .type("FILE");
  command.add("--token-file", &token_file, "File with the token to send with each stream")
      .type("FILE");
}

ServiceAccess AccessOptions::access() const {
  return {.token = token_file.empty() ? "" : token_in(token_file),
          .ca = ca,
          .certificate = certificate,
          .key = key};
}

}  // namespace millrace
