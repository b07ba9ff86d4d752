// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "input/sample_format.h"
#include "load/protocols/client_protocol.h"

namespace millrace::load {

// The streams of clients of another vendor's protocol.
struct ForeignStreams {
  // Path and parameters, such as "/v1/listen?smart_format=true"; empty: the default.
  std::string target = {};
  std::string model = {};  // empty: none is named
  SampleFormat format = SampleFormat::s16le;
  double rate = 16'000;
  // The own worker answers write_transcript(). It finds the name of a stream in the options.
  bool named = false;
};

// Completes the target of a URL: `path` if it has none, and the parameter if it is missing.
void add_path(std::string& target, std::string_view path);
void add_parameter(std::string& target, std::string_view name, std::string_view value);

// A session of another vendor's protocol: text instead of results. Confined to one thread.
class ForeignSession : public ClientSession {
 public:
  ForeignSession(std::uint32_t client, bool named) : ClientSession(client), named_(named) {}

  bool received(bool is_text, Bytes message, Time now, ClientSink& sink, FrameWriter& to) override;

 protected:
  // A message of the service: a JSON object. The result is that of received().
  [[nodiscard]] virtual bool handle(const boost::json::value& event, Time now, ClientSink& sink,
                                    FrameWriter& to) = 0;
  // Text of the service. With the own worker each word is the result of a row. `end`: as in
  // ClientSink::text().
  void report_text(std::string_view text, std::optional<double> end, Time now, ClientSink& sink);

 private:
  const bool named_;
  std::uint64_t words_ = 0;
};

}  // namespace millrace::load
