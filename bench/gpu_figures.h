// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace millrace::bench {

// Prints each figure at once, on a line with its goal and whether the goal is met. Counts the
// goals. Confined to one thread.
class Figures {
 public:
  // `json`: prints one line of JSON per figure, and nothing else.
  explicit Figures(bool json) : json_(json) {}

  void section(std::string_view title);
  void add(std::string_view name, double value, std::string_view unit);
  void at_least(double goal, std::string_view name, double value, std::string_view unit);
  void at_most(double goal, std::string_view name, double value, std::string_view unit);
  // Prints a line that is not a figure; nothing with JSON.
  void text(std::string_view line) const;

  int met() const { return met_; }
  int missed() const { return missed_; }

 private:
  struct Goal {
    double value;
    const char* is;  // at least, at most
    bool met;
  };

  void print(std::string_view name, double value, std::string_view unit,
             const std::optional<Goal>& goal);

  bool json_;
  std::string section_;
  int met_ = 0, missed_ = 0;
};

}  // namespace millrace::bench
