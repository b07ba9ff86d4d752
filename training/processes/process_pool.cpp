// SPDX-License-Identifier: Apache-2.0
#include "training/processes/process_pool.h"

#include <unistd.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

#include "schemas/json_text.h"

namespace millrace::training {

namespace {

namespace json = boost::json;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) & ~std::size_t{63}; }

// The values that an answer names. Nullopt: it names others than fit into the room.
std::optional<ProcessPool::Values> values_of(const json::value& sizes, Bytes room) {
  ProcessPool::Values values;
  if (!sizes.is_array()) return std::nullopt;
  for (const json::value& size : sizes.get_array()) {
    boost::system::error_code failed;
    const auto bytes = size.to_number<std::size_t>(failed);
    if (failed || bytes > room.size()) return std::nullopt;
    values.emplace_back(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(bytes));
    room = room.subspan(std::min(aligned(bytes), room.size()));
  }
  return values;
}

}  // namespace

ProcessPool::ProcessPool(std::size_t processes, Duration longest, Start start)
    : longest_(longest), start_(std::move(start)), owner_(::getpid()), processes_(processes) {}

ProcessPool::~ProcessPool() { stop(); }

// A process that take() has marked.
struct ProcessPool::Busy {
  ProcessPool& pool;
  Process& process;
  ~Busy() { pool.give_back(process); }
};

bool ProcessPool::is_usable() const { return ::getpid() == owner_; }

// While it starts, a process is busy: start_() may wait for a lock that other callers hold.
void ProcessPool::start() {
  std::unique_lock lock(mutex_);
  stopped_ = false;
  for (Process& process : processes_) {
    if (process.busy || process.channel) continue;
    process.busy = true;
    lock.unlock();
    {
      const Busy busy{*this, process};
      start(process);
    }
    lock.lock();
  }
}

void ProcessPool::start(Process& process) {
  auto started = start_(static_cast<std::size_t>(&process - processes_.data()));
  const std::lock_guard lock(mutex_);
  process.channel.emplace(std::move(started));
  if (stopped_) process.channel->kill();
}

void ProcessPool::stop() {
  if (!is_usable()) return;
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (Process& process : processes_) {
    if (process.channel) process.channel->kill();
    if (!process.busy) process.channel.reset();
  }
  free_.notify_all();
}

// Those that run are preferred: one that has ended costs the time of a start.
ProcessPool::Process* ProcessPool::take() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopped_) return nullptr;
    Process* free = nullptr;
    for (Process& process : processes_)
      if (!process.busy && (!free || process.channel)) free = &process;
    if (free) {
      free->busy = true;
      return free;
    }
    free_.wait(lock);
  }
}

void ProcessPool::give_back(Process& process) {
  const std::lock_guard lock(mutex_);
  if (stopped_ && process.channel) {
    process.channel->kill();
    process.channel.reset();
  }
  process.busy = false;
  free_.notify_one();
}

void ProcessPool::drop(Process& process) {
  const std::lock_guard lock(mutex_);
  process.channel.reset();
}

// The end of a process that was idle is not the fault of a call.
Result<ProcessPool::Values, ReadError> ProcessPool::call(const ProcessCall& call) {
  Process* const process = take();
  if (!process) return ReadError{call.fault, call.name + ": the processes were ended"};
  const Busy busy{*this, *process};
  try {
    if (process->channel && process->channel->has_ended()) drop(*process);
    if (!process->channel) start(*process);
  } catch (const std::exception& error) {
    return ReadError{call.fault, call.name + ": " + error.what()};
  }
  return call_in(*process, call);
}

// The channel of a process that has ended is gone afterwards.
Result<ProcessPool::Values, ReadError> ProcessPool::call_in(Process& process,
                                                            const ProcessCall& call) try {
  std::size_t begin_of_room = 0;
  for (const Bytes given : call.given) begin_of_room += aligned(given.size());
  const MutableBytes memory = process.channel->memory(begin_of_room + call.room);
  std::string request = call.request + ",\"given\":[";
  std::size_t at = 0;
  for (const Bytes given : call.given) {
    if (!given.empty()) std::memcpy(&memory[at], given.data(), given.size());
    at += aligned(given.size());
    if (request.back() != '[') request += ',';
    request += std::to_string(given.size());
  }
  request += "],\"room\":" + std::to_string(call.room) + '}';
  const auto answer = process.channel->call(request, longest_);
  if (!answer) {
    const std::string end = process.channel->end();
    drop(process);
    return ReadError{call.fault, call.name + ": " + end};
  }
  boost::system::error_code failed;
  const json::value parsed = json::parse(without_bytes(*answer), failed);
  const json::object* const object = failed ? nullptr : parsed.if_object();
  if (const json::value* error = object ? object->if_contains("error") : nullptr;
      error && error->is_string())
    return ReadError{call.fault, call.name + ": " + std::string(error->get_string())};
  const json::value* const sizes = object ? object->if_contains("returned") : nullptr;
  auto values = sizes ? values_of(*sizes, memory.subspan(at, call.room)) : std::nullopt;
  if (!values) return ReadError{call.fault, call.name + ": its process sent an invalid answer"};
  return std::move(*values);
} catch (const std::system_error& error) {
  return ReadError{call.fault, call.name + ": no shared memory for its values: " + error.what()};
}

}  // namespace millrace::training
