// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_figures.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "gpu/cuda/cuda.h"

namespace millrace::bench {

namespace {

std::string number(double value) {
  std::array<char, 32> text{};
  const int size = std::snprintf(text.data(), text.size(), value >= 1000 ? "%.0f" : "%.4g", value);
  return {text.data(), static_cast<std::size_t>(size)};
}

int width_of(std::string_view text) { return static_cast<int>(text.size()); }

}  // namespace

Figures::Figures(std::string product, const std::string& json_to) : product_(std::move(product)) {
  if (json_to.empty()) return;
  json_.reset(std::fopen(json_to.c_str(), "ae"));
  if (!json_) throw std::system_error(errno, std::generic_category(), json_to);
}

void Figures::section(std::string_view name, std::string_view title) {
  section_ = name;
  std::printf("\n%-58.*s %12s  %s\n", width_of(title), title.data(), "measured", "goal");
}

void Figures::add(std::string_view name, double value, std::string_view unit) {
  print(name, value, unit, std::nullopt);
}

void Figures::at_least(double goal, std::string_view name, double value, std::string_view unit) {
  print(name, value, unit, Goal{goal, "at least", value >= goal});
}

void Figures::at_most(double goal, std::string_view name, double value, std::string_view unit) {
  print(name, value, unit, Goal{goal, "at most", value <= goal});
}

void Figures::text(std::string_view line) const {
  std::printf("%.*s\n", width_of(line), line.data());
  (void)std::fflush(stdout);
}

void Figures::print(std::string_view name, double value, std::string_view unit,
                    const std::optional<Goal>& goal) {
  if (goal) ++(goal->met ? met_ : missed_);
  const std::string verdict = !goal ? "-"
                                    : std::string(goal->is) + " " + number(goal->value) + ": " +
                                          (goal->met ? "ok" : "short");
  std::printf("  %-50.*s %12s %-5.*s %s\n", width_of(name), name.data(), number(value).c_str(),
              width_of(unit), unit.data(), verdict.c_str());
  (void)std::fflush(stdout);
  if (json_) append(name, value, unit, goal);
}

void Figures::append(std::string_view name, double value, std::string_view unit,
                     const std::optional<Goal>& goal) {
  const std::string kept =
      goal ? '"' + std::string(goal->is) + ' ' + number(goal->value) + '"' : "null";
  std::fprintf(
      json_.get(),
      R"({"section":"%s","figure":"%.*s","value":%.6g,"unit":"%.*s","goal":%s,"ok":%s,"product":"%s","cuda":"%s"})"
      "\n",
      section_.c_str(), width_of(name), name.data(), value, width_of(unit), unit.data(),
      kept.c_str(),
      !goal       ? "null"
      : goal->met ? "true"
                  : "false",
      product_.c_str(), std::string(cuda::version()).c_str());
  (void)std::fflush(json_.get());
}

}  // namespace millrace::bench
