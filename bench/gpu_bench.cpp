// SPDX-License-Identifier: Apache-2.0
// Measures how a device processes batches: copies, kernels, and whole batches through the interface
// of devices. Each figure is shown with its goal or as a share of the bandwidth of a plain copy.
// Exits with 77 if there is no device.
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

struct Arguments {
  std::size_t device = 0;
  bool devices = false;
  bool quick = false;
  bool json = false;
};

void measure(const Arguments& arguments, const cuda::FoundDevice& found) {
  Devices devices{DeviceRule{.listed = {}, .slab_bytes = std::uint64_t{4} << 30}};
  auto device = devices.open(found.name);
  if (!device) throw std::runtime_error(device.error().message);
  cuda::check(cudaSetDevice(found.ordinal), "selecting a device");

  Figures figures(arguments.json);
  const Timing timing(arguments.quick ? 5 : 21);
  const int batches = arguments.quick ? 500 : 5000;
  const Ceilings ceilings = measure_copies(figures, timing);
  measure_expand(figures, timing, ceilings);
  measure_slots(figures, timing, ceilings);
  measure_bus(figures, timing);
  measure_submitting(figures, **device, batches);
  measure_slab_bandwidth(figures, **device, ceilings, std::size_t{arguments.quick ? 1u : 4u} << 30);
  measure_timeline(figures, **device);
  figures.text("\n" + std::to_string(figures.met()) + " goals met, " +
               std::to_string(figures.missed()) + " missed");
}

int report_none(const Arguments& arguments, const cuda::Machine& machine) {
  std::fprintf(stderr, "gpu_bench: no device %zu: %s\n", arguments.device,
               machine.why_none.empty() ? "no such device" : machine.why_none.c_str());
  return no_device;
}

void print(const cuda::FoundDevice& device, bool json) {
  const std::string toolkit(cuda::version());
  std::printf(json ? R"({"device":"%s","product":"%s","cuda":"%s"})"
                     "\n"
                   : "%s: %s, CUDA %s\n",
              device.name.c_str(), device.product.c_str(), toolkit.c_str());
}

int run(const Arguments& arguments) {
  const cuda::Machine machine = cuda::find_devices();
  if (arguments.device >= machine.devices.size()) return report_none(arguments, machine);
  if (arguments.devices) {
    for (const cuda::FoundDevice& device : machine.devices) print(device, arguments.json);
    return 0;
  }
  print(machine.devices[arguments.device], arguments.json);
  measure(arguments, machine.devices[arguments.device]);
  return 0;
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  millrace::bench::Arguments arguments;
  millrace::bench::Options("Measure how a device processes batches")
      .add("--device", arguments.device, "Device number, as CUDA counts")
      .flag("--devices", arguments.devices, "List the devices and exit")
      .flag("--quick", arguments.quick, "Take fewer samples")
      .flag("--json", arguments.json, "Print each figure as a line of JSON")
      .parse(argc, argv);
  try {
    return millrace::bench::run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_bench: %s\n", error.what());
    return 1;
  }
}
