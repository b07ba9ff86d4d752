// SPDX-License-Identifier: Apache-2.0
#include "python/extension/datasets/dataset_keys.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <utility>

#include "chunker/rule_json.h"
#include "python/extension/datasets/opened_catalog.h"
#include "python/extension/datasets/python_function.h"
#include "python/extension/datasets/signal_poll.h"
#include "python/extension/parts.h"
#include "python/extension/text.h"
#include "python/extension/without_gil.h"
#include "training/plans/make_plan.h"
#include "training/plans/origin.h"
#include "training/plans/padding.h"
#include "training/processes/process_function.h"
#include "training/processes/process_pool.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;
namespace json = boost::json;
using training::DatasetKeys;
using training::EpochPlan;
using training::PlanError;
using training::PlanOptions;

[[noreturn]] void refuse(const PlanError& error) { python::refuse(error.message); }

// A value of Python as JSON. Throws nb::type_error for other types than those of JSON.
json::value value_from(nb::handle value, const std::string& key) {
  if (value.is_none()) return nullptr;
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::str>(value)) return json::value(bytes_of(value));
  if (std::int64_t number = 0; nb::try_cast(value, number, false)) return number;
  if (std::uint64_t number = 0; nb::try_cast(value, number, false)) return number;
  if (double number = 0; nb::isinstance<nb::float_>(value) && nb::try_cast(value, number))
    return number;
  if (nb::isinstance<nb::dict>(value)) {
    json::object object;
    for (const auto [name, member] : nb::borrow<nb::dict>(value)) {
      if (!nb::isinstance<nb::str>(name))
        throw nb::type_error(
            (key + ": names must be texts, not " + bytes_of(nb::repr(name))).c_str());
      const std::string text = bytes_of(name);
      object[text] = value_from(member, key + "." + text);
    }
    return object;
  }
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    json::array array;
    for (const nb::handle entry : nb::borrow<nb::sequence>(value))
      array.push_back(value_from(entry, key));
    return array;
  }
  if (nb::isinstance<nb::int_>(value))
    python::refuse(key + " = " + bytes_of(nb::str(value)) +
                   ": a whole number must be from -2^63 to 2^64 - 1");
  const std::string sentence =
      key + ": must be a text, a number, a list or a dict, not " + bytes_of(nb::repr(value));
  throw nb::type_error(sentence.c_str());
}

DatasetKeys keys_from(const nb::dict& given) {
  json::object object;
  for (const auto [name, value] : given) {
    const std::string key = bytes_of(nb::str(name));
    object[key] = value_from(value, key);
  }
  auto keys = training::read_dataset_keys(object);
  if (!keys) refuse(keys.error());
  return std::move(*keys);
}

nb::list keyed_companions(const DatasetKeys& keys) {
  nb::list list;
  for (const training::CompanionSource& companion : keys.companions)
    list.append(nb::make_tuple(
        companion.name, companion.from, companion.frames_per_entry, companion.entries_per_frame,
        companion.element ? nb::cast(name_of(*companion.element)) : nb::none()));
  return list;
}

// With a pool, its processes call the function, which is number `source` there.
DatasetPlan plan_from(const DatasetKeys& keys, const OpenedCatalog& opened, nb::object function,
                      bool changes_lengths, std::shared_ptr<training::ProcessPool> pool,
                      std::uint32_t source) {
  DatasetPlan made{keys, opened.catalog, {}, nullptr, nullptr};
  auto options = training::plan_options(keys, opened.catalog->frame_type());
  if (!options) refuse(options.error());
  made.options = std::move(*options);
  if (!function.is_none())
    made.function = std::make_shared<PythonFunction>(opened.catalog, std::move(function));
  if (made.function && pool)
    made.function = std::make_shared<training::ProcessFunction>(opened.catalog, std::move(pool),
                                                                source, made.function);
  if (changes_lengths)
    made.options.frames =
        training::lengths_after(made.function, opened.catalog, keys.loader.skip_failed);
  auto plan = training::make_plan(*made.catalog, made.options, keys.loader.rank);
  if (!plan) refuse(plan.error());
  made.plan = std::move(*plan);
  return made;
}

template <auto function>
auto of_rank(const DatasetPlan& made) {
  return (made.plan.get()->*function)(made.keys.loader.rank);
}

std::optional<std::string> chunk(const DatasetPlan& made) {
  if (!made.options.chunk) return std::nullopt;
  return to_json(*made.options.chunk);
}

// The totals are those of an epoch.
std::optional<std::string> padding_warning(const DatasetPlan& made, std::uint64_t rows,
                                           std::uint64_t padding_rows, std::uint64_t frames) {
  const WithoutGil waits;
  return training::padding_warning(*made.catalog, made.options, made.keys.loader.rank,
                                   {rows, padding_rows, frames}, signal_poll());
}

}  // namespace

void add_plans(nb::module_& module) {
  nb::class_<DatasetKeys>(module, "DatasetKeys")
      .def("__init__", [](DatasetKeys* into,
                          const nb::dict& given) { new (into) DatasetKeys(keys_from(given)); })
      .def_prop_ro("companions", &keyed_companions);
  module.def("difference_of", &training::difference_of);
  using Plan = training::Plan;
  nb::class_<DatasetPlan>(module, "Plan")
      .def(
          "__init__",
          [](DatasetPlan* into, const DatasetKeys& keys, const OpenedCatalog& catalog,
             nb::object function, bool changes_lengths, std::shared_ptr<training::ProcessPool> pool,
             std::uint32_t source) {
            new (into) DatasetPlan(plan_from(keys, catalog, std::move(function), changes_lengths,
                                             std::move(pool), source));
          },
          nb::arg("keys"), nb::arg("catalog"), nb::arg("function").none(),
          nb::arg("changes_lengths"), nb::arg("pool").none(), nb::arg("source"))
      .def_prop_ro("slots", &of_rank<&Plan::slots>)
      .def_prop_ro("rows", &of_rank<&Plan::most_rows>)
      .def_prop_ro("width", [](const DatasetPlan& made) { return made.plan->most_columns(); })
      .def_prop_ro("chunk", &chunk)
      .def_prop_ro("element",
                   [](const DatasetPlan& made) {
                     return name_of(made.keys.dtype.value_or(made.catalog->frame_type().element));
                   })
      .def("padding_warning", &padding_warning)
      .def_prop_ro("origin", [](const DatasetPlan& made) {
        return training::origin_of(*made.catalog, made.options);
      });
}

}  // namespace millrace::python
