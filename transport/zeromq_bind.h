// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zmq.hpp>

#include "transport/zeromq_router.h"

namespace millrace {

// Sets all that a ROUTER is to know of its peers, and binds it. Throws std::runtime_error that
// names the endpoint.
void bind(zmq::socket_t& socket, const ZeromqBinding& binding);

}  // namespace millrace
