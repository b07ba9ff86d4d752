// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"
#include "python/extension/parts.h"
#include "python/extension/waits.h"
#include "python/extension/without_gil.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;

Duration positive(double seconds) {
  if (!(seconds > 0))
    throw nb::value_error("taking, connect, keepalive, silence and resume_window must be positive");
  return duration_of(seconds);
}

// A Client that ends its thread without the GIL. Calls hold the GIL, so that none runs during
// close().
class HeldClient {
 public:
  HeldClient(const std::string& url, const ClientSettings& settings, const ServiceAccess& access)
      : client_(std::make_unique<Client>(url, settings, access)) {}
  ~HeldClient() { close(); }
  HeldClient(const HeldClient&) = delete;
  HeldClient& operator=(const HeldClient&) = delete;

  void close() {
    auto closing = std::move(client_);
    const WithoutGil waits;
    closing.reset();
  }
  Client& live() const {
    if (!client_) throw std::runtime_error("the client is closed");
    return *client_;
  }

 private:
  std::unique_ptr<Client> client_;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

void make_client(HeldClient* into, const std::string& url, const std::string& token,
                 const Headers& headers, const std::string& ca, const std::string& certificate,
                 const std::string& key, std::size_t unsent, std::size_t untaken, double taking,
                 double connect, double keepalive, double silence, bool resume,
                 double resume_window) {
  if (unsent == 0 || untaken == 0) throw nb::value_error("unsent and untaken must be positive");
  new (into) HeldClient(
      url,
      {.unsent = unsent,
       .untaken = untaken,
       .taking = positive(taking),
       .connect = positive(connect),
       .keepalive = positive(keepalive),
       .silence = positive(silence),
       .resume = resume,
       .resume_window = positive(resume_window)},
      {.token = token, .headers = headers, .ca = ca, .certificate = certificate, .key = key});
}

nb::tuple defaults() {
  const ClientSettings settings;
  return nb::make_tuple(settings.unsent, settings.untaken, seconds_of(settings.taking),
                        seconds_of(settings.connect), seconds_of(settings.keepalive),
                        seconds_of(settings.silence), settings.resume,
                        seconds_of(settings.resume_window));
}

using Number = std::optional<std::uint32_t>;
using Text = std::optional<std::string>;

ClientStream start(HeldClient& client, const std::string& pipeline, const std::string& id,
                   const Text& format, std::optional<double> rate, Number channels, Number dim,
                   const Text& channel, const Text& chunk, const std::string& options, bool record,
                   bool explain) {
  return client.live().start({.pipeline = pipeline,
                              .id = id,
                              .options = options,
                              .format = format,
                              .channel = channel,
                              .chunk = chunk,
                              .rate = rate,
                              .channels = channels,
                              .dim = dim,
                              .record = record,
                              .explain = explain});
}

}  // namespace

void add_client(nb::module_& module) {
  module.attr("client_settings") = defaults();
  nb::class_<HeldClient>(module, "Client")
      .def("__init__", &make_client)
      .def("start", &start, nb::arg("pipeline"), nb::arg("id"), nb::arg("format").none(),
           nb::arg("rate").none(), nb::arg("channels").none(), nb::arg("dim").none(),
           nb::arg("channel").none(), nb::arg("chunk").none(), nb::arg("options"),
           nb::arg("record"), nb::arg("explain"),
           nb::keep_alive<0, 1>())  // a stream is lost with its client
      .def("close", &HeldClient::close)
      .def("descriptor", [](HeldClient& client) { return client.live().descriptor(); })
      .def("changed", [](HeldClient& client) { return client.live().changed(); });
}

}  // namespace millrace::python
