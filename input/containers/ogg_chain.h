// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace millrace {

// True if an Ogg file is a chain (RFC 3533): recordings one behind the other, as internet radio
// writes them. Reads the whole file. libsndfile reads only the first recording of a chain.
bool is_ogg_chain(const std::string& path);

}  // namespace millrace
