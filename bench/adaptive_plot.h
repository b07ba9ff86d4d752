// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace millrace::bench {

// One line of a plot: y by x, both positive. A line without points is left out.
struct PlotLine {
  std::string name;
  std::string colour;
  std::vector<std::pair<double, double>> points;
};

struct Plot {
  std::string title;
  std::vector<PlotLine> lines;
};

// Plots side by side as an SVG document: x is the load in percent, y a latency in milliseconds on a
// logarithmic axis.
std::string svg_of(const std::vector<Plot>& plots);

}  // namespace millrace::bench
