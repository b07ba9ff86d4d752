// SPDX-License-Identifier: Apache-2.0
#include "workers/library/warm_up.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "python/extension/attach.h"
#include "python/extension/batch_source.h"
#include "python/extension/held_batch.h"
#include "python/extension/parts.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;

// The result of describe().
struct Description {
  Description(const std::string& url, const WorkerSettings& settings,
              const std::function<void()>& meanwhile)
      : pipeline(describe(url, settings, meanwhile)) {}

  worker_protocol::Welcome pipeline;
};

void make_description(Description* into, const std::string& url, const std::string& pipeline,
                      const std::string& name, double wait, const nb::callable& on_wait,
                      const nb::callable& meanwhile) {
  WorkerSettings settings;
  settings.pipeline = pipeline;
  settings.name = name;
  attach(into, url, std::move(settings), wait, on_wait, meanwhile);
}

// The batches of a warm-up, for Python.
class WarmUpSource final : public BatchSource {
 public:
  WarmUpSource(const Description& of, const std::string& device) : warm_up_(of.pipeline, device) {}

  std::optional<WorkerBatch> next(std::optional<double> /*seconds*/) { return warm_up_.next(); }

  const FrameType& frames() const override { return warm_up_.pipeline().frames; }
  int ordinal() const override { return warm_up_.ordinal(); }
  void use_on(const WorkerBatch& batch, DeviceStream stream) override {
    warm_up_.use_on(batch, stream);
  }
  void done(WorkerBatch& batch, std::span<const Answer>, std::span<const Answer>) override {
    warm_up_.done(batch);
  }
  void fail(WorkerBatch& batch, const std::string&) override { warm_up_.done(batch); }

 private:
  WarmUp warm_up_;
};

nb::list sizes_of(const Description& description) {
  nb::list sizes;
  for (const BatchSize& size : warm_up_sizes(description.pipeline))
    sizes.append(nb::make_tuple(size.rows, size.width));
  return sizes;
}

}  // namespace

void add_warm_up(nb::module_& module) {
  nb::class_<Description>(module, "Description")
      .def("__init__", &make_description)
      .def_prop_ro("welcome", [](const Description& d) { return welcome_of(d.pipeline); })
      .def_prop_ro("sizes", &sizes_of);
  nb::class_<WarmUpSource>(module, "WarmUp")
      .def(nb::init<const Description&, const std::string&>())
      .def("next", &next_batch<WarmUpSource>, nb::arg("seconds").none());
}

}  // namespace millrace::python
