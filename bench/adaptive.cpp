#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wmisleading-indentation"
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <string>
#include "bench/adaptive_simulation.h"
using namespace millrace;
using namespace millrace::bench;
using namespace std::chrono_literals;
static double ms(Duration d) { return d.count() / 1e6; }
int main(int argc, char** argv) {
  Scene s;
  s.max_wait = 2ms;
  s.stop_at_wait = 5s;
  s.begin = getenv("FIRST") ? atoi(getenv("FIRST")) : 0;
  if (argc > 3) {
    s.service = {atof(argv[1]), atof(argv[2]), atof(argv[3])};
  }
  std::vector<int> loads{10, 20, 30, 40, 50, 60, 70, 80, 90, 95};
  if (argc > 4) {
    loads.clear();
    for (int i = 4; i < argc; ++i) loads.push_back(atoi(argv[i]));
  }
  const char* ss = getenv("SIZES");
  if (ss) {
    s.sizes.clear();
    std::string x(ss);
    size_t p = 0;
    while (p < x.size()) {
      s.sizes.push_back(std::stoul(x.substr(p)));
      p = x.find(',', p);
      if (p == x.npos) break;
      ++p;
    }
  }
  if (getenv("ROWS")) s.rows = atoi(getenv("ROWS"));
  double meas = getenv("MEAS") ? atof(getenv("MEAS")) : 60;
  auto cap = capacity(s, s.sizes.back());
  for (auto z : s.sizes) printf("cap %u: %u\n", z, capacity(s, z));
  auto capmin = capacity(s, s.sizes[0]);
  if (getenv("OFMIN")) cap = capmin;
  if (getenv("STEP")) {
    s.before = cap / 5;
    s.streams = cap * 9 / 10;
    if (getenv("SEED")) s.seed = atoi(getenv("SEED"));
    s.step = 60s;
    s.measured_from = 100s;
    s.until = 140s;
    auto o = simulate(s);
    for (size_t i = 55; i < o.by_second.size(); i += 1)
      if (i == 57 || (i > 59 && i < 85 && i % 2 == 0) || i > 133)
        printf("%zu:%.0f\n", i, ms(o.by_second[i].quantile(.99)));
    return 0;
  }
  for (int l : loads) {
    s.streams = std::max(1u, cap * l / 100);
    s.before = s.streams;
    printf("%3d%% n=%5u (%.0f%% of smallest)", l, s.streams, 100.0 * s.streams / capmin);
    double best = 1e9, p99s[16];
    size_t bi = 0;
    s.measured_from = 15s;
    s.until = 30s;
    for (size_t i = 0; i < s.sizes.size(); ++i) {
      s.fixed = s.sizes[i];
      if (s.streams > capacity(s, s.sizes[i])) {
        printf("     -");
        p99s[i] = 1e9;
        continue;
      }
      auto o = simulate(s);
      p99s[i] = ms(o.latency.quantile(.99));
      printf(" %5.0f", p99s[i]);
      if (p99s[i] < best) {
        best = p99s[i];
        bi = i;
      }
    }
    s.fixed = {};
    s.measured_from = Duration(atoi(getenv("WARM") ? getenv("WARM") : "60") * 1000000000l);
    s.until = s.measured_from + Duration((long)(meas * 1e9));
    auto o = simulate(s);
    double p = ms(o.latency.quantile(.99));
    size_t r = std::min(bi + 1, s.sizes.size() - 1);
    printf(
        " | adaptive p50 %5.0f p99 %5.0f wait p50 %.0f p99 %.0f max %.0f chg/10s %.2f  x best %.2f "
        "x ref %.2f x small %.2f x large %.2f shares",
        ms(o.latency.quantile(.5)), p, ms(o.waits.quantile(.5)), ms(o.waits.quantile(.99)),
        ms(o.waits.greatest()), o.changes_per_minute / 6, p / best, p / p99s[r], p / p99s[0],
        p / p99s[s.sizes.size() - 1]);
    for (double x : o.shares) printf(" %.2f", x);
    printf("%s\n", o.collapsed ? " COLLAPSED" : "");
    fflush(stdout);
  }
}
