// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

#include "python/extension/chunks.h"

// millrace._core: what the package's Python files are built on. Their signatures are in
// millrace/_core.pyi.
NB_MODULE(_core, module) { millrace::python::add_chunks(module); }
