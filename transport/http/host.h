// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "transport/http/message.h"

namespace millrace {

// Checks of requests that come from web pages. A page in a browser can send requests to any address
// that its machine reaches; these checks reject pages that are not allowed. Pure.

// True if every `Host` is `localhost` or a loopback address (127.0.0.0/8, [::1]), with or without a
// port. Any other name is rejected even if it resolves to this machine: it may be the name of a
// page that uses DNS rebinding. Browsers always send `Host`, so a request without it is accepted.
bool is_for_loopback(const HttpQuery& query);

// The same for a listener that other machines reach: a `Host` is also accepted if it is any
// address, has no dot (the name of a container or of a machine on the same network), or is in
// `names`, which are in lower case. A name that a page on the Internet could have has a dot.
bool is_for_listener(const HttpQuery& query, std::span<const std::string> names);

// False if the request has an `Origin` that is not in `origins`, compared byte by byte. A request
// without `Origin` is accepted.
bool is_from(const HttpQuery& query, std::span<const std::string> origins);

// True if `Origin` is the host of the request itself (or is missing), and `Host` is `localhost` or
// an address. Any other name could be rebound to this machine: its origin must be listed.
bool is_from_own_page(const HttpQuery& query);

}  // namespace millrace
