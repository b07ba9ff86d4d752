// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "checking/plan/checked_stream.h"
#include "checking/plan/draws.h"

namespace millrace::checking {

// The messages that the clients of a check send. If a list is empty, they send objects with the
// key `check_worker`, which no worker knows.
struct ClientTexts {
  std::vector<std::string> messages;  // JSON values
  std::vector<std::string> sets;      // JSON objects: changes of the options
};

// Gives each stream options of its own, and draws rows of all but the first one that carry
// messages. Changes of the options are at any row, because options stay with a stream. Other
// messages are in its last run alone: a worker may keep them across RESET, or not.
//
// `streams` have no messages yet.
void add_client_messages(std::vector<CheckedStream>& streams, const ClientTexts& texts,
                         Draws& draws);

}  // namespace millrace::checking
