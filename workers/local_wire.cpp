// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>
#include <unistd.h>

#include <exception>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "transport/local_path.h"
#include "transport/local_socket.h"
#include "workers/protocol.h"
#include "workers/worker.h"
#include "workers/worker_wire.h"

namespace millrace {
namespace {

// No socket yet, or nothing listens on it any more.
bool is_absence(const std::exception& error) {
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system && (system->code() == std::errc::no_such_file_or_directory ||
                    system->code() == std::errc::connection_refused);
}

// The service is to be of this user or root's.
void check_service_user(int socket) {
  ucred service{};
  socklen_t size = sizeof service;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &service, &size) != 0 ||
      (service.uid != 0 && service.uid != ::geteuid()))
    throw std::runtime_error("another user listens there");
}

LocalSocket connect(const std::string& url) {
  const auto path = local_path(url);
  if (!path)
    throw std::invalid_argument(
        "\"" + url + "\" must be unix:PATH, with a path of 1 to 107 bytes, or tcp://HOST:PORT");
  try {
    check_private_directory(*path);
    auto socket = LocalSocket::connect(*path, {.max_message = worker_protocol::max_to_worker,
                                               .max_outgoing = 2 * worker_protocol::max_to_service,
                                               .takes_descriptor = true});
    check_service_user(socket.native_handle());
    return socket;
  } catch (const std::exception& error) {
    const std::string what = "no service at " + url + " (" + error.what() + ")";
    if (is_absence(error)) throw ServiceAbsent(what);
    throw WorkerError(what);
  }
}

std::string sentence(LocalError error) {
  switch (error) {
    case LocalError::closed: return "the service closed the connection";
    case LocalError::lost: return "the connection to the service broke";
    case LocalError::too_long: return "the service sent a message that is too long";
    case LocalError::descriptor:
      return "the service sent a descriptor that nobody asked for, or this process has too many";
  }
  return "";
}

class LocalWire final : public WorkerWire {
 public:
  explicit LocalWire(const std::string& url) : socket_(connect(url)) {}

  std::optional<Bytes> receive() override {
    const auto message = socket_.try_receive();
    if (!message) throw WorkerError(sentence(message.error()));
    return *message;
  }
  FileDescriptor take_descriptor() override { return socket_.take_descriptor(); }

  bool try_send(Bytes message) override {
    const LocalSocket::Sent sent = socket_.try_send(message);
    if (sent == LocalSocket::Sent::failed) throw WorkerError(sentence(LocalError::lost));
    return sent == LocalSocket::Sent::taken;
  }
  void flush() override {
    if (!socket_.flush()) throw WorkerError(sentence(LocalError::lost));
  }
  bool has_output() const override { return socket_.has_output(); }
  void end() override { socket_.end(); }

  Waits waits(Until until) const override {
    constexpr short events_of[] = {POLLIN, POLLOUT, POLLIN | POLLOUT};
    const short events = events_of[static_cast<int>(until)];
    return {pollfd{socket_.native_handle(), events, 0}, pollfd{-1, 0, 0}, pollfd{-1, 0, 0}};
  }

 private:
  LocalSocket socket_;
};

}  // namespace

std::unique_ptr<WorkerWire> connect_local(const std::string& url) {
  return std::make_unique<LocalWire>(url);
}

}  // namespace millrace
