// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <exception>
#include <span>
#include <string_view>

#include "base/bytes.h"

// FlatBuffers helpers that the codecs share. Included only by the sources of schemas/.
namespace millrace::wire {

// Well above the deepest message of the schemas. With the library's own limits (64 deep, a million
// tables), a small message can take seconds to verify.
inline constexpr flatbuffers::uoffset_t max_depth = 16;
inline constexpr flatbuffers::uoffset_t max_tables = 1024;

// The root of `message` if it is a valid FlatBuffer of type Root, otherwise nullptr. Requires:
// `message` is aligned (AlignedMessage).
template <class Root>
const Root* verified(Bytes message, const char* identifier) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(message.data());
  flatbuffers::Verifier verifier(data, message.size(), max_depth, max_tables);
  if (!verifier.VerifyBuffer<Root>(identifier)) return nullptr;
  return flatbuffers::GetRoot<Root>(data);
}

// True if the structs of a verified vector are aligned: the verifier checks the alignment of the
// vector's length, not of its elements. (The builder does not align an empty vector.)
template <class Struct>
bool is_aligned(const flatbuffers::Vector<const Struct*>& structs) {
  return structs.size() == 0 ||
         reinterpret_cast<std::uintptr_t>(structs.Data()) % alignof(Struct) == 0;
}

// Clears the builder, and exists while a message is written. If an exception is thrown meanwhile,
// the destructor replaces the builder: after a failed allocation it would treat the memory as
// allocated, and write the next message beyond its buffer.
class Writing {
 public:
  explicit Writing(flatbuffers::FlatBufferBuilder& builder) : builder_(builder) { builder.Clear(); }
  ~Writing() {
    if (std::uncaught_exceptions() > exceptions_) builder_ = flatbuffers::FlatBufferBuilder();
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  flatbuffers::FlatBufferBuilder& builder_;
  const int exceptions_ = std::uncaught_exceptions();
};

inline Bytes finished(const flatbuffers::FlatBufferBuilder& builder) {
  return std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
}

inline std::string_view view(const flatbuffers::String* text) {
  return text ? std::string_view(text->c_str(), text->size()) : std::string_view();
}

inline std::string_view text_of(const flatbuffers::Vector<std::uint8_t>* bytes) {
  return bytes ? std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size())
               : std::string_view();
}

inline Bytes bytes_of(const flatbuffers::Vector<std::uint8_t>* bytes) {
  return bytes ? std::as_bytes(std::span(bytes->data(), bytes->size())) : Bytes();
}

}  // namespace millrace::wire
