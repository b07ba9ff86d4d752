// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "load/protocols/client_protocol.h"

namespace millrace::load {

// Writes each call into one text.
struct RecordingSink final : ClientSink {
  void opened(std::uint32_t, Time) override { record += "opened "; }
  void refused(std::uint32_t, std::string_view why, Time) override {
    record += "refused:" + std::string(why) + " ";
  }
  void writable(std::uint32_t) override { record += "writable "; }
  void received(std::uint32_t, const ReceivedResult& result, Time) override {
    record += "result:" + std::to_string(result.seq);
    if (!result.data.empty() && result.data.front() == 'r')
      record += "/" + std::to_string(result.begin) + "-" + std::to_string(result.end);
    record += " ";
  }
  void text(std::uint32_t, std::optional<double> end, Time) override {
    record += "text";
    if (end) record += ":" + std::to_string(static_cast<int>(*end * 1000));
    record += " ";
  }
  void finished(std::uint32_t, Time due, bool failed, Time) override {
    record += failed ? "failed:" : "finished:";
    record += std::to_string(due.time_since_epoch() / std::chrono::milliseconds(1)) + " ";
  }
  void message(std::uint32_t, std::uint64_t number) override {
    record += "message:" + std::to_string(number) + " ";
  }
  void rejected(std::uint32_t, std::uint64_t frames) override {
    record += "rejected:" + std::to_string(frames) + " ";
  }
  void closed(std::uint32_t, std::optional<StreamTotals> totals, Time) override {
    record += "closed";
    if (totals) record += ":" + std::to_string(totals->frames) + "/" + std::to_string(totals->rows);
    record += " ";
  }
  void resumed(std::uint32_t, bool kept, Time) override {
    record += kept ? "resumed " : "reopened ";
  }
  void broken(std::uint32_t, std::string_view why, Time) override {
    record += "broken:" + std::string(why) + " ";
  }
  std::string record;
};

// A session of a protocol, with the texts that it writes and the calls of its sink.
struct SessionUnderTest final : FrameWriter {
  explicit SessionUnderTest(ClientProtocol& protocol) : session(protocol.session(7, "b1-7-0")) {
    session->start({}, sink);
  }

  void write(Opcode opcode, std::string_view payload) override {
    if (opcode == Opcode::close)
      written += "close ";
    else
      written.append(payload) += ' ';
  }
  // The calls of the sink for a text of the service.
  std::string effect_of(std::string_view text) {
    continues = session->received(true, bytes_in(text), {}, sink, *this);
    return std::exchange(sink.record, {});
  }
  std::string take_written() { return std::exchange(written, {}); }
  void send(std::string_view audio) { session->send(bytes_in(audio), *this); }
  void commit(int due) { session->commit(Time(std::chrono::milliseconds(due)), *this); }
  void end() { session->end(*this); }

  RecordingSink sink;
  std::unique_ptr<ClientSession> session;
  std::string written;
  bool continues = true;
};

}  // namespace millrace::load
