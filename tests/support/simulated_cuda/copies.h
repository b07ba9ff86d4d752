// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::test::simulated_cuda {

// Counts from 0 again.
void forget_copies();

}  // namespace millrace::test::simulated_cuda
