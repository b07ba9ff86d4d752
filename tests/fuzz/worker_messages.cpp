// SPDX-License-Identifier: Apache-2.0
// The binary messages of a worker and to a worker. A valid message is encoded and decoded again.
#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "schemas/text.h"
#include "schemas/worker_codec.h"
#include "tests/fuzz/target.h"

namespace millrace {
namespace {

namespace wp = worker_protocol;
using fuzz::require;

constexpr std::size_t max_size = 1 << 16;

// A copy of an encoded message: the encoder reuses its memory.
std::vector<std::byte> copy_of(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

bool same(Bytes a, Bytes b) { return std::ranges::equal(a, b); }

void check_answers(const std::vector<Answer>& answers) {
  for (const Answer& answer : answers) {
    require(answer.kind != Answer::Kind::json || is_json(answer.data), "JSON is JSON");
    require(answer.kind != Answer::Kind::text || is_utf8(answer.data), "text is UTF-8");
  }
}

void check_rows(const std::vector<wp::RowEntry>& rows, std::uint32_t width) {
  for (const wp::RowEntry& row : rows) {
    require(std::uint64_t{row.left} + row.size + row.right <= width, "a window fits");
    require(row.left <= row.begin, "nothing lies before the stream");
  }
}

struct Check {
  void operator()(const wp::Done& done) const {
    check_answers(done.answers);
    check_answers(done.mark_answers);
  }
  void operator()(const wp::Send& send) const {
    check_answers({send.message});
    require(send.message.kind != Answer::Kind::none && send.message.kind != Answer::Kind::error,
            "a message has data");
    require(send.message.data.size() <= longest_message, "a message fits into the room");
  }
  void operator()(const wp::LateAnswer& late) const {
    check_answers({late.answer});
    require(late.answer.kind != Answer::Kind::pending, "a late answer is an answer");
  }
  void operator()(const wp::Room& room) const {
    require(room.bytes <= stream_room, "room is at most that of a stream");
  }
  void operator()(const wp::HandedBatch& batch) const {
    check_rows(batch.framed, batch.width);
    check_rows(batch.marks, batch.width);
    require(batch.framed.size() <= batch.rows, "rows fit into the tensor");
    const bool plan = batch.steps > 0;
    require(!plan || batch.step < batch.steps, "a step is in its epoch");
    require(plan ? batch.body > 0 : batch.body == 0, "batches of a plan have bodies");
    require(batch.body <= batch.width, "a body fits");
    for (const wp::OpenedStream& stream : batch.opened)
      require(
          (plan ? !stream.name.empty() : is_stream_name(stream.name)) && stream.room <= stream_room,
          "a stream has a name, and at most the whole room");
    for (const wp::Post& post : batch.posts)
      require(post.set ? is_json_object(post.data) : is_json(post.data), "a message is JSON");
  }
  void operator()(const wp::Welcome& welcome) const {
    const auto& widths = welcome.width_buckets;
    require(!widths.empty() && widths.back() == welcome.width, "the last width is the widest");
    require(std::ranges::adjacent_find(widths, std::greater_equal()) == widths.end(),
            "widths ascend");
    require(welcome.plan.empty() || is_json_object(welcome.plan), "a plan is an object");
  }
  void operator()(const wp::Hello& hello) const {
    if (!hello.trainer) return;
    require(hello.trainer->rank < hello.trainer->world, "a rank is in its world");
    require(hello.trainer->stride > 0, "a trainer moves on");
  }
  void operator()(const auto&) const {}
};

// One end of a connection: decodes messages, and encodes the decoded ones.
class End {
 public:
  // True if the message is valid.
  template <class Read>
  bool check(Bytes message, Read read) {
    auto first = read(decoder_, message);
    if (!first) return false;
    std::visit(Check(), *first);
    const auto written = copy_of(write(*first));
    auto second = read(again_, written);
    require(second.has_value(), "the written message can be read");
    require(same(write(*second), written), "and is written the same");
    recycle(*first, decoder_);
    recycle(*second, again_);
    return true;
  }

 private:
  Bytes write(const auto& any) {
    return std::visit([this](const auto& message) { return encoder_.encode(message); }, any);
  }
  static void recycle(wp::ToService& message, wp::Decoder& decoder) {
    if (auto* done = std::get_if<wp::Done>(&message)) decoder.reuse(std::move(*done));
  }
  static void recycle(wp::ToWorker& message, wp::Decoder& decoder) {
    if (auto* batch = std::get_if<wp::HandedBatch>(&message)) decoder.reuse(std::move(*batch));
  }

  wp::Encoder encoder_;
  wp::Decoder decoder_{max_size}, again_{max_size};
};

// True for each end, service and worker, for which the message is valid.
std::array<bool, 2> check(Bytes message) {
  static End service, worker;
  const auto to_service = [](wp::Decoder& decoder, Bytes m) { return decoder.to_service(m); };
  const auto to_worker = [](wp::Decoder& decoder, Bytes m) { return decoder.to_worker(m); };
  return {service.check(message, to_service), worker.check(message, to_worker)};
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
