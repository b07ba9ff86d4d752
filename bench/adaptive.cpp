// SPDX-License-Identifier: Apache-2.0
// Judges the control law of adaptive sizes: simulates a pipeline at loads from 10 to 120 % of what
// its largest size carries, with each fixed size and with adaptive sizes. Prints a table for each
// kind of worker, and checks the bounds. With --plot it also draws the table.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "bench/adaptive_plot.h"
#include "bench/adaptive_simulation.h"
#include "bench/options.h"

using namespace millrace;
using namespace millrace::bench;
using namespace std::chrono_literals;

namespace {

// A kind of worker, and the bound of the p99 up to 95 % of the capacity of the largest size.
struct Case {
  std::string name;
  ServiceTime service;
  double bound = 0;           // 0: none
  bool of_reference = false;  // the bound is a multiple of the reference size, or of the largest
};

struct SimulationArguments {
  std::vector<std::uint32_t> sizes{80, 160, 320, 640},
      loads{10, 20, 24, 30, 40, 50, 60, 70, 80, 90, 95, 100, 110, 120};
  std::vector<double> service;  // milliseconds
  std::uint32_t rows = 64, credits = 2, packet = 20, begin = 0, seed = 1, seconds = 300;
  double max_wait = 2;  // milliseconds
  std::string plot;
};

double in_ms(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }
double p99(const load::Histogram& times) { return in_ms(times.quantile(0.99)); }

class Judge {
 public:
  explicit Judge(const SimulationArguments& arguments) : arguments_(arguments) {}

  Plot judge(const Case& of) {
    scene_ = Scene();
    scene_.service = of.service;
    scene_.sizes = arguments_.sizes;
    scene_.max_wait = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double, std::milli>(arguments_.max_wait));
    scene_.rows = arguments_.rows;
    scene_.credits = arguments_.credits;
    scene_.packet = arguments_.packet;
    scene_.seed = arguments_.seed;
    scene_.longest_wait = 4s;
    plot_ = {.title = of.name, .lines = lines()};
    std::printf("\n%s\nstreams that each size carries:", of.name.c_str());
    for (const std::uint32_t size : scene_.sizes)
      std::printf("  %u ms: %u", size, capacity(scene_, size));
    std::printf("\n\np99 of the latency in ms%s  | adaptive sizes\n load streams",
                std::string(7 * std::max<std::size_t>(scene_.sizes.size(), 3) - 17, ' ').c_str());
    for (const std::uint32_t size : scene_.sizes) std::printf(" %6u", size);
    std::printf(" |    p99    p50  wait  changes  bound  | shares of the sizes\n");
    for (const std::uint32_t load : arguments_.loads) at(load, of);
    step();
    return plot_;
  }

  bool holds() const { return holds_; }

 private:
  std::vector<PlotLine> lines() const {
    static const char* const colours[] = {"#1b9e77", "#d95f02", "#7570b3", "#a6761d"};
    std::vector<PlotLine> made;
    for (std::size_t i = 0; i < arguments_.sizes.size(); ++i)
      made.push_back({std::to_string(arguments_.sizes[i]) + " ms", colours[i % 4], {}});
    made.push_back({"adaptive", "#000000", {}});
    return made;
  }

  void at(std::uint32_t load, const Case& of) {
    const std::uint32_t most = capacity(scene_, scene_.sizes.back());
    scene_.streams = std::max(1u, most * load / 100);
    scene_.later = 0;
    std::printf("%4u%% %7u", load, scene_.streams);
    std::vector<std::optional<double>> fixed;
    for (std::size_t i = 0; i < scene_.sizes.size(); ++i) fixed.push_back(at_fixed(load, i));
    scene_.fixed = std::nullopt;
    scene_.begin = arguments_.begin;
    scene_.warm_up = std::chrono::seconds(arguments_.seconds / 2);
    scene_.end = scene_.warm_up + std::chrono::seconds(arguments_.seconds);
    if (load > 100) scene_.warm_up = 5s, scene_.end = 60s;
    const Outcome outcome = simulate(scene_);
    const double latency = p99(outcome.latency);
    plot_.lines.back().points.emplace_back(load, outcome.collapsed ? 1e6 : latency);
    std::printf(" | %6.0f %6.0f %5.0f %8.2f ", latency, in_ms(outcome.latency.quantile(0.5)),
                p99(outcome.waits), outcome.changes_in_10s);
    print_bound(bound(load, of, fixed), latency);
    if (load <= 95) holds_ &= outcome.changes_in_10s <= 1;
    for (const double share : outcome.shares) std::printf(" %4.0f%%", 100 * share);
    std::printf("%s\n", outcome.collapsed ? "  collapsed" : "");
    std::fflush(stdout);
  }

  // The p99 with one size; nullopt if it does not carry the load.
  std::optional<double> at_fixed(std::uint32_t load, std::size_t index) {
    scene_.fixed = scene_.sizes[index];
    scene_.warm_up = 15s;
    scene_.end = 45s;
    const Outcome outcome = simulate(scene_);
    const bool carries = !outcome.collapsed && scene_.streams <= capacity(scene_, *scene_.fixed);
    const double latency = p99(outcome.latency);
    const bool grows = outcome.collapsed || !carries;
    plot_.lines[index].points.emplace_back(load, grows ? 1e6 : latency);
    if (grows)
      std::printf("      -");
    else
      std::printf(" %6.0f", latency);
    return carries ? std::optional(latency) : std::nullopt;
  }

  // The most that the p99 may be; nullopt if there is no bound at this load.
  std::optional<double> bound(std::uint32_t load, const Case& of,
                              const std::vector<std::optional<double>>& fixed) const {
    if (scene_.streams <= capacity(scene_, scene_.sizes.front()) * 0.8) return 1.1 * *fixed.front();
    if (of.bound == 0 || load > 95) return std::nullopt;
    std::size_t reference = fixed.size() - 1;
    if (of.of_reference) {
      const auto less = [](const auto& a, const auto& b) {
        return a.value_or(1e9) < b.value_or(1e9);
      };
      const auto best =
          static_cast<std::size_t>(std::ranges::min_element(fixed, less) - fixed.begin());
      reference = std::min(best + 1, reference);
    }
    return fixed[reference] ? std::optional(of.bound * *fixed[reference]) : std::nullopt;
  }

  void print_bound(std::optional<double> most, double latency) {
    if (!most) return (void)std::printf("%6s  |", "");
    std::printf("%6.0f%s |", *most, latency > *most ? "!" : " ");
    holds_ &= latency <= *most;
  }

  // From 20 to 90 %: the p99 in the tenth second after it, and at the end.
  void step() {
    const std::uint32_t most = capacity(scene_, scene_.sizes.back());
    scene_.fixed = std::nullopt;
    scene_.streams = most * 90 / 100;
    scene_.later = scene_.streams - most * 20 / 100;
    scene_.step = scene_.warm_up = 60s;
    scene_.end = 180s;
    const Outcome outcome = simulate(scene_);
    load::Histogram final;
    for (std::size_t i = 120; i < 175; ++i) final.add(outcome.by_second[i]);
    const double after = p99(outcome.by_second[70]), last = p99(final);
    std::printf("step from 20 to 90 %%: p99 by second:");
    for (std::size_t i = 59; i <= 71; ++i) std::printf(" %.0f", p99(outcome.by_second[i]));
    std::printf("; in the last minute %.0f%s\n", last, after > 2 * last ? "!" : "");
    holds_ &= after <= 2 * last;
  }

  const SimulationArguments arguments_;
  Scene scene_;
  Plot plot_;
  bool holds_ = true;
};

}  // namespace

int main(int argc, char** argv) {
  SimulationArguments arguments;
  Options options("Simulate adaptive sizes and every fixed size");
  options.add("--sizes", arguments.sizes, "Sizes in ms")
      .add("--loads", arguments.loads, "Percent")
      .add("--service", arguments.service, "t0, k and c in ms, in place of the two workers")
      .add("--rows", arguments.rows, "Most rows of a batch")
      .add("--credits", arguments.credits, "Batches that a worker may have")
      .add("--packet", arguments.packet, "Packet in ms")
      .add("--max-wait", arguments.max_wait, "max_wait in ms")
      .add("--begin", arguments.begin, "First size in ms; 0: the smallest")
      .add("--seed", arguments.seed, "Seed of the clients' phases")
      .add("--seconds", arguments.seconds, "Measured time of each load, after half of it")
      .add("--plot", arguments.plot, "Write the plot to this SVG file")
      .parse(argc, argv);
  options.require(arguments.service.empty() || arguments.service.size() == 3,
                  "--service: three values");

  std::vector<Case> cases{
      {"a batch takes 8 ms + 0.25 ms per row", {8e-3, 0.25e-3, 0}, 1.25, true},
      {"a batch takes 2 ms + 0.02 ms per row + 2 ms per row and second", {2e-3, 20e-6, 2e-3}, 1.6}};
  if (const auto& ms = arguments.service; !ms.empty())
    cases = {{"t0, k, c as given", {ms[0] / 1e3, ms[1] / 1e3, ms[2] / 1e3}}};
  Judge judge(arguments);
  std::vector<Plot> plots;
  for (const Case& of : cases) plots.push_back(judge.judge(of));
  if (!arguments.plot.empty()) std::ofstream(arguments.plot) << svg_of(plots);
  std::printf("\n%s\n",
              judge.holds() ? "all bounds hold" : "a bound does not hold (marked with !)");
  return judge.holds() ? 0 : 1;
}
