// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "base/files/current.h"
#include "transport/access/token_list.h"
#include "transport/http/message.h"

namespace millrace {

// The tokens that clients of the process may present. A reload replaces the list: the next client
// is checked against the new one.
//
// Thread-safe.
class AcceptedTokens {
 public:
  using List = Current<TokenList>::Pointer;

  // Null: every token is accepted, and none is needed.
  explicit AcceptedTokens(List list = nullptr) : list_(std::move(list)) {}

  List list() const { return list_.get(); }
  void replace(List list) noexcept { list_.replace(std::move(list)); }

  // Why a client with this token is refused, for people and without the token; nullopt if it is
  // accepted. An empty token counts as an absent one.
  std::optional<std::string_view> refusal(std::string_view token) const;
  // The same for the token that a request presents.
  std::optional<std::string_view> refusal(const HttpQuery& query) const;

 private:
  Current<TokenList> list_;
};

}  // namespace millrace
