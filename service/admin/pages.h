// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "transport/http/page_file.h"

namespace millrace {

// The web pages of the service, compiled into it (cmake/pages.cmake). Valid for the whole program.

std::span<const PageFile> live_page();  // pages of the admin listener: service/admin/live_page/
std::span<const PageFile> try_page();   // pages of the client listener: examples/browser/

}  // namespace millrace
