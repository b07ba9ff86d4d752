// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/support/temporary_directory.h"
#include "transport/client.h"

namespace millrace::bench {

// `millrace serve` as a process of its own, on free ports of loopback and a socket for workers in
// a directory of its own. Confined to one thread, which must live as long: the process dies with
// it.
class ServiceProcess {
 public:
  // `pipelines` is the rest of its configuration. Returns when it listens; throws
  // std::runtime_error if it does not.
  ServiceProcess(const std::filesystem::path& program, const std::string& pipelines);
  ~ServiceProcess();
  ServiceProcess(const ServiceProcess&) = delete;
  ServiceProcess& operator=(const ServiceProcess&) = delete;

  pid_t pid() const { return pid_; }
  const ServiceUrl& clients() const { return clients_; }
  std::string workers() const { return "unix:" + directory_ / "workers.sock"; }

  // Asks it to end, and waits until it has.
  void stop();

 private:
  ServiceProcess() = default;

  std::string write_configuration(const std::string& pipelines) const;
  void start(const std::filesystem::path& program, const std::string& configuration);
  void await_listening();

  TemporaryDirectory directory_;
  pid_t pid_ = -1;
  std::FILE* log_ = nullptr;
  ServiceUrl clients_;
  std::jthread log_reader_;
};

}  // namespace millrace::bench
