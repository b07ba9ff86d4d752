// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "training/contract/catalog.h"

namespace millrace::python {

// A catalog for Python.
struct OpenedCatalog {
  std::shared_ptr<const training::Catalog> catalog;
};

}  // namespace millrace::python
