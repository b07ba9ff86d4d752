// SPDX-License-Identifier: Apache-2.0
// The messages of the ZeroMQ door, both ways: verify, then read every field. One that can be read
// is written and read again.
#include <array>
#include <variant>
#include <vector>

#include "schemas/client_codec.h"
#include "schemas/text.h"
#include "tests/fuzz/target.h"

namespace millrace {
namespace {

namespace cp = client_protocol;
using fuzz::require;

constexpr std::size_t max_size = 1 << 16;

struct Check {
  void operator()(const cp::Flush& flush) const {
    require(flush.mark.value_or(0) <= cp::max_number, "a mark is in its range");
  }
  void operator()(const cp::Gap& gap) const {
    require(gap.frames > 0 && gap.frames <= cp::max_number, "a gap is in its range");
  }
  void operator()(const cp::Result& result) const {
    require(result.begin <= result.end, "a row ends behind its begin");
  }
  void operator()(const cp::Ready& ready) const {
    require(is_name(ready.id) && is_name(ready.pipeline), "names are names");
  }
  void operator()(const auto&) const {}
};

std::vector<std::byte> written(const auto& any) {
  static cp::Encoder encoder;
  const Bytes bytes = std::visit([](const auto& one) { return encoder.encode(one); }, any);
  return {bytes.begin(), bytes.end()};
}

// Whether it is a message. Writing it reads each of its fields.
template <class Read>
bool check(Bytes message, Read read) {
  static cp::Decoder decoder(max_size), again(2 * max_size);
  const auto first = read(decoder, message);
  if (!first) return false;
  std::visit(Check(), *first);
  const auto once = written(*first);
  const auto second = read(again, Bytes(once));
  require(second.has_value(), "what is written can be read");
  require(written(*second) == once, "and is written the same");
  return true;
}

// Who can read it.
std::array<bool, 2> check(Bytes message) {
  const auto to_service = [](cp::Decoder& decoder, Bytes m) { return decoder.to_service(m); };
  const auto to_client = [](cp::Decoder& decoder, Bytes m) { return decoder.to_client(m); };
  return {check(message, to_service), check(message, to_client)};
}

}  // namespace
}  // namespace millrace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace;
  const Bytes message = fuzz::bytes_of(bytes, size);  // aligned, and with nothing behind it
  static std::vector<std::byte> odd;                  // nothing can be read where it begins
  odd.resize(size + 1);
  std::ranges::copy(message, odd.begin() + 1);
  require(check(message) == check(Bytes(odd).subspan(1)), "where a message lies changes nothing");
  return 0;
}
