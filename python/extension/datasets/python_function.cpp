// SPDX-License-Identifier: Apache-2.0
#include "python/extension/datasets/python_function.h"

#include <nanobind/ndarray.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "python/extension/datasets/array_types.h"
#include "python/extension/datasets/ensured_gil.h"
#include "python/extension/datasets/python_failure.h"
#include "python/extension/text.h"

namespace millrace::python {
namespace {

namespace nb = nanobind;
using training::DataFault;
using training::ReadError;
using training::StreamCopy;

// An array [items, values] of Python that owns the bytes.
nb::object array_of(std::vector<std::byte> bytes, std::size_t values, nb::dlpack::dtype type) {
  auto owned = std::make_unique<std::vector<std::byte>>(std::move(bytes));
  const std::size_t item = values * type.bits / 8;
  const std::size_t shape[] = {owned->size() / item, values};
  void* const begin = owned->data();
  const auto free = [](void* memory) noexcept {
    delete static_cast<std::vector<std::byte>*>(memory);
  };
  const nb::capsule owner(owned.get(), free);
  owned.release();
  return nb::cast(nb::ndarray<nb::numpy>(begin, 2, shape, owner, nullptr, type));
}

std::vector<std::byte> frames_in(nb::handle array) {
  const ArrayBytes bytes(array);
  return {bytes.get().begin(), bytes.get().end()};
}

}  // namespace

PythonFunction::PythonFunction(std::shared_ptr<const training::Catalog> catalog,
                               nb::object function)
    : catalog_(std::move(catalog)), function_(std::move(function)) {}

Result<void, ReadError> PythonFunction::change(const StreamCopy& stream, Content& content) {
  const FrameType& type = catalog_->frame_type();
  const auto formats = catalog_->companions();
  const EnsuredGil held;
  try {
    nb::list companions;
    for (std::size_t i = 0; i < formats.size(); ++i)
      companions.append(array_of(std::move(content.companions[i]), formats[i].values,
                                 dtype_of(formats[i].element)));
    const nb::object frames =
        array_of(std::move(content.frames), type.values, dtype_of(type.element));
    const nb::object changed = called([&] {
      return function_.get().attr("change")(
          stream.epoch, stream.stream, stream.copy, text_of(catalog_->name(stream.stream)),
          text_of(catalog_->meta(stream.stream)), frames, companions);
    });
    content.frames = frames_in(changed[0]);
    for (std::size_t i = 0; i < formats.size(); ++i)
      content.companions[i] = frames_in(changed[1][i]);
    return {};
  } catch (nb::python_error& error) {
    return failure_of(error, DataFault::function, "augment");
  }
}

std::uint64_t PythonFunction::frames(const StreamCopy& stream, std::uint64_t frames) {
  const EnsuredGil held;
  try {
    return nb::cast<std::uint64_t>(called([&] {
      return function_.get().attr("frames")(stream.epoch, stream.copy,
                                            text_of(catalog_->name(stream.stream)), frames);
    }));
  } catch (nb::python_error& error) {
    throw training::LengthFailure(failure_of(error, DataFault::function, "augment.frames").message,
                                  stream.epoch, stream.stream, catalog_->name(stream.stream));
  }
}

}  // namespace millrace::python
