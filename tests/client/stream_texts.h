// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "client/client.h"

namespace millrace::test {

// The answers that the stream has now.
inline std::vector<std::string> answers_of(ClientStream& stream) {
  std::vector<std::string> answers;
  while (auto event = stream.next())
    if (const auto* result = std::get_if<client_event::Result>(&*event))
      answers.push_back(result->answer.data);
  return answers;
}

}  // namespace millrace::test
