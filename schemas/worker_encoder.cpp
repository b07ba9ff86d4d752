// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string>

#include "base/message_room.h"
#include "schemas/wire.h"
#include "schemas/worker_codec.h"
#include "worker_generated.h"

namespace millrace::worker_protocol {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;
using ByteVector = flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>>;

template <class Table>
Bytes finish(Builder& builder, flatbuffers::Offset<Table> body) {
  wire::FinishWorkerMessageBuffer(
      builder,
      wire::CreateWorkerMessage(builder, wire::WorkerBodyTraits<Table>::enum_value, body.Union()));
  return wire::finished(builder);
}

// All texts in one vector of bytes, written without a temporary string.
template <class Texts, class Append>
ByteVector concatenated(Builder& builder, std::size_t size, const Texts& texts, Append append) {
  std::uint8_t* at = nullptr;
  const ByteVector vector = builder.CreateUninitializedVector(size, &at);
  const auto add = [&at](std::string_view text) {
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    at += text.size();
  };
  for (const auto& text : texts) append(text, add);
  return vector;
}

ByteVector encode_endpoints(Builder& builder, std::span<const Answer> answers) {
  if (std::ranges::none_of(answers, &Answer::endpoint)) return 0;
  std::uint8_t* endpoints = nullptr;
  const ByteVector vector = builder.CreateUninitializedVector(answers.size(), &endpoints);
  for (const Answer& answer : answers) *endpoints++ = answer.endpoint ? 1 : 0;
  return vector;
}

flatbuffers::Offset<wire::Answers> encode_answers(Builder& builder,
                                                  std::span<const Answer> answers) {
  if (answers.empty()) return 0;
  std::size_t size = 0;
  for (const Answer& answer : answers) size += answer.data.size();
  const auto text = concatenated(builder, size, answers,
                                 [](const Answer& answer, auto add) { add(answer.data); });
  std::uint8_t* kinds = nullptr;
  const ByteVector kinds_vector = builder.CreateUninitializedVector(answers.size(), &kinds);
  for (const Answer& answer : answers) *kinds++ = static_cast<std::uint8_t>(answer.kind);
  std::uint32_t* lengths = nullptr;
  const auto lengths_vector = builder.CreateUninitializedVector(answers.size(), &lengths);
  for (const Answer& answer : answers)
    *lengths++ = flatbuffers::EndianScalar(static_cast<std::uint32_t>(answer.data.size()));
  const ByteVector endpoints = encode_endpoints(builder, answers);
  return wire::CreateAnswers(builder, kinds_vector, lengths_vector, text, endpoints);
}

ByteVector encode_data(Builder& builder, const Answer& answer) {
  return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(answer.data.data()),
                              answer.data.size());
}

auto encode_rows(Builder& builder, const std::vector<RowEntry>& rows) {
  return builder.CreateVectorOfStructs<wire::RowEntry>(
      rows.size(), [&rows](std::size_t i, wire::RowEntry* out) {
        const RowEntry& row = rows[i];
        *out = wire::RowEntry(number(row.stream), row.seq, row.begin, row.gap, row.mark, row.slot,
                              row.left, row.size, row.right, row.flags, row.reason);
      });
}

auto encode_opened(Builder& builder, const std::vector<OpenedStream>& opened) {
  return builder.CreateVectorOfStructs<wire::OpenedStream>(
      opened.size(), [&opened](std::size_t i, wire::OpenedStream* out) {
        const OpenedStream& stream = opened[i];
        *out = wire::OpenedStream(number(stream.stream), stream.slot,
                                  static_cast<std::uint32_t>(stream.name.size()),
                                  static_cast<std::uint32_t>(stream.options.size()));
      });
}

// Absent in most batches: a stream has less room only if its earlier worker used some.
flatbuffers::Offset<flatbuffers::Vector<std::uint32_t>> encode_rooms(
    Builder& builder, const std::vector<OpenedStream>& opened) {
  const auto whole = [](const OpenedStream& stream) { return stream.room == stream_room; };
  if (std::ranges::all_of(opened, whole)) return 0;
  return builder.CreateVector<std::uint32_t>(opened.size(),
                                             [&opened](std::size_t i) { return opened[i].room; });
}

ByteVector encode_opened_text(Builder& builder, const std::vector<OpenedStream>& opened) {
  std::size_t size = 0;
  for (const OpenedStream& stream : opened) size += stream.name.size() + stream.options.size();
  return concatenated(builder, size, opened, [](const OpenedStream& stream, auto add) {
    add(stream.name);
    add(stream.options);
  });
}

// Absent in most batches.
auto encode_posts(Builder& builder, const std::vector<Post>& posts) {
  if (posts.empty()) return flatbuffers::Offset<flatbuffers::Vector<const wire::PostEntry*>>();
  return builder.CreateVectorOfStructs<wire::PostEntry>(
      posts.size(), [&posts](std::size_t i, wire::PostEntry* out) {
        const Post& post = posts[i];
        *out = wire::PostEntry(number(post.stream), post.seq, post.position,
                               static_cast<std::uint32_t>(post.data.size()), post.set);
      });
}

ByteVector encode_posts_text(Builder& builder, const std::vector<Post>& posts) {
  if (posts.empty()) return 0;
  std::size_t size = 0;
  for (const Post& post : posts) size += post.data.size();
  return concatenated(builder, size, posts, [](const Post& post, auto add) { add(post.data); });
}

ByteVector encode_handles(Builder& builder, std::span<const DeviceHandle> handles) {
  return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(handles.data()),
                              handles.size_bytes());
}

flatbuffers::Offset<wire::DeviceSlabs> encode_handles(Builder& builder,
                                                      const std::optional<DeviceHandles>& handles) {
  if (!handles) return 0;
  const auto memory = encode_handles(builder, {&handles->memory, 1});
  const auto copied = encode_handles(builder, handles->copied);
  const auto finished = encode_handles(builder, handles->finished);
  return wire::CreateDeviceSlabs(builder, memory, copied, finished);
}

flatbuffers::Offset<wire::Trainer> encode_trainer(Builder& builder,
                                                  const std::optional<TrainerHello>& trainer) {
  if (!trainer) return 0;
  return wire::CreateTrainer(builder, trainer->rank, trainer->world, trainer->epoch, trainer->step,
                             trainer->stride, trainer->resets, trainer->plan_only);
}

}  // namespace

Encoder::Encoder() : builder_(std::make_unique<Builder>()) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

Bytes Encoder::encode(const Hello& hello) {
  const wire::Writing writing(*builder_);
  const auto pipeline = builder_->CreateString(hello.pipeline);
  const auto name = builder_->CreateString(hello.name);
  const auto device = builder_->CreateString(hello.device);
  const auto trainer = encode_trainer(*builder_, hello.trainer);
  return finish(*builder_,
                wire::CreateHello(*builder_, hello.version, pipeline, name, hello.credits, device,
                                  hello.watch, hello.alone, trainer));
}

Bytes Encoder::encode(const Describe& describe) {
  const wire::Writing writing(*builder_);
  const auto pipeline = builder_->CreateString(describe.pipeline);
  const auto name = builder_->CreateString(describe.name);
  return finish(*builder_, wire::CreateDescribe(*builder_, describe.version, pipeline, name));
}

Bytes Encoder::encode(const Done& done) { return encode(done, done.answers, done.mark_answers); }

Bytes Encoder::encode(const Done& done, std::span<const Answer> answers,
                      std::span<const Answer> mark_answers) {
  const wire::Writing writing(*builder_);
  const auto rows = encode_answers(*builder_, answers);
  const auto marks = encode_answers(*builder_, mark_answers);
  return finish(*builder_, wire::CreateDone(*builder_, number(done.batch), to_wire(done.taken),
                                            to_wire(done.done), rows, marks));
}

Bytes Encoder::encode(const Heartbeat&) {
  const wire::Writing writing(*builder_);
  return finish(*builder_, wire::CreateHeartbeat(*builder_));
}

Bytes Encoder::encode(const Bye&) {
  const wire::Writing writing(*builder_);
  return finish(*builder_, wire::CreateBye(*builder_));
}

Bytes Encoder::encode(const Welcome& welcome) {
  const wire::Writing writing(*builder_);
  const auto chunk = builder_->CreateString(welcome.chunk);
  const auto device = encode_handles(*builder_, welcome.device);
  const auto width_buckets = builder_->CreateVector(welcome.width_buckets);
  flatbuffers::Offset<flatbuffers::Vector<std::uint32_t>> row_buckets = 0;
  if (!welcome.row_buckets.empty()) row_buckets = builder_->CreateVector(welcome.row_buckets);
  flatbuffers::Offset<flatbuffers::String> plan = 0;
  if (!welcome.plan.empty()) plan = builder_->CreateString(welcome.plan);
  wire::WelcomeBuilder table(*builder_);
  table.add_version(welcome.version);
  table.add_slots(welcome.slots);
  table.add_rows(welcome.rows);
  table.add_width(welcome.width);
  table.add_element(static_cast<std::uint8_t>(welcome.frames.element));
  table.add_values(welcome.frames.values);
  table.add_rate(welcome.frames.rate);
  table.add_features(welcome.frames.features);
  table.add_chunk(chunk);
  table.add_slabs(welcome.slabs);
  table.add_slab_bytes(welcome.slab_bytes);
  if (welcome.slab_element)
    table.add_slab_element(static_cast<std::uint8_t>(*welcome.slab_element));
  table.add_context(welcome.context);
  table.add_repeat(welcome.repeat);
  table.add_device(device);
  table.add_width_buckets(width_buckets);
  table.add_plan(plan);
  table.add_row_buckets(row_buckets);
  return finish(*builder_, table.Finish());
}

Bytes Encoder::encode(const HandedBatch& batch) { return encode(batch, batch.tensor); }

Bytes Encoder::encode(const HandedBatch& batch, Bytes values) {
  const wire::Writing writing(*builder_);
  // The builder writes from the end: the part that is read first is written last.
  ByteVector tensor = 0;
  if (!values.empty())
    tensor =
        builder_->CreateVector(reinterpret_cast<const std::uint8_t*>(values.data()), values.size());
  flatbuffers::Offset<flatbuffers::String> failed = 0;
  if (!batch.failed.empty()) failed = builder_->CreateString(batch.failed);
  const auto posts_text = encode_posts_text(*builder_, batch.posts);
  const auto posts = encode_posts(*builder_, batch.posts);
  const auto rooms = encode_rooms(*builder_, batch.opened);
  const auto opened_text = encode_opened_text(*builder_, batch.opened);
  const auto opened = encode_opened(*builder_, batch.opened);
  const auto marks = encode_rows(*builder_, batch.marks);
  const auto framed = encode_rows(*builder_, batch.framed);
  wire::BatchBuilder table(*builder_);
  table.add_id(number(batch.id));
  table.add_slab(batch.slab);
  table.add_rows(batch.rows);
  table.add_width(batch.width);
  table.add_trigger(batch.trigger);
  table.add_closed(to_wire(batch.closed));
  table.add_copied(to_wire(batch.copied));
  table.add_framed(framed);
  table.add_marks(marks);
  table.add_opened(opened);
  table.add_opened_text(opened_text);
  table.add_tensor(tensor);
  table.add_epoch(batch.epoch);
  table.add_step(batch.step);
  table.add_steps(batch.steps);
  table.add_body(batch.body);
  table.add_failed(failed);
  table.add_rooms(rooms);
  table.add_posts(posts);
  table.add_posts_text(posts_text);
  return finish(*builder_, table.Finish());
}

Bytes Encoder::encode(const Company& company) {
  const wire::Writing writing(*builder_);
  return finish(*builder_,
                wire::CreateCompany(*builder_, company.workers, company.moved, company.waiting));
}

Bytes Encoder::encode(const Unmapped&) {
  const wire::Writing writing(*builder_);
  return finish(*builder_, wire::CreateUnmapped(*builder_));
}

Bytes Encoder::encode(const Send& send) {
  const wire::Writing writing(*builder_);
  const auto bytes = encode_data(*builder_, send.message);
  return finish(*builder_, wire::CreateSend(*builder_, number(send.stream), send.seq,
                                            static_cast<std::uint8_t>(send.message.kind), bytes));
}

Bytes Encoder::encode(const LateAnswer& late) {
  const wire::Writing writing(*builder_);
  const auto bytes = encode_data(*builder_, late.answer);
  return finish(*builder_, wire::CreateLateAnswer(*builder_, number(late.stream), late.seq,
                                                  static_cast<std::uint8_t>(late.answer.kind),
                                                  bytes, late.answer.endpoint));
}

Bytes Encoder::encode(const Room& room) {
  const wire::Writing writing(*builder_);
  return finish(*builder_, wire::CreateRoom(*builder_, number(room.stream), room.bytes));
}

Bytes Encoder::encode(const Refused& refused) {
  const wire::Writing writing(*builder_);
  const auto code = builder_->CreateString(refused.code);
  const auto message = builder_->CreateString(refused.message);
  flatbuffers::Offset<flatbuffers::String> details = 0;
  if (!refused.details.empty()) details = builder_->CreateString(refused.details);
  return finish(*builder_, wire::CreateRefused(*builder_, code, message, details));
}

}  // namespace millrace::worker_protocol
