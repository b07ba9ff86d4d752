// SPDX-License-Identifier: Apache-2.0
#include "python/extension/client.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "client/client.h"
#include "python/extension/waits.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;
using namespace client_event;

double seconds_of(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

void raise(const char* name, const nb::tuple& arguments) {
  const nb::object raised = nb::module_::import_("millrace.errors").attr(name)(*arguments);
  PyErr_SetObject(raised.type().ptr(), raised.ptr());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const StreamRefused& refused) {
    std::optional<double> retry_after;
    if (refused.retry_after()) retry_after = seconds_of(*refused.retry_after());
    raise("StreamRefused",
          nb::make_tuple(refused.what(), refused.code(), refused.parameter(), retry_after));
  } catch (const StreamFailed& failed) {
    raise("StreamFailed", nb::make_tuple(failed.what(), failed.code()));
  } catch (const ConnectionLost& lost) {
    raise("ConnectionLost", nb::make_tuple(lost.what()));
  }
}

nb::object value_of(const Answer& answer) {
  if (answer.kind == Answer::Kind::bytes) return nb::bytes(answer.data.data(), answer.data.size());
  return nb::str(answer.data.data(), answer.data.size());
}

// The kind of event, and its fields.
struct AsTuple {
  nb::tuple operator()(const Opened& opened) const {
    return nb::make_tuple("opened", opened.stream, opened.pipeline, opened.frames);
  }
  nb::tuple operator()(const client_event::Result& result) const {
    return nb::make_tuple("result", result.seq, result.begin, result.end, result.begin_s,
                          result.end_s, result.flags, static_cast<int>(result.answer.kind),
                          value_of(result.answer));
  }
  nb::tuple operator()(const Flushed& flushed) const {
    return nb::make_tuple("flushed", flushed.mark);
  }
  nb::tuple operator()(const Rejected& rejected) const {
    return nb::make_tuple("rejected", rejected.code, rejected.message, rejected.frames);
  }
  nb::tuple operator()(const Goaway& goaway) const {
    return nb::make_tuple("goaway", seconds_of(goaway.retry_after));
  }
  nb::tuple operator()(const Closed& closed) const {
    return nb::make_tuple("closed", closed.frames, closed.chunks);
  }
};

// None: it is over, or nothing came in time.
nb::object next(ClientStream& stream, std::optional<double> seconds) {
  using Next = std::optional<ClientEvent>;
  const auto next = wait_for(deadline_in(seconds), [&stream](Time until) -> std::optional<Next> {
    Next event = stream.next_until(until);
    if (!event && !stream.over()) return std::nullopt;
    return std::make_optional(std::move(event));
  });
  return next && *next ? nb::object(std::visit(AsTuple(), **next)) : nb::none();
}

// The bytes of an object that has them in one piece.
class Buffer {
 public:
  explicit Buffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Bytes bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

// False: there was no room in time.
bool send(ClientStream& stream, nb::handle frames, std::optional<double> seconds) {
  const Buffer buffer(frames);
  return wait_for(deadline_in(seconds),
                  [&](Time until) { return stream.send_until(buffer.bytes(), until); });
}
bool say(ClientStream& stream, const ClientMessage& command, std::optional<double> seconds) {
  return wait_for(deadline_in(seconds),
                  [&](Time until) { return stream.send_until(command, until); });
}

Duration duration_of(double seconds) {
  if (!(seconds > 0)) throw nb::value_error("a time of a client must be above 0");
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, longest_wait)));
}

// Its thread ends without the GIL. Calls come with it, and keep it: none overtakes close().
class HeldClient {
 public:
  HeldClient(const std::string& url, const ClientSettings& settings)
      : client_(std::make_unique<Client>(url, settings)) {}
  ~HeldClient() { close(); }
  HeldClient(const HeldClient&) = delete;
  HeldClient& operator=(const HeldClient&) = delete;

  void close() {
    auto closing = std::move(client_);
    const nb::gil_scoped_release released;
    closing.reset();
  }
  Client& live() const {
    if (!client_) throw std::runtime_error("the client is closed");
    return *client_;
  }

 private:
  std::unique_ptr<Client> client_;
};

void make(HeldClient* into, const std::string& url, std::size_t unsent, std::size_t untaken,
          double taking, double connect, double keepalive, double silence) {
  if (unsent == 0 || untaken == 0) throw nb::value_error("a bound of a client must be above 0");
  new (into) HeldClient(url, {.unsent = unsent,
                              .untaken = untaken,
                              .taking = duration_of(taking),
                              .connect = duration_of(connect),
                              .keepalive = duration_of(keepalive),
                              .silence = duration_of(silence)});
}

nb::tuple defaults() {
  const ClientSettings settings;
  const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
  return nb::make_tuple(settings.unsent, settings.untaken, seconds(settings.taking),
                        seconds(settings.connect), seconds(settings.keepalive),
                        seconds(settings.silence));
}

using Number = std::optional<std::uint32_t>;
using Text = std::optional<std::string>;

ClientStream start(HeldClient& client, const std::string& pipeline, const std::string& id,
                   const Text& format, std::optional<double> rate, Number channels, Number dim,
                   const std::string& options) {
  return client.live().start({.pipeline = pipeline,
                              .id = id,
                              .options = options,
                              .format = format,
                              .rate = rate,
                              .channels = channels,
                              .dim = dim});
}

}  // namespace

void add_client(nb::module_& module) {
  namespace say_what = client_message;
  using Seconds = std::optional<double>;
  const auto seconds = nb::arg("seconds").none();
  nb::register_exception_translator(translate);
  nb::class_<ClientStream>(module, "Stream")
      .def("send", &send, nb::arg("frames"), seconds)
      .def(
          "flush",
          [](ClientStream& stream, std::optional<std::uint64_t> mark, Seconds wait) {
            return say(stream, say_what::Flush{mark}, wait);
          },
          nb::arg("mark").none(), seconds)
      .def(
          "reset",
          [](ClientStream& stream, Seconds wait) { return say(stream, say_what::Reset{}, wait); },
          seconds)
      .def(
          "gap",
          [](ClientStream& stream, std::uint64_t frames, Seconds wait) {
            return say(stream, say_what::Gap{frames}, wait);
          },
          nb::arg("frames"), seconds)
      .def(
          "end",
          [](ClientStream& stream, Seconds wait) { return say(stream, say_what::End{}, wait); },
          seconds)
      .def("next", &next, seconds)
      .def("close", &ClientStream::close)
      .def_prop_ro("over", &ClientStream::over)
      .def_prop_ro("number", &ClientStream::number);
  module.attr("client_settings") = defaults();
  nb::class_<HeldClient>(module, "Client")
      .def("__init__", &make)
      .def("start", &start, nb::arg("pipeline"), nb::arg("id"), nb::arg("format").none(),
           nb::arg("rate").none(), nb::arg("channels").none(), nb::arg("dim").none(),
           nb::arg("options"), nb::keep_alive<0, 1>())  // a stream is lost with its client
      .def("close", &HeldClient::close)
      .def("descriptor", [](HeldClient& client) { return client.live().descriptor(); })
      .def("changed", [](HeldClient& client) { return client.live().changed(); });
}

}  // namespace millrace::python
