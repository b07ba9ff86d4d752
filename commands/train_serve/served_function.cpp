// SPDX-License-Identifier: Apache-2.0
#include "commands/train_serve/served_function.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "schemas/json_text.h"
#include "training/processes/process_function.h"
#include "training/processes/process_pool.h"

namespace millrace {

namespace {

namespace json = boost::json;
using training::DataFault;
using training::ProcessChannel;
using training::ProcessPool;
using training::StreamCopy;

constexpr int its_socket = 3;  // descriptor in the process

// The arguments of the process.
std::string description(const AugmentKeys& keys, std::uint64_t seed,
                        const training::Catalog& catalog) {
  const FrameType& type = catalog.frame_type();
  json::array companions;
  for (const CompanionFormat& format : catalog.companions())
    companions.push_back(json::array{format.name, name_of(format.element), format.values,
                                     format.frames_per_entry, format.entries_per_frame});
  return json::serialize(json::object{
      {"function", keys.function},
      {"seed", seed},
      {"frame_type", json::array{name_of(type.element), type.values, type.rate, type.features}},
      {"companions", std::move(companions)}});
}

// A wheel puts the program into a virtual environment, which need not be the active one.
std::string default_python() {
  std::error_code error;
  auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (folder.filename() == "millrace.scripts")
    for (; folder.has_relative_path(); folder = folder.parent_path())
      if (std::filesystem::exists(folder / "pyvenv.cfg", error)) return folder / "bin/python3";
  return "python3";
}

// Processes that were started in the place of the same one. Those before the last one were ended.
using Children = std::vector<pid_t>;

ProcessChannel start_process(const std::string& python, const std::string& described,
                             Children& children) {
  std::erase_if(children, [](pid_t child) { return ::waitpid(child, nullptr, WNOHANG) != 0; });
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot create a socket");
  FileDescriptor ours(sockets[0]), theirs(sockets[1]);
  if (theirs.get() == its_socket)  // dup2() would leave it as it is, and exec() would close it
    theirs = FileDescriptor(::fcntl(its_socket, F_DUPFD_CLOEXEC, its_socket + 1));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), its_socket);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, its_socket + 1);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t ignored_here;
  ::sigemptyset(&ignored_here);
  for (const int number : {SIGPIPE, SIGXFSZ, SIGCHLD}) ::sigaddset(&ignored_here, number);
  ::posix_spawnattr_setsigdefault(&attributes, &ignored_here);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  std::array<std::string, 4> words{python, "-m", "millrace.augment_process", described};
  std::array<char*, 5> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, python.c_str(), &actions, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category(), python);
  children.push_back(child);
  FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (!process) throw std::system_error(errno, std::generic_category(), "cannot watch a process");
  return {std::move(ours), std::move(process)};
}

// The numbers of frames, which the processes know.
class Lengths final : public training::StreamFunction {
 public:
  Lengths(std::shared_ptr<const training::Catalog> catalog, std::shared_ptr<ProcessPool> pool)
      : catalog_(std::move(catalog)), pool_(std::move(pool)) {}

  // Asks whether the function changes them. Throws std::runtime_error.
  void ask() { changed_ = number("augment", R"({"source":0,"changes_lengths":true)") != 0; }
  bool are_changed() const { return changed_; }

  std::uint64_t frames(const StreamCopy& stream, std::uint64_t frames) override {
    if (!changed_) return frames;
    std::string request = R"({"source":0,"frames":)" + std::to_string(frames) +
                          ",\"epoch\":" + std::to_string(stream.epoch) +
                          ",\"copy\":" + std::to_string(stream.copy) + ",\"name\":";
    append_file_name(request, catalog_->name(stream.stream));
    // A process may have ended for a reason of its own. Only a failure that comes again is one of
    // the stream: all servers of a plan must find the same.
    for (bool again = false;; again = true) try {
        return number("augment.frames", request);
      } catch (const std::runtime_error& error) {
        if (again)
          throw training::LengthFailure(error.what(), stream.epoch, stream.stream,
                                        catalog_->name(stream.stream));
      }
  }
  Result<void, training::ReadError> change(const StreamCopy&, Content&) override {
    return training::ReadError{DataFault::function, "augment: the processes belong to another one"};
  }

 private:
  std::uint64_t number(const std::string& name, std::string request) const {
    const auto values = pool_->call({.request = std::move(request),
                                     .given = {},
                                     .room = sizeof(std::uint64_t),
                                     .fault = DataFault::function,
                                     .name = name});
    std::uint64_t number = 0;
    if (!values) throw std::runtime_error(values.error().message);
    if (values->size() != 1 || values->front().size() != sizeof number)
      throw std::runtime_error(name + ": its process sent an invalid answer");
    std::memcpy(&number, values->front().data(), sizeof number);
    return number;
  }

  const std::shared_ptr<const training::Catalog> catalog_;
  const std::shared_ptr<ProcessPool> pool_;
  bool changed_ = false;
};

}  // namespace

ServedFunction start_function(const AugmentKeys& keys, std::uint64_t seed,
                              const std::shared_ptr<const training::Catalog>& catalog) {
  // The pool starts each of its processes on one thread at a time.
  const auto children = std::make_shared<std::vector<Children>>(keys.processes);
  const auto start = [python = keys.python.empty() ? default_python() : keys.python,
                      described = description(keys, seed, *catalog), children](std::size_t number) {
    return start_process(python, described, (*children)[number]);
  };
  const auto pool = std::make_shared<ProcessPool>(keys.processes, keys.longest_call, start);
  const auto lengths = std::make_shared<Lengths>(catalog, pool);
  lengths->ask();  // the first call: loads the function
  pool->start();
  return {std::make_shared<training::ProcessFunction>(catalog, pool, 0, lengths),
          lengths->are_changed()};
}

}  // namespace millrace
