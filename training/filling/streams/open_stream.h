// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/companion.h"
#include "base/result.h"
#include "training/contract/catalog.h"
#include "training/filling/streams/stream_function.h"

namespace millrace::training {

// A stream whose rows are being filled: its reader, or its content after the user's function.
// Confined to one thread, that of the CatalogReader.
class OpenStream {
 public:
  // Opens the stream, and calls the function, if there is one. The arguments must outlive it.
  static Result<OpenStream, ReadError> open(const Catalog& catalog, CatalogReader& reader,
                                            StreamFunction* function, const StreamCopy& stream);

  const StreamCopy& stream() const { return stream_; }

  // As FrameReader.
  Result<Bytes, ReadError> frames(std::uint64_t begin, std::uint64_t count);
  Result<Bytes, ReadError> entries(std::size_t companion, EntryRange range);
  // Reads what is before this frame and was not checked yet: frames must be finite, and entries
  // must be there. So a stream fails at the same frame, wherever it is opened, and in each process.
  Result<void, ReadError> check_until(std::uint64_t frame);
  // Reads what the row of these frames needs, so that it is at hand when the row is written. An
  // error comes again then.
  void read_ahead(std::uint64_t begin, std::uint64_t count);
  // The frames before this one are good.
  void set_good(std::uint64_t frame) { good_ = std::max(good_, frame); }
  std::uint64_t good() const { return good_; }
  // The memory that it keeps, in bytes, without mapped files.
  std::size_t memory() const;
  // The error if a value of these frames is infinite or NaN. `begin`: the position of the first
  // one.
  Result<void, ReadError> check_finite(Bytes frames, std::uint64_t begin) const;

 private:
  OpenStream(const Catalog& catalog, const StreamCopy& stream, std::unique_ptr<FrameReader> reader);

  Result<void, ReadError> change(StreamFunction& function);
  Result<void, ReadError> check(std::uint64_t begin, std::uint64_t count);

  const Catalog* catalog_;
  StreamCopy stream_;
  std::size_t frame_bytes_;
  std::unique_ptr<FrameReader> reader_;
  std::optional<StreamFunction::Content> content_;  // then there is no reader
  std::uint64_t good_ = 0;
};

}  // namespace millrace::training
