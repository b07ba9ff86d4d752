// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::test::simulated_cuda {

// Resets the counter of pageable copies.
void forget_copies();

}  // namespace millrace::test::simulated_cuda
