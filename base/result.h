// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/system/result.hpp>

namespace millrace {

// A value, or the reason why there is none: for what a peer or a file may get wrong. What the
// environment refuses (a bind, an open) is thrown, what is a bug is asserted.
template <class T, class E>
using Result = boost::system::result<T, E>;

}  // namespace millrace
