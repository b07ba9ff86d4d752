// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/simulated_cuda/event.h"

namespace millrace::test::simulated_cuda {

// Makes the page of an event, in a file if its flags allow other processes to open it. False if
// there is no memory.
bool make_page(Event& event);
// Maps the page of another process's event by its descriptor.
bool map_page(Event& event);
// Closes the descriptor: no process can open the event any more. The page stays mapped.
void close_page(Event& event);
void drop_page(Event& event);

}  // namespace millrace::test::simulated_cuda
