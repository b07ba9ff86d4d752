// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/enum_names.h"
#include "base/result.h"
#include "base/row_columns.h"
#include "chunker/body_size.h"

namespace millrace {

// The most frames of a window: the control arrays count them in int32.
inline constexpr std::uint32_t max_window = 0x7fff'ffff;

// An error in a rule: the message names the key, the value and the allowed values.
struct SpecError {
  std::string key;
  std::string message;
};

// How a stream is cut into chunks. All lengths in frames.
struct Spec {
  // The bodies that the end of a segment yields.
  enum class Tail : std::uint8_t {
    every_start,  // every body that starts inside the segment, cut at its end
    cover,        // the same, until every frame has been in a body
    drop,         // whole bodies only
  };

  std::uint32_t size = 0;   // body
  std::uint32_t step = 0;   // advance of the body's begin; 0: bodies lie end to end
  std::uint32_t first = 0;  // body of the first chunk of a run; 0: size
  std::uint32_t left = 0;   // context before the body
  std::uint32_t right = 0;  // look-ahead after the body
  Tail tail = Tail::every_start;
  // A cut body at the tail that is shorter is left out, except the first body of a segment.
  std::uint32_t min = 0;

  // The same if the stream's bodies now have `body` frames (Event::Kind::size).
  std::uint32_t first_body(std::uint32_t body) const { return first > 0 ? first : body; }
  std::uint32_t step_of(std::uint32_t body) const { return step > 0 ? step : body; }
  // The distance from the start of a body to the start of the next one in its segment.
  std::uint64_t advance(bool first_of_run, std::uint32_t body) const {
    return std::uint64_t{step_of(body)} + (first_of_run ? first_body(body) : body) - body;
  }

  // The columns of a row: the widest window that the spec can give.
  std::uint32_t width() const { return left + (first > size ? first : size) + right; }

  // Returns an error unless size >= 1, first + step > size, and width() <= max_window.
  Result<void, SpecError> check() const;
  // Returns an error unless a size event may give bodies of `body` frames: step is 0, body >= 1,
  // and the window is at most max_window.
  Result<void, SpecError> check_size(std::uint64_t body) const;
  bool operator==(const Spec&) const = default;
};

// Where a window lies in its row of `width` columns, and what fills the columns around it.
enum class Align : std::uint8_t {
  body,    // the body always begins at column Spec::left
  packed,  // the window begins at column 0
};
enum class Pad : std::uint8_t {
  zero,
  repeat,  // the window's first frame before it, its last frame after it
};

// The chunk rule of a pipeline: how its streams are cut, and how windows are placed in rows.
//
// With sizes, bodies lie end to end, and the first body of a run differs from the others by the
// same number of frames for every size: that by which spec.first differs from spec.size. The stream
// creates a size event for each change, so its chunker gets chunker_spec(), without `first`.
struct ChunkRule {
  Spec spec;
  Align align = Align::body;
  Pad pad = Pad::zero;
  SizeRule sizes{};

  // The spec of a chunker whose stream creates the size events of this rule.
  Spec chunker_spec() const;
  // The frames by which the first body of a run is longer than the others.
  std::int64_t first_longer() const {
    return spec.first > 0 ? std::int64_t{spec.first} - spec.size : 0;
  }
  // The first body of a run, if the other bodies have `size` frames.
  std::uint32_t first_body(std::uint32_t size) const;
  // True if a `size` event of a stream with this rule may give bodies of `body` frames: one of the
  // sizes or its first body; without sizes, at most as many as fit into width().
  bool allows_body(std::uint64_t body) const;
  // The columns that the widest row needs if bodies have `size` frames; by default for any of the
  // sizes.
  std::uint32_t width_of(std::uint32_t size) const;
  std::uint32_t width() const {
    return width_of(sizes.sizes.empty() ? spec.size : sizes.sizes.largest());
  }
  // The shortest advance from one body to the next: bounds the rows that an end can yield.
  std::uint32_t shortest_step() const;

  RowColumns columns() const { return {align == Align::body ? spec.left : 0}; }
  bool operator==(const ChunkRule&) const = default;
};

// Calls visit(name, member) for each key of a rule except `preset`, in the order of the documents.
// Lengths are std::uint32_t, `sizes` is a SizeList, `seed` a std::uint64_t, the others
// enumerations. Every reader and printer of rules uses this list.
template <class Rule, class Visit>
void for_each_key(Rule& rule, Visit visit) {
  visit("size", rule.spec.size);
  visit("step", rule.spec.step);
  visit("first", rule.spec.first);
  visit("left", rule.spec.left);
  visit("right", rule.spec.right);
  visit("min", rule.spec.min);
  visit("tail", rule.spec.tail);
  visit("align", rule.align);
  visit("pad", rule.pad);
  visit("rule", rule.sizes.by);
  visit("sizes", rule.sizes.sizes);
  visit("seed", rule.sizes.seed);
  visit("per", rule.sizes.per);
}

// True if the key may be set beside the others of this rule: not `sizes` if bodies have one size,
// and `seed` only if sizes are drawn.
bool has_key(const ChunkRule& rule, std::string_view key);

// The names of all keys; `preset` is the last.
std::vector<std::string_view> rule_keys();
// The keys, for the help of commands.
inline constexpr const char* rule_help =
    "Chunk rule: size, step, first, left, right, min (frames or a time), tail, align, pad, sizes "
    "(80ms+160ms, or 40ms..1s/40ms), rule, seed, per";

// Keys and values as in the configuration and on the command line. A length is in frames
// ("1600") or a time that is whole frames at the stream's rate ("100ms", "0.1s"). A preset
// (chunker/presets.h) excludes every key but align and pad. `sizes` has the text of
// chunker/sizes_text.h.
using RuleKeys = std::vector<std::pair<std::string, std::string>>;

// Splits text like "size=1600,left=64". The error is a sentence without the name of the option.
Result<RuleKeys, std::string> split_rule_keys(const std::string& text);

// The stream that a rule is for.
struct RuleTarget {
  double rate = 16000;    // frames per second
  bool features = false;  // frames are feature vectors
};

Result<ChunkRule, SpecError> parse_rule(const RuleKeys& keys, const RuleTarget& target);

}  // namespace millrace
