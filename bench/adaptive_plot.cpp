// SPDX-License-Identifier: Apache-2.0
#include "bench/adaptive_plot.h"

#include <cmath>
#include <cstdio>

namespace millrace::bench {
namespace {

constexpr double width = 440, height = 320, left = 60, top = 40, right = 20, bottom = 70;
constexpr double most_load = 125, least_ms = 40, most_ms = 4000;

std::string text(double x, double y, const char* anchor, const std::string& words) {
  char line[300];
  std::snprintf(line, sizeof line, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x,
                y, anchor, words.c_str());
  return line;
}

std::string line(double x1, double y1, double x2, double y2, const std::string& style) {
  char made[300];
  std::snprintf(made, sizeof made,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" style=\"%s\"/>\n", x1, y1,
                x2, y2, style.c_str());
  return made;
}

double x_of(double load) { return left + (width - left - right) * load / most_load; }
double y_of(double ms) {
  const double part = std::log(ms / least_ms) / std::log(most_ms / least_ms);
  return height - bottom - (height - top - bottom) * part;
}

std::string axes() {
  std::string out;
  for (const double ms : {50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 4000.0}) {
    out += line(left, y_of(ms), width - right, y_of(ms), "stroke:#ddd");
    out += text(left - 6, y_of(ms) + 4, "end", std::to_string(static_cast<int>(ms)));
  }
  for (int load = 0; load <= 120; load += 20)
    out += text(x_of(load), height - bottom + 16, "middle", std::to_string(load));
  out += line(left, height - bottom, width - right, height - bottom, "stroke:#444");
  out += text(left + (width - left - right) / 2, height - bottom + 34, "middle",
              "load, % of the capacity of the largest size");
  return out + text(left, top - 8, "start", "p99 of the latency, ms");
}

std::string drawn(const PlotLine& of) {
  std::string points;
  for (const auto& [load, ms] : of.points) {
    char point[60];
    std::snprintf(point, sizeof point, "%.1f,%.1f ", x_of(load), y_of(std::min(ms, most_ms)));
    points += point;
  }
  const std::string style = "fill:none;stroke:" + of.colour +
                            (of.name == "adaptive" ? ";stroke-width:3" : ";stroke-width:1.5");
  return "<polyline points=\"" + points + "\" style=\"" + style + "\"/>\n";
}

std::string legend(const std::vector<PlotLine>& lines) {
  std::string out;
  double x = left;
  for (const PlotLine& of : lines) {
    if (of.points.empty()) continue;
    out += line(x, height - 18, x + 16, height - 18, "stroke-width:3;stroke:" + of.colour);
    out += text(x + 20, height - 14, "start", of.name);
    x += 36 + 7 * static_cast<double>(of.name.size());
  }
  return out;
}

}  // namespace

std::string svg_of(const std::vector<Plot>& plots) {
  char head[300];
  std::snprintf(head, sizeof head,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                "font-family=\"sans-serif\" font-size=\"12\">\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                width * static_cast<double>(plots.size()), height);
  std::string out = head;
  for (std::size_t i = 0; i < plots.size(); ++i) {
    char move[80];
    std::snprintf(move, sizeof move, "<g transform=\"translate(%.0f,0)\">\n",
                  width * static_cast<double>(i));
    out += move + text(width / 2, 18, "middle", plots[i].title) + axes();
    for (const PlotLine& of : plots[i].lines)
      if (!of.points.empty()) out += drawn(of);
    out += legend(plots[i].lines) + "</g>\n";
  }
  return out + "</svg>\n";
}

}  // namespace millrace::bench
