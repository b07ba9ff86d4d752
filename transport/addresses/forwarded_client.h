// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/addresses/proxy_list.h"
#include "transport/http/message.h"

namespace millrace {

// The address of the client that sent a request over a connection of `peer`: `peer` itself, unless
// it is a proxy. Then it is the last address of X-Forwarded-For, from the right, that is no proxy.
// All fields of this name are one list. An entry may have a port. The client can write the entries
// to the left of its address, so they do not count. An entry that is no address ends the search:
// the client is then the proxy to its right, because no entry to its left can be believed.
IpAddress forwarded_client(const HttpQuery& query, const IpAddress& peer, const ProxyList& proxies);

}  // namespace millrace
