// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/companion.h"
#include "base/event.h"
#include "base/frame_type.h"
#include "base/result.h"

namespace millrace::training {

// An event of a stream other than `frames` and `end`. `frame` is the number of frames before it,
// without those that gaps skipped. An `abort` is the last event, and replaces `end`.
//
// Only recordings have an `open`, of a stream that was opened anew: the first event, or, between
// two of its parts, a later one. The latter replaces all rows of the part before from its position
// on, and its frames repeat those that this part has from there on.
struct InnerEvent {
  Event event;
  std::uint64_t frame = 0;
};

// Why a stream cannot be delivered. The names are labels of a metric.
enum class DataFault : std::uint8_t {
  read,      // the file is missing or damaged
  format,    // its values are not finite, or its format is another one
  length,    // it has another length than in the catalog
  function,  // a function of the user failed
};

// The reason as one line. It names the file, if there is one.
struct ReadError {
  DataFault fault = DataFault::read;
  std::string message;
};

// Reads one stream of a catalog. Positions are in frames without gaps, and in entries.
//
// Confined to the thread of its CatalogReader, which must outlive it. Spans are valid until the
// next call of the same function, and no longer than the reader.
class FrameReader {
 public:
  virtual ~FrameReader() = default;

  // The frames [begin, begin + count) in the catalog's frame type; in place if they lie in
  // memory. It need not check that values are finite: the loader does. It is fast if `begin` does
  // not decrease by more than a window. Requires: begin + count <= the length of the stream.
  virtual Result<Bytes, ReadError> frames(std::uint64_t begin, std::uint64_t count) = 0;

  // The place of the frames, for error messages: a path, perhaps with the stream in it. Empty
  // without a file.
  virtual std::string file() const { return {}; }

  // The entries of a companion, by its number. Requires: they are entries of the stream.
  virtual Result<Bytes, ReadError> entries(std::size_t, EntryRange) { return Bytes(); }

  // The memory that it keeps, in bytes, without mapped files. It grows only in the calls above.
  virtual std::size_t memory() const = 0;
};

// The view of a catalog that one thread has: it may keep files open. Confined to one thread.
class CatalogReader {
 public:
  virtual ~CatalogReader() = default;
  // Checks that the stream still has the length of the catalog, as far as that is known without
  // decoding it.
  virtual Result<std::unique_ptr<FrameReader>, ReadError> open(std::uint64_t stream) = 0;
};

// Streams at rest: their number, lengths, names, events and companions, and readers for their
// frames. Streams are numbered from 0. They do not change while the catalog is open.
//
// Immutable after construction, and thread-safe. Must outlive its readers.
class Catalog {
 public:
  virtual ~Catalog() = default;

  virtual const FrameType& frame_type() const = 0;
  // The number of streams, less than 2^32.
  virtual std::uint64_t size() const = 0;
  // Frames of the stream, without those that gaps skipped. O(1).
  virtual std::uint64_t frames(std::uint64_t stream) const = 0;
  virtual std::string name(std::uint64_t stream) const = 0;
  // A JSON object; empty if the stream has none.
  virtual std::string meta(std::uint64_t) const { return {}; }
  // Streams with equal units belong together: a split never separates them.
  virtual std::string unit(std::uint64_t stream) const { return name(stream); }
  // True if events() is not empty. O(1).
  virtual bool has_events(std::uint64_t) const { return false; }
  // A number for the rate and the channels from which the stream is converted; 0: it is not.
  virtual std::uint64_t converted_from(std::uint64_t) const { return 0; }
  virtual std::vector<InnerEvent> events(std::uint64_t) const { return {}; }
  // False if to read any stream is to copy its frames: none is decoded or converted. O(size()).
  virtual bool decodes() const { return true; }
  // A digest of all the above except decodes().
  virtual std::uint64_t digest() const = 0;
  // For a source to which streams are added: which of its streams the catalog has, for
  // CatalogSettings::extent. Empty for others.
  virtual std::string extent() const { return {}; }

  // Companions in the order of the batches' tensors.
  virtual std::span<const CompanionFormat> companions() const { return {}; }

  // Several catalogs that were joined: catalog k has the streams [begin of k, begin of k + 1).
  // Ends with size().
  virtual std::vector<std::uint64_t> parts() const { return {0, size()}; }

  virtual std::unique_ptr<CatalogReader> reader() const = 0;
};

}  // namespace millrace::training
