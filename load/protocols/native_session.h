// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "load/protocols/client_protocol.h"
#include "schemas/client_codec.h"
#include "schemas/server_messages.h"

namespace millrace::load {

// The messages of a stream with the service's own protocol (docs/protocol.md), over one connection.
// Confined to one thread.
class NativeSession : public ClientSession {
 public:
  using ClientSession::ClientSession;

  std::optional<StreamTotals> totals() const override { return totals_; }
  void send(Bytes frames, FrameWriter& to) override;
  void commit(Time due, FrameWriter& to) override;
  void end(FrameWriter& to) override;
  bool received(bool is_text, Bytes message, Time now, ClientSink& sink, FrameWriter& to) override;

 protected:
  // Returns the mark of the flush.
  std::uint64_t add_commit(Time due);
  // These report a message to the sink. False if it is invalid.
  [[nodiscard]] bool report(const client_protocol::ToClient& message, Time now, ClientSink& sink);
  [[nodiscard]] bool report(const ServerMessage& message, Time now, ClientSink& sink);

 private:
  bool flushed(std::uint64_t mark, Time now, ClientSink& sink);

  StreamTotals totals_{};
  std::uint64_t finished_ = 0;  // commits that are done; the mark of the next one
  std::vector<Time> commits_;   // those that are not done
};

}  // namespace millrace::load
