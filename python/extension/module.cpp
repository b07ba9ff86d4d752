// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

#include "python/extension/datasets/ensured_gil.h"
#include "python/extension/parts.h"

// millrace._core, the extension of the package. The signatures are in millrace/_core.pyi.
NB_MODULE(_core, module) {
  using namespace millrace::python;
  nanobind::set_leak_warnings(false);  // a daemon thread keeps its objects until the process ends
  module.attr("version") = MILLRACE_VERSION;
  guard_forks();
  add_chunks(module);
  add_batch(module);
  add_plain_values(module);
  add_device_memory(module);
  add_attachment(module);
  add_warm_up(module);
  add_client_stream(module);
  add_client(module);
  add_recordings(module);
  add_catalogs(module);
  add_process_pool(module);
  add_plans(module);
  add_plan_loader(module);
  add_trainer(module);
}
