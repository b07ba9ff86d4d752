// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/deepgram/conversation.h"

#include <algorithm>
#include <utility>

#include "chunker/row.h"
#include "schemas/client_command.h"
#include "schemas/json_text.h"
#include "schemas/text.h"

namespace millrace {
namespace {

constexpr std::uint64_t finalize_mark = 1;

}  // namespace

DeepgramConversation::DeepgramConversation(SessionScope& scope, ClientIdentity client,
                                           const ListenSettings::Reports& reports,
                                           std::string request_id)
    : Conversation(scope, std::move(client)),
      reports_(reports),
      request_id_(std::move(request_id)) {
  follows_rows_ = true;
}

void DeepgramConversation::received(const Connection::Message& message) {
  message.kind == Connection::Kind::text ? take_text(message.text(), message.arrived)
                                         : take_audio(message.bytes, message.arrived);
}

void DeepgramConversation::take_audio(Bytes audio, Time arrived) {
  if (audio.empty()) return end(arrived);
  if (ended_) return rejected(ErrorCode::unknown_stream, "the stream has ended", 0);
  TransportStats& stats = queue().scope().stats();
  stats.messages[MessageType::data].add();
  stats.message.observe(static_cast<std::int64_t>(audio.size()));
  pieces_.begin(*stream(), audio, arrived);
}

void DeepgramConversation::proceed() { is_open() ? pieces_.proceed(*stream()) : pieces_.clear(); }

void DeepgramConversation::take_text(std::string_view text, Time arrived) {
  TransportStats& stats = queue().scope().stats();
  const Time begin = Clock::now();
  const bool is_valid = is_json_object(text, client_message::deepest_data);
  stats.parse.observe(Clock::now() - begin);
  if (!is_valid) return reject("must be a JSON object; audio must be a binary message");
  const std::string type = string_in(member_text(text, "type"));
  if (type == "CloseStream") return end(arrived);
  const bool finalizes = type == "Finalize";
  if (!finalizes && type != "KeepAlive")
    return reject("type must be KeepAlive, Finalize or CloseStream");
  stats.messages[MessageType::control].add();
  if (!finalizes) return;
  if (ended_) return rejected(ErrorCode::unknown_stream, "the stream has ended", 0);
  stream()->flush(finalize_mark, arrived);
}

void DeepgramConversation::end(Time arrived) {
  queue().scope().stats().messages[MessageType::close].add();
  if (!std::exchange(ended_, true)) stream()->end(arrived);
}

void DeepgramConversation::ready(const StreamReady& ready) {
  append_string(metadata_ = R"({"request_id":)", request_id_);
  append_string(metadata_ += R"(,"model_info":{"name":)", ready.pipeline);
  metadata_ += R"(,"version":"","arch":""},"model_uuid":"00000000-0000-0000-0000-000000000000"})";
}

void DeepgramConversation::result(const ResultHead& head, const Answer& answer) {
  Ended* ended = segments_.of(head.seq, [this](Ended& before) { finish(before); });
  const bool is_last = ended && ended->at.seq == head.seq;
  Segment& segment = ended ? ended->segment : segments_.current();
  const double begin = static_cast<double>(head.begin) / head.rate;
  // The text of a worker that was lost is not in the next one.
  const bool anew = (head.flags & flag::reset) != 0 && !segment.latest.text.empty();
  if (anew) send_results(segment, {.is_final = true});
  if (auto transcript = transcript_of(answer, is_last)) {
    if ((head.flags & flag::segment) != 0) segment.begin = begin;
    segment.end = static_cast<double>(head.end) / head.rate;
    segment.latest = std::move(*transcript);
    if (!segment.speech && !segment.latest.text.empty()) segment.speech = begin;
    report_speech(segment);
    const bool is_final = segment.latest.final;
    if (!is_last && (is_final || reports_.interim_results))
      send_results(segment, {.is_final = is_final});
  }
  if (is_last) {
    Ended last = std::move(*ended);
    segments_.pop();
    finish(last);
  }
  queue().add_result();
}

void DeepgramConversation::speech_began(double seconds) {
  Segment& segment = segments_.current();
  if (!segment.speech) segment.speech = seconds;
  if (segments_.all_finished()) report_speech(segment);
}

void DeepgramConversation::segment_ended(const SegmentEnd& end) {
  duration_ = static_cast<double>(end.position) / end.rate;
  segments_.end(end, {.begin = duration_, .end = duration_});
}

void DeepgramConversation::settled(std::uint64_t frames) {
  segments_.settled(frames, [this](Ended& ended) { finish(ended); });
}

void DeepgramConversation::rejected(ErrorCode code, std::string_view message,
                                    std::uint64_t frames) {
  if (const auto fault = fault_of(code, frames)) queue().scope().stats().rejected[*fault].add();
  send_error("DataError", name_of(code), message);
}

void DeepgramConversation::reject(std::string_view message) {
  queue().scope().stats().rejected[MessageFault::schema].add();
  send_error("SchemaError", name_of(ErrorCode::schema), message);
}

void DeepgramConversation::error(ErrorCode code, std::string_view message) {
  const bool is_idle = code == ErrorCode::idle;
  const bool is_bad = code == ErrorCode::values || code == ErrorCode::format;
  send_error(is_idle ? "NetError" : is_bad ? "DataError" : "ServerError", name_of(code), message);
  if (is_idle) return queue().close(code, 1011, "NET-0001");
  if (is_bad) return queue().close(code, 1008, "DATA-0000");
  queue().close(code);
}

void DeepgramConversation::closed(std::uint64_t, std::uint64_t, bool drained) {
  segments_.finish_all([this](Ended& ended) { finish(ended); });
  send([&](std::string& out) {
    append_string(out += R"({"type":"Metadata","transaction_key":"deprecated","request_id":)",
                  request_id_);
    out.append(R"(,"sha256":")").append(64, '0');
    out += R"(","created":"1970-01-01T00:00:00.000Z","duration":)";
    append_seconds(out, duration_);
    out += R"(,"channels":1,"models":[],"model_info":{}})";
  });
  queue().close(drained);
}

void DeepgramConversation::report_speech(Segment& segment) {
  if (segment.speech && !std::exchange(segment.is_reported, true) && reports_.speech_starts)
    send_event(R"("SpeechStarted","channel":[0,1],"timestamp":)", *segment.speech);
}

// After a final text, the next part of the segment begins.
void DeepgramConversation::send_results(Segment& segment, ResultsHead head) {
  report_speech(segment);
  head.start = segment.begin;
  head.end = segment.end;
  send([&](std::string& out) { append_results(out, head, segment.latest, metadata_); });
  if (!head.is_final) return;
  const auto& [text, stable, final, words] = segment.latest;
  if (!text.empty()) segment.last_word_end = words.empty() ? segment.end : words.back().end;
  segment.latest = {};
  segment.begin = segment.end;
}

void DeepgramConversation::finish(Ended& ended) {
  auto& [segment, at] = ended;
  segment.end = std::max(segment.end, static_cast<double>(at.position) / at.rate);
  const bool by_client = at.mark.has_value();
  const bool has_more = segment.speech || segment.last_word_end || !segment.latest.text.empty();
  if (by_client || has_more)
    send_results(segment,
                 {.is_final = true, .speech_final = at.by_endpoint, .from_finalize = by_client});
  if (at.by_endpoint && segment.last_word_end && reports_.utterance_ends)
    send_event(R"("UtteranceEnd","channel":[0,1],"last_word_end":)", *segment.last_word_end);
  if (segments_.all_finished()) report_speech(segments_.current());
}

template <class Append>
void DeepgramConversation::send(Append append) {
  if (queue().closing()) return;
  append(queue().bytes());
  queue().commit(Connection::Kind::text);
}

void DeepgramConversation::send_event(std::string_view members, double seconds) {
  send([&](std::string& out) {
    append_seconds(out.append(R"({"type":)").append(members), seconds);
    out += '}';
  });
}

void DeepgramConversation::send_error(std::string_view variant, std::string_view code,
                                      std::string_view message) {
  send([&](std::string& out) {
    out.append(R"({"type":"Error","variant":")").append(variant);
    out.append(R"(","code":")").append(code);
    append_string(out += R"(","description":)", message);
    append_string(out += R"(,"message":)", message);
    out += '}';
  });
}

}  // namespace millrace
