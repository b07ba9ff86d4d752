// SPDX-License-Identifier: Apache-2.0
#include "training/processes/process_pool.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <utility>

#include "base/file_descriptor.h"
#include "python/extension/datasets/ensured_gil.h"
#include "python/extension/datasets/kept_object.h"
#include "python/extension/datasets/python_failure.h"
#include "python/extension/parts.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;
using training::ProcessChannel;
using training::ProcessPool;

// `start(i)` returns a pidfd and a socket of a new process. It may be called on any thread.
void make_pool(ProcessPool* into, std::size_t processes, double seconds, nb::callable start) {
  const auto kept = std::make_shared<KeptObject>(std::move(start));
  const auto call = [kept](std::size_t number) -> ProcessChannel {
    const EnsuredGil held;
    try {
      const nb::object made = called([&] { return kept->get()(number); });
      return {FileDescriptor(nb::cast<int>(made[1])), FileDescriptor(nb::cast<int>(made[0]))};
    } catch (nb::python_error& error) {
      throw std::runtime_error(
          failure_of(error, training::DataFault::function, "a process cannot be started").message);
    }
  };
  new (into) ProcessPool(
      processes, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)),
      call);
}

}  // namespace

void add_process_pool(nb::module_& module) {
  nb::class_<ProcessPool>(module, "ProcessPool")
      .def("__init__", &make_pool, nb::arg("processes"), nb::arg("seconds"), nb::arg("start"))
      .def("start", nb::overload_cast<>(&ProcessPool::start))
      .def("stop", &ProcessPool::stop);
}

}  // namespace millrace::python
