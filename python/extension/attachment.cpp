// SPDX-License-Identifier: Apache-2.0
#include "python/extension/attachment.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "python/extension/answers.h"
#include "python/extension/attach.h"
#include "python/extension/held_batch.h"
#include "python/extension/parts.h"
#include "python/extension/raise.h"
#include "python/extension/waits.h"
#include "python/extension/without_gil.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;

void translate_attach_error(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const WorkerError& error) {
    raise("error_of", error.what(), error.code(), error.details());
  } catch (const StreamGone& gone) {
    raise("StreamGone", gone.what());
  }
}

void make(Attachment* into, const std::string& url, const std::string& pipeline,
          const std::string& name, std::uint32_t credits, const std::string& device, double wait,
          const nb::callable& on_wait, const nb::callable& meanwhile) {
  WorkerSettings settings;
  settings.pipeline = pipeline;
  settings.name = name;
  settings.credits = credits;
  settings.device = device;
  attach(into, url, std::move(settings), wait, on_wait, meanwhile);
}

}  // namespace

std::optional<WorkerBatch> Attachment::next(std::optional<double> seconds) {
  if (taken_ >= credits_)
    throw std::runtime_error("you hold all " + std::to_string(credits_) +
                             (credits_ == 1 ? " batch" : " batches") +
                             " that `credits` allows: give one back with done() first");
  for (const Time deadline = deadline_in(seconds);;) {
    std::optional<WorkerBatch> batch;
    {
      const WithoutGil waits;
      batch = worker_.next_until(std::min(deadline, Clock::now() + signal_interval));
    }
    if (batch) {
      ++taken_;
      return batch;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (interrupted_.exchange(false) || worker_.ended() || Clock::now() >= deadline)
      return std::nullopt;
  }
}

// A lost service is reported by next().
template <class Sends>
auto Attachment::sent(Sends sends) {
  const WithoutGil waits;
  try {
    return sends();
  } catch (const WorkerError& error) {
    throw StreamGone(error.what());
  }
}

bool Attachment::send(std::uint64_t stream, const Answer& message, std::optional<double> seconds) {
  for (const Time deadline = deadline_in(seconds);;) {
    const bool done = sent([&] {
      const Time until =
          deadline == Time::min() ? deadline : std::min(deadline, Clock::now() + signal_interval);
      return worker_.send(StreamId{stream}, message, until);
    });
    if (done || Clock::now() >= deadline || interrupted_) return done;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

void Attachment::answer(std::uint64_t stream, std::uint64_t seq, const Answer& answer) {
  sent([&] { worker_.answer(StreamId{stream}, seq, answer); });
}

template <class Gives>
void Attachment::give_back(Gives gives) {
  try {
    gives();
  } catch (const WorkerError& error) {
    if (error.code() == "device") throw;
  }
  --taken_;
}

void Attachment::done(WorkerBatch& batch, std::span<const Answer> answers,
                      std::span<const Answer> mark_answers) {
  give_back([&] { worker_.done(batch, answers, mark_answers); });
}

void Attachment::fail(WorkerBatch& batch, const std::string& why) {
  give_back([&] { worker_.fail(batch, why); });
}

void add_attachment(nb::module_& module) {
  nb::register_exception_translator(translate_attach_error);
  nb::class_<Pending>(module, "Pending").def("__repr__", [](const Pending&) {
    return "millrace.pending";
  });
  module.attr("pending") = nb::cast(Pending());
  nb::class_<Attachment>(module, "Attachment")
      .def("__init__", &make)
      .def("next", &next_batch<Attachment>, nb::arg("seconds").none())
      .def(
          "send",
          [](Attachment& a, std::uint64_t stream, nb::handle data, std::optional<double> seconds,
             nb::handle encode) { return a.send(stream, answer_from(data, encode), seconds); },
          nb::arg("stream"), nb::arg("data").none(), nb::arg("seconds").none(), nb::arg("encode"))
      .def(
          "answer",
          [](Attachment& a, std::uint64_t stream, std::uint64_t seq, nb::handle data, bool endpoint,
             nb::handle encode) {
            Answer answer = answer_from(data, encode);
            answer.endpoint = endpoint;
            a.answer(stream, seq, answer);
          },
          nb::arg("stream"), nb::arg("seq"), nb::arg("data").none(), nb::arg("endpoint"),
          nb::arg("encode"))
      .def("bye", &Attachment::bye, nb::call_guard<WithoutGil>())
      .def("close", &Attachment::close, nb::call_guard<WithoutGil>())
      .def("interrupt", &Attachment::interrupt)
      .def_prop_ro("ended", [](const Attachment& a) { return a.worker().ended(); })
      .def_prop_ro("company", [](const Attachment& a) { return a.worker().company(); })
      .def_prop_ro("streams",
                   [](const Attachment& a) {
                     return nb::make_tuple(a.worker().moved_streams(),
                                           a.worker().waiting_streams());
                   })
      .def_prop_ro("device", [](const Attachment& a) { return a.worker().device(); })
      .def_prop_ro("welcome", [](const Attachment& a) { return welcome_of(a.worker().welcome()); });
}

}  // namespace millrace::python
