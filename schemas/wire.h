// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <exception>
#include <span>
#include <string_view>

#include "base/bytes.h"

// What every codec does with FlatBuffers. Included by the sources of schemas/ only.
namespace millrace::wire {

// Room for the deepest message there is and a good deal more; the library's own limits (64 deep,
// a million tables) let a small message take seconds to verify.
inline constexpr flatbuffers::uoffset_t max_depth = 16;
inline constexpr flatbuffers::uoffset_t max_tables = 1024;

// The root where `message`, which is aligned, is a verified FlatBuffer of type Root; else nullptr.
template <class Root>
const Root* verified(Bytes message, const char* identifier) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(message.data());
  flatbuffers::Verifier verifier(data, message.size(), max_depth, max_tables);
  if (!verifier.VerifyBuffer<Root>(identifier)) return nullptr;
  return flatbuffers::GetRoot<Root>(data);
}

// Whether structs can be read where the verifier found them: it checks the alignment of a vector's
// length, not of its elements. (The builder aligns no empty vector.)
template <class Struct>
bool is_aligned(const flatbuffers::Vector<const Struct*>& structs) {
  return structs.size() == 0 ||
         reinterpret_cast<std::uintptr_t>(structs.Data()) % alignof(Struct) == 0;
}

// Lives while a message is written. If an allocation fails, the builder believes that it got the
// memory, and would write the next message beyond its buffer: it is replaced.
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
