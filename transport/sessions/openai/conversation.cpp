// SPDX-License-Identifier: Apache-2.0
#include "transport/sessions/openai/conversation.h"

#include <array>
#include <cmath>
#include <utility>

#include "schemas/client_command.h"
#include "schemas/json_text.h"
#include "schemas/text.h"
#include "transport/base64/base64.h"

namespace millrace {
namespace {

constexpr std::size_t longest_event_id = 512;  // bytes; a longer one is not repeated in an error

std::uint64_t ms_of(double seconds) {
  return static_cast<std::uint64_t>(std::llround(1000 * seconds));
}

// The type of each event of an utterance, and its own members.
struct EventType {
  std::string_view type;
  void (*append)(std::string& out, const Utterance& utterance, std::string_view text);
};
void nothing(std::string&, const Utterance&, std::string_view) {}
constexpr std::array<EventType, 7> events{
    {{"input_audio_buffer.speech_started",
      [](std::string& out, const Utterance& utterance, std::string_view) {
        append_number(out += R"(,"audio_start_ms":)", ms_of(*utterance.spoken));
      }},
     {"input_audio_buffer.speech_stopped",
      [](std::string& out, const Utterance& utterance, std::string_view) {
        append_number(out += R"(,"audio_end_ms":)", ms_of(utterance.end));
      }},
     {"input_audio_buffer.committed", nothing},
     {"input_audio_buffer.cleared", nothing},
     {"conversation.item.input_audio_transcription.delta",
      [](std::string& out, const Utterance&, std::string_view text) {
        append_string(out += R"(,"content_index":0,"delta":)", text);
      }},
     {"conversation.item.input_audio_transcription.completed",
      [](std::string& out, const Utterance& utterance, std::string_view) {
        append_string(out += R"(,"content_index":0,"transcript":)", utterance.text.text());
        append_number(out += R"(,"usage":{"type":"duration","seconds":)",
                      utterance.end - utterance.begin);
        out += '}';
      }},
     {"conversation.item.input_audio_transcription.failed",
      [](std::string& out, const Utterance&, std::string_view) {
        out += R"(,"content_index":0,"error":{"type":"server_error","code":"worker_failed",)"
               R"("message":"the worker gave no transcript","param":null})";
      }}}};

}  // namespace

OpenAiConversation::OpenAiConversation(SessionScope& scope, ClientIdentity client,
                                       StreamAdmission& admission, SessionSettings settings)
    : Conversation(scope, std::move(client)),
      admission_(admission),
      id_(scope.new_id()),
      settings_(std::move(settings)) {
  follows_rows_ = true;
  send_session("session.created");
}

std::chrono::milliseconds OpenAiConversation::longest_wait() const {
  return queue().scope().limits().pooled;
}

bool OpenAiConversation::outlives_silence(Time now) {
  if (is_open()) end_stream(now);
  return true;
}

void OpenAiConversation::received(const Connection::Message& message) {
  handle(message);
  event_id_.clear();
}

void OpenAiConversation::handle(const Connection::Message& message) {
  TransportStats& stats = queue().scope().stats();
  if (message.kind != Connection::Kind::text)
    return reject("", "messages must be text: send audio with input_audio_buffer.append");
  const std::string_view text = message.text();
  const Time begin = Clock::now();
  const bool is_valid = is_json_object(text, client_message::deepest_data);
  stats.parse.observe(Clock::now() - begin);
  if (!is_valid) return reject("", "must be a JSON object");
  const std::string_view id = member_text(text, "event_id");
  if (id.starts_with('"') && id.size() <= longest_event_id) event_id_ = id;
  const std::string type = string_in(member_text(text, "type"));
  const bool is_audio = type == "input_audio_buffer.append";
  stats.message.observe(static_cast<std::int64_t>(text.size()));
  stats.messages[is_audio ? MessageType::data : MessageType::control].add();
  if (is_audio) return append(text, message.arrived);
  if (type == "session.update") return update(text, message.arrived);
  if (type == "input_audio_buffer.commit") {
    if (!is_open()) return utterances_.commit_nothing();
    return stream()->flush(Utterances::commit_mark, message.arrived);
  }
  if (type == "input_audio_buffer.clear") {
    if (!is_open()) return utterances_.clear_nothing();
    stream()->flush(Utterances::clear_mark, message.arrived);
    return stream()->reset(message.arrived);
  }
  reject("type", "must be session.update or input_audio_buffer.append, .commit or .clear");
}

void OpenAiConversation::append(std::string_view text, Time arrived) {
  std::string_view audio = member_text(text, "audio");
  if (!audio.starts_with('"')) return reject("audio", "must be a string");
  std::string unescaped;
  if (audio.find('\\') == audio.npos)
    audio = audio.substr(1, audio.size() - 2);
  else
    audio = unescaped = string_value(audio);
  const auto bytes = decode_base64(audio, queue().scope().scratch());
  if (!bytes) return reject("audio", "must be base64");
  if (!bytes->empty() && opens_stream()) pieces_.begin(*stream(), *bytes, arrived);
}

void OpenAiConversation::proceed() { is_open() ? pieces_.proceed(*stream()) : pieces_.clear(); }

// A client that is refused for lack of room receives only the close, so that it tries again: an
// error would end the streams of some clients for good.
bool OpenAiConversation::opens_stream() {
  if (is_open()) return true;
  utterances_.open(settings_.detects_voice());
  const auto refused = open(admission_, settings_.request());
  if (!refused) return true;
  const ErrorCode code = code_of(*refused);
  if (refused->status != 503) send_error("invalid_request_error", name_of(code), refused->message);
  queue().close(code);
  return false;
}

void OpenAiConversation::update(std::string_view text, Time now) {
  const SessionSettings before = settings_;
  auto wrong = settings_.update(member_text(text, "session"));
  if (!wrong)
    if (const auto refused = settings_.settle(admission_, client()))
      wrong = SessionSettings::fault_of(*refused);
  if (wrong) {
    settings_ = before;
    return reject(wrong->parameter, wrong->message);
  }
  send_session("session.updated");
  if (!is_open()) return;
  const StreamRequest was = before.request(), is = settings_.request();
  if (!settings_.continues(before)) return end_stream(now);
  if (was.options != is.options) stream()->set(is.options, now);
}

void OpenAiConversation::result(const ResultHead& head, const Answer& answer) {
  utterances_.result(head, answer);
  queue().add_result();
}

// A half sample at an end that the client did not ask for is no fault of a message.
void OpenAiConversation::rejected(ErrorCode code, std::string_view message, std::uint64_t frames) {
  if (is_ending()) return;
  if (const auto fault = fault_of(code, frames)) queue().scope().stats().rejected[*fault].add();
  send_error("invalid_request_error", name_of(code), message);
}

void OpenAiConversation::reject(std::string_view parameter, std::string_view message) {
  queue().scope().stats().rejected[MessageFault::schema].add();
  send_error("invalid_request_error", "invalid_value", message, parameter);
}

void OpenAiConversation::error(ErrorCode code, std::string_view message) {
  send_error("server_error", name_of(code), message);
  queue().close(code);
}

void OpenAiConversation::closed(std::uint64_t, std::uint64_t, bool drained) {
  utterances_.close();
  drained ? queue().close(true) : stream_is_over();
}

template <class Append>
void OpenAiConversation::send(std::string_view type, Append append) {
  if (queue().closing()) return;
  std::string& out = queue().bytes();
  out.append(R"({"type":")").append(type).append(R"(","event_id":"event_)").append(id_) += '_';
  append_number(out, ++events_);
  out += '"';
  append(out);
  out += '}';
  queue().commit(Connection::Kind::text);
}

void OpenAiConversation::send_session(std::string_view type) {
  send(type, [&](std::string& out) { settings_.append(out += R"(,"session":)", "sess_" + id_); });
}

void OpenAiConversation::send_error(std::string_view type, std::string_view code,
                                    std::string_view message, std::string_view parameter) {
  send("error", [&](std::string& out) {
    out.append(R"(,"error":{"type":")").append(type).append(R"(","code":")").append(code);
    append_string(out += R"(","message":)", message);
    out += R"(,"param":)";
    parameter.empty() ? void(out += "null") : append_string(out, parameter);
    out.append(R"(,"event_id":)")
        .append(event_id_.empty() ? std::string_view("null") : event_id_) += '}';
  });
}

void OpenAiConversation::append_item(std::string& out, std::uint64_t number) const {
  if (number == 0) return void(out += "null");
  out.append("\"item_").append(id_) += '_';
  append_number(out, number);
  out += '"';
}

void OpenAiConversation::report(UtteranceEvent event, const Utterance& utterance,
                                std::string_view text) {
  const auto& [type, append] = events[static_cast<std::size_t>(event)];
  send(type, [&, append = append](std::string& out) {
    if (event == UtteranceEvent::cleared) return;
    append_item(out += R"(,"item_id":)", utterance.number);
    if (event == UtteranceEvent::committed)
      append_item(out += R"(,"previous_item_id":)", utterance.previous);
    else
      append(out, utterance, text);
  });
}

}  // namespace millrace
