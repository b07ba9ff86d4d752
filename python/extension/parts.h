// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace millrace::python {

// The parts of the module: each function adds classes and functions.

// `chunks` and `values`: the chunk rules as functions.
void add_chunks(nanobind::module_& module);
// Batch, and what Python needs to read its rows.
void add_batch(nanobind::module_& module);
void add_plain_values(nanobind::module_& module);
void add_device_memory(nanobind::module_& module);
void add_attachment(nanobind::module_& module);
// Description, of a pipeline, and WarmUp, batches for a model before its worker attaches.
void add_warm_up(nanobind::module_& module);
// Client: millrace::Client, which waits without the GIL.
void add_client(nanobind::module_& module);
// Stream: millrace::ClientStream, which waits without the GIL and runs Python's signal handlers.
// Events are tuples, of which millrace/events.py makes objects. A ClientError is raised as the
// exception with the same name in millrace/errors.py.
void add_client_stream(nanobind::module_& module);
// Recordings, a directory of recorded streams, and RecordedStream.
void add_recordings(nanobind::module_& module);
// Catalog, and the functions that make catalogs.
void add_catalogs(nanobind::module_& module);
// ProcessPool, in which functions of Python are called.
void add_process_pool(nanobind::module_& module);
// DatasetKeys and Plan.
void add_plans(nanobind::module_& module);
// Loader, the batches of a plan.
void add_plan_loader(nanobind::module_& module);
void add_trainer(nanobind::module_& module);

}  // namespace millrace::python
