// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_cuda/environment.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "tests/support/simulated_cuda/calls.h"
#include "tests/support/simulated_cuda/faults.h"
#include "tests/support/simulated_cuda/settings.h"
#include "tests/support/simulated_cuda/simulated_cuda.h"
#include "tests/support/simulated_cuda/unseen.h"

namespace millrace::test::simulated_cuda {

namespace {

constexpr int exit_with_leaks = 86;

[[noreturn]] void refuse(std::string_view entry) {
  std::fprintf(stderr, "simulated CUDA: MILLRACE_SIMULATED_CUDA: cannot understand \"%s\"\n",
               std::string(entry).c_str());
  std::abort();
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse(text);
  return value;
}

// The text before the first character `at`, and the text after it.
std::pair<std::string_view, std::string_view> cut(std::string_view text, char at) {
  const std::size_t end = text.find(at);
  if (end == std::string_view::npos) return {text, ""};
  return {text.substr(0, end), text.substr(end + 1)};
}

void check_leaks() {
  const std::string left = leaks();
  if (left.empty()) return;
  std::fprintf(stderr, "simulated CUDA: left at exit:\n%s", left.c_str());
  std::fflush(stderr);
  ::_exit(exit_with_leaks);
}

void set_fail(std::string_view value) {
  const auto [function, rest] = cut(value, ':');
  const auto [error, calls] = cut(rest, ':');
  fail(function, static_cast<int>(number(error)), calls.empty() ? all_calls : number(calls));
}

void set_death_when(std::string_view value) {
  const std::size_t colon = value.rfind(':');
  if (colon == std::string_view::npos) refuse(value);
  die_when_exists(std::string(value.substr(0, colon)),
                  static_cast<int>(number(value.substr(colon + 1))));
}

struct Entry {
  std::string_view name;
  void (*apply)(std::string_view value);
};

constexpr std::array entries = {
    Entry{"devices", [](std::string_view v) { set_devices(static_cast<int>(number(v))); }},
    Entry{"driver", [](std::string_view v) { set_driver(static_cast<int>(number(v))); }},
    Entry{"memory", [](std::string_view v) { set_memory(number(v)); }},
    Entry{"pauses", [](std::string_view v) { set_pauses(static_cast<unsigned>(number(v))); }},
    Entry{"fail", set_fail},
    Entry{"dead-when", set_death_when},
    Entry{"hold-copies", [](std::string_view) { hold_copies(); }},
    Entry{"hold-copies-while",
          [](std::string_view v) { hold_copies_while_exists(std::string(v)); }},
    Entry{"stale-queries", [](std::string_view v) { make_queries_stale(number(v)); }},
    Entry{"calls", [](std::string_view v) { write_calls_at_exit(std::string(v)); }},
    Entry{"check-leaks", [](std::string_view) { std::atexit(check_leaks); }},
};

void apply(std::string_view text) {
  const auto [name, value] = cut(text, '=');
  for (const Entry& entry : entries)
    if (entry.name == name) return entry.apply(value);
  refuse(text);
}

void configure() {
  const char* text = std::getenv("MILLRACE_SIMULATED_CUDA");
  for (std::string_view rest = text ? text : ""; !rest.empty();) {
    const auto [entry, behind] = cut(rest, ';');
    if (!entry.empty()) apply(entry);
    rest = behind;
  }
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible && !*visible)
    set_devices(0);
}

}  // namespace

void configure_once() {
  static std::once_flag once;
  const Unseen unseen;
  std::call_once(once, configure);
}

}  // namespace millrace::test::simulated_cuda
