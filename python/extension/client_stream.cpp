// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <exception>
#include <optional>
#include <utility>

#include "client/client_error.h"
#include "client/client_stream.h"
#include "python/extension/datasets/array_types.h"
#include "python/extension/parts.h"
#include "python/extension/raise.h"
#include "python/extension/waits.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;

void translate_client_error(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const StreamRefused& refused) {
    std::optional<double> retry_after;
    if (refused.retry_after()) retry_after = seconds_of(*refused.retry_after());
    raise("StreamRefused", refused.what(), refused.code(), refused.parameter(), retry_after);
  } catch (const StreamFailed& failed) {
    raise("StreamFailed", failed.what(), failed.code());
  } catch (const ConnectionLost& lost) {
    raise("ConnectionLost", lost.what());
  }
}

nb::object value_of(const Answer& answer) {
  if (answer.kind == Answer::Kind::bytes) return nb::bytes(answer.data.data(), answer.data.size());
  return nb::str(answer.data.data(), answer.data.size());
}

// An event as a tuple: its kind, then its fields.
struct AsTuple {
  nb::tuple operator()(const client_event::Opened& opened) const {
    return nb::make_tuple("opened", opened.stream, opened.pipeline, opened.frames);
  }
  nb::tuple operator()(const client_event::Result& result) const {
    return nb::make_tuple("result", result.seq, result.begin, result.end, result.begin_s,
                          result.end_s, result.flags, static_cast<int>(result.answer.kind),
                          value_of(result.answer), result.explain);
  }
  nb::tuple operator()(const client_event::Message& message) const {
    return nb::make_tuple("message", message.number, message.seq,
                          static_cast<int>(message.message.kind), value_of(message.message));
  }
  nb::tuple operator()(const client_event::Flushed& flushed) const {
    return nb::make_tuple("flushed", flushed.mark);
  }
  nb::tuple operator()(const client_event::Rejected& rejected) const {
    return nb::make_tuple("rejected", rejected.code, rejected.message, rejected.frames);
  }
  nb::tuple operator()(const client_event::Warned& warned) const {
    return nb::make_tuple("warned", warned.code, warned.message);
  }
  nb::tuple operator()(const client_event::Goaway& goaway) const {
    return nb::make_tuple("goaway", seconds_of(goaway.retry_after));
  }
  nb::tuple operator()(const client_event::Resumed& resumed) const {
    return nb::make_tuple("resumed", resumed.kept);
  }
  nb::tuple operator()(const client_event::Closed& closed) const {
    return nb::make_tuple("closed", closed.frames, closed.chunks);
  }
};

// Returns None if the stream is over, or if no event came within `seconds`.
nb::object next(ClientStream& stream, std::optional<double> seconds) {
  using Next = std::optional<ClientEvent>;
  const auto next = wait_for(deadline_in(seconds), [&stream](Time until) -> std::optional<Next> {
    Next event = stream.next_until(until);
    if (!event && !stream.over()) return std::nullopt;
    return std::make_optional(std::move(event));
  });
  return next && *next ? nb::object(std::visit(AsTuple(), **next)) : nb::none();
}

// Returns false if there was no space within `seconds`.
bool send(ClientStream& stream, nb::handle frames, std::optional<double> seconds) {
  const ArrayBytes buffer(frames);
  return wait_for(deadline_in(seconds),
                  [&](Time until) { return stream.send_until(buffer.get(), until); });
}
bool send_command(ClientStream& stream, const ClientMessage& command,
                  std::optional<double> seconds) {
  return wait_for(deadline_in(seconds),
                  [&](Time until) { return stream.send_until(command, until); });
}

}  // namespace

void add_client_stream(nb::module_& module) {
  namespace commands = client_message;
  using Seconds = std::optional<double>;
  const auto seconds = nb::arg("seconds").none();
  nb::register_exception_translator(translate_client_error);
  nb::class_<ClientStream>(module, "Stream")
      .def("send", &send, nb::arg("frames"), seconds)
      .def(
          "flush",
          [](ClientStream& stream, std::optional<std::uint64_t> mark, Seconds wait) {
            return send_command(stream, commands::Flush{mark}, wait);
          },
          nb::arg("mark").none(), seconds)
      .def(
          "reset",
          [](ClientStream& stream, Seconds wait) {
            return send_command(stream, commands::Reset{}, wait);
          },
          seconds)
      .def(
          "gap",
          [](ClientStream& stream, std::uint64_t frames, Seconds wait) {
            return send_command(stream, commands::Gap{frames}, wait);
          },
          nb::arg("frames"), seconds)
      .def(
          "message",
          [](ClientStream& stream, std::string data, Seconds wait) {
            return send_command(stream, commands::Message{std::move(data)}, wait);
          },
          nb::arg("data"), seconds)
      .def(
          "set",
          [](ClientStream& stream, std::string options, Seconds wait) {
            return send_command(stream, commands::Set{std::move(options)}, wait);
          },
          nb::arg("options"), seconds)
      .def(
          "end",
          [](ClientStream& stream, Seconds wait) {
            return send_command(stream, commands::End{}, wait);
          },
          seconds)
      .def("next", &next, seconds)
      .def("close", &ClientStream::close)
      .def_prop_ro("over", &ClientStream::over)
      .def_prop_ro("number", &ClientStream::number);
}

}  // namespace millrace::python
