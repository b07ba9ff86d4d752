// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "transport/http/message.h"

namespace millrace {

// A page in a browser can send requests to any address that its machine reaches. These two checks
// keep pages out that were not let in. Pure.

// False if the request names another host than `localhost` and loopback addresses (127.0.0.0/8,
// [::1]). A name that resolves to this machine is another one: a page of that name has rebound it
// (DNS rebinding). Browsers always send `Host`, so a request without one is no page's.
bool is_for_loopback(const HttpQuery& query);

// False if the request comes from a page whose origin is not in `origins`, compared byte by byte.
bool is_from(const HttpQuery& query, std::span<const std::string> origins);

// True if a page that was loaded from `Host` itself sent the request. `Host` must be `localhost` or
// an address: a name could have been rebound to this machine, so its origin must be listed.
bool is_from_own_page(const HttpQuery& query);

}  // namespace millrace
