// SPDX-License-Identifier: Apache-2.0
// The messages of clients over ZeroMQ, both ways. A valid message is encoded and decoded again.
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
  void operator()(const cp::Post&) const {}  // their texts are checked by their stream
  void operator()(const cp::SetOptions&) const {}
  void operator()(const cp::Received& received) const {
    require(received.n <= cp::max_number, "a number is in its range");
  }
  void operator()(const cp::Result& result) const {
    require(result.begin <= result.end, "a row ends behind its begin");
  }
  void operator()(const cp::Message& message) const {
    require(message.kind != Answer::Kind::none && message.kind != Answer::Kind::error,
            "a message of a worker has data");
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

// True if the message is valid. Encoding it reads each of its fields.
template <class Read>
bool check(Bytes message, Read read) {
  static cp::Decoder decoder(max_size), again(2 * max_size);
  const auto first = read(decoder, message);
  if (!first) return false;
  std::visit(Check(), *first);
  const auto once = written(*first);
  const auto second = read(again, Bytes(once));
  require(second.has_value(), "the written message can be read");
  require(written(*second) == once, "and is written the same");
  return true;
}

// True for each end, service and client, for which the message is valid.
std::array<bool, 2> check(Bytes message) {
  const auto to_service = [](cp::Decoder& decoder, Bytes m) { return decoder.to_service(m); };
  const auto to_client = [](cp::Decoder& decoder, Bytes m) { return decoder.to_client(m); };
  return {check(message, to_service), check(message, to_client)};
}

}  // namespace
}  // namespace millrace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace millrace;
  const Bytes message = fuzz::bytes_of(bytes, size);  // aligned; its allocation has its exact size
  static std::vector<std::byte> odd;                  // holds the message at an unaligned address
  odd.resize(size + 1);
  std::ranges::copy(message, odd.begin() + 1);
  require(check(message) == check(Bytes(odd).subspan(1)),
          "the result does not depend on the address");
  return 0;
}
