// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::bench {

// Prints each figure at once, on a line with its goal and whether the goal is met, and appends it
// to a file as a line of JSON. Counts the goals. Confined to one thread.
class Figures {
 public:
  // `product`: the model of the device, for the file. `json_to`: its path, or empty. Throws
  // std::system_error if it cannot be opened.
  Figures(std::string product, const std::string& json_to);

  // Begins a section. The file has its name, the output its title.
  void section(std::string_view name, std::string_view title);
  void add(std::string_view name, double value, std::string_view unit);
  void at_least(double goal, std::string_view name, double value, std::string_view unit);
  void at_most(double goal, std::string_view name, double value, std::string_view unit);
  // Prints a line that is not a figure.
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
  void append(std::string_view name, double value, std::string_view unit,
              const std::optional<Goal>& goal);

  struct Close {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };

  const std::string product_;
  std::unique_ptr<std::FILE, Close> json_;  // null: none
  std::string section_;
  int met_ = 0, missed_ = 0;
};

}  // namespace millrace::bench
