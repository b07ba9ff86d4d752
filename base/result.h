// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/system/result.hpp>

namespace millrace {

// A value or an error: for invalid input of a peer or a file. Failures of the environment (a bind,
// an open) are thrown; bugs are asserted.
template <class T, class E>
using Result = boost::system::result<T, E>;

}  // namespace millrace
