// SPDX-License-Identifier: Apache-2.0
// Measures how a device processes batches: copies, kernels, and whole batches through the interface
// of devices. Each figure is shown with its goal or as a share of the bandwidth of a plain copy.
// Exits with 77 if there is no device, and with 1 if a section has failed.
#include "bench/gpu_bench.h"

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "bench/options.h"
#include "gpu/cuda/devices.h"

namespace millrace::bench {
namespace {

constexpr int no_device = 77;

struct Section {
  const char* name;
  const char* title;
  void (*measure)(const Bench&);
};

constexpr Section sections[] = {
    {"copies", "copies", measure_copies},
    {"expand", "expand, as a share of the bandwidth of a copy on the device", measure_expand},
    {"slots", "state of slots, as a share of a copy on the device", measure_slots},
    {"bus", "time to copy s16 and expand it, relative to copying f32", measure_bus},
    {"submit", "batches of rows of 1600 s16, on the device as f32", measure_submitting},
    {"parts", "CPU of the parts of starting a copy, 64 rows", measure_parts},
    {"slabs", "consecutive slabs, as a share of the bandwidth of a copy", measure_slabs},
    {"timeline", "64 rows at a time, a model of 300 us, two credits", measure_timeline},
};

struct Arguments {
  std::size_t device = 0;
  bool devices = false, sections = false;
  bool quick = false, small = false;
  std::string section, json_to;
};

Amounts amounts_of(const Arguments& arguments) {
  if (arguments.small)
    return {.batches = 20, .slab_bytes = 32 << 20, .copy = 4 << 20, .large = 4 << 20};
  const std::size_t gigabytes = arguments.quick ? 1 : 4;
  return {.batches = arguments.quick ? 500 : 5000,
          .slab_bytes = gigabytes << 30,
          .copy = 256 << 20,
          .large = beyond_cache()};
}

// Returns the number of sections that failed. A failure of one does not keep the others from
// running.
int measure(const Arguments& arguments, const cuda::FoundDevice& found) {
  Figures figures(found.product, arguments.json_to);
  Devices devices{DeviceRule{.listed = {}, .slab_bytes = std::uint64_t{4} << 30}};
  auto device = devices.open(found.name);
  if (!device) throw std::runtime_error(device.error().message);
  cuda::check(cudaSetDevice(found.ordinal), "selecting a device");
  const Timing timing(arguments.quick ? 5 : 21);
  const Bench bench{figures, timing, **device, found.ordinal, amounts_of(arguments)};
  int failed = 0;
  for (const Section& section : sections) {
    if (!arguments.section.empty() && arguments.section != section.name) continue;
    figures.section(section.name, section.title);
    try {
      section.measure(bench);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "gpu_bench: %s: %s\n", section.name, error.what());
      ++failed;
    }
  }
  figures.text("\n" + std::to_string(figures.met()) + " goals met, " +
               std::to_string(figures.missed()) + " missed");
  return failed;
}

int report_none(const Arguments& arguments, const cuda::Machine& machine) {
  std::fprintf(stderr, "gpu_bench: no device %zu: %s\n", arguments.device,
               machine.why_none.empty() ? "no such device" : machine.why_none.c_str());
  return no_device;
}

void print(const cuda::FoundDevice& device) {
  const std::string toolkit(cuda::version());
  std::printf("%s: %s, CUDA %s\n", device.name.c_str(), device.product.c_str(), toolkit.c_str());
}

int print_sections() {
  for (const Section& section : sections) std::puts(section.name);
  return 0;
}

int run(const Arguments& arguments) {
  if (arguments.sections) return print_sections();
  const cuda::Machine machine = cuda::find_devices();
  if (arguments.device >= machine.devices.size()) return report_none(arguments, machine);
  if (arguments.devices) {
    for (const cuda::FoundDevice& device : machine.devices) print(device);
    return 0;
  }
  print(machine.devices[arguments.device]);
  return measure(arguments, machine.devices[arguments.device]) == 0 ? 0 : 1;
}

bool exists(const std::string& name) {
  for (const Section& section : sections)
    if (name == section.name) return true;
  return name.empty();
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  Arguments arguments;
  Options options("Measure how a device processes batches");
  options.add("--device", arguments.device, "Device number, as CUDA counts")
      .flag("--devices", arguments.devices, "List the devices and exit")
      .add("--section", arguments.section, "Measure only this section; default: all")
      .flag("--sections", arguments.sections, "List the sections and exit")
      .flag("--quick", arguments.quick, "Take fewer samples")
      .flag("--small", arguments.small, "Use little memory: for simulated devices")
      .add("--json-to", arguments.json_to, "Also append each figure to this file, a line of JSON")
      .parse(argc, argv);
  options.require(exists(arguments.section), "--section: must be one of --sections");
  try {
    return run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 1;
  }
}
