// SPDX-License-Identifier: Apache-2.0
#include "transport/websocket/stream_target.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "schemas/json_text.h"
#include "schemas/text.h"
#include "transport/http/query_parameters.h"

namespace millrace {
namespace {

constexpr std::size_t max_query = 2048;  // without JSON objects
constexpr std::size_t max_echo = 64;     // longest parameter name in an error

RequestError fault(std::string_view parameter, std::string message) {
  return {.parameter = std::string(parameter.substr(0, max_echo)), .message = std::move(message)};
}

// The error in a value; empty if the value is valid.
using Problem = std::string_view;

Problem set_name(std::string& into, std::string value) {
  if (!is_name(value)) return "must match [A-Za-z0-9._-]{1,128}";
  into = std::move(value);
  return {};
}

Problem set_text(std::optional<std::string>& into, std::string value) {
  if (value.empty()) return "must not be empty";
  into = std::move(value);
  return {};
}

Problem set_count(std::optional<std::uint32_t>& into, const std::string& value) {
  into = number_in<std::uint32_t>(value);
  return into ? Problem{} : "must be a whole number";
}

Problem set_rate(std::optional<double>& into, std::optional<double> value) {
  into = value;
  return into && std::isfinite(*into) ? Problem{} : "must be a number";
}

Problem set_flag(bool& into, std::string_view value) {
  into = value == "1";
  return into ? Problem{} : "must be 1";
}

std::uint64_t& member_of(Resumption& in, std::uint64_t Resumption::*member) { return in.*member; }
std::uint64_t& member_of(Resumption& in, std::uint64_t ResumePoint::*member) {
  return in.point.*member;
}

// A number of the resumption, which the first of them creates.
template <auto member>
Problem set_number(StreamRequest& request, std::optional<std::uint64_t> number) {
  if (!number || *number > client_protocol::max_number)
    return "must be a whole number from 0 to 2^53-1";
  if (!request.resumption) request.resumption.emplace();
  member_of(*request.resumption, member) = *number;
  return {};
}

template <auto member>
Problem read_number(StreamRequest& request, std::string value) {
  return set_number<member>(request, number_in<std::uint64_t>(value));
}

Problem set_record(bool& into, std::string_view value) {
  into = value != "no";
  return into ? "must be no" : Problem{};
}

Problem set_options(std::string& into, std::string value) {
  if (value.size() > longest_options) return "must be at most 4096 bytes";
  if (!is_json_object(value)) return "must be a JSON object";
  into = std::move(value);
  return {};
}

Problem set_changed(StreamRequest& request, std::string value) {
  if (!request.resumption) request.resumption.emplace();
  return set_options(request.resumption->set, std::move(value));
}

struct Parameter {
  std::string_view name;
  Problem (*set)(StreamRequest&, std::string value);
};

constexpr std::array<Parameter, 21> parameters{
    {{"pipeline",
      [](StreamRequest& r, std::string v) { return set_name(r.pipeline, std::move(v)); }},
     {"format", [](StreamRequest& r, std::string v) { return set_text(r.format, std::move(v)); }},
     {"rate",
      [](StreamRequest& r, std::string v) { return set_rate(r.rate, number_in<double>(v)); }},
     {"channels", [](StreamRequest& r, std::string v) { return set_count(r.channels, v); }},
     {"dim", [](StreamRequest& r, std::string v) { return set_count(r.dim, v); }},
     {"id", [](StreamRequest& r, std::string v) { return set_name(r.id, std::move(v)); }},
     {"channel", [](StreamRequest& r, std::string v) { return set_text(r.channel, std::move(v)); }},
     {"chunk", [](StreamRequest& r, std::string v) { return set_text(r.chunk, std::move(v)); }},
     {"options",
      [](StreamRequest& r, std::string v) { return set_options(r.options, std::move(v)); }},
     {"record", [](StreamRequest& r, std::string v) { return set_record(r.record, v); }},
     {"explain", [](StreamRequest& r, std::string v) { return set_flag(r.explain, v); }},
     {"resume", [](StreamRequest& r, std::string v) { return set_flag(r.resume, v); }},
     {"n", read_number<&Resumption::n>},
     {"seq", read_number<&ResumePoint::seq>},
     {"from", read_number<&ResumePoint::frames>},
     {"commands", read_number<&ResumePoint::commands>},
     {"begin", read_number<&ResumePoint::begin>},
     {"skip", read_number<&ResumePoint::skip>},
     {"have", read_number<&Resumption::results>},
     {"flushed", read_number<&Resumption::flushed>},
     {"set", [](StreamRequest& r, std::string v) { return set_changed(r, std::move(v)); }}}};

}  // namespace

void append_parameter(std::string& out, std::string_view name, std::string_view value) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  out += out.find('?') == std::string::npos ? '?' : '&';
  out.append(name) += '=';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_name({&c, 1})) {
      out += c;
    } else {
      out.append({'%', digits[byte >> 4], digits[byte & 15]});
    }
  }
}

Result<StreamRequest, RequestError> parse_stream_target(std::string_view target) {
  StreamRequest request;
  std::array<bool, parameters.size()> seen{};
  std::size_t length = 0;
  for (const auto& [name, encoded] : parameters_of(target)) {
    if (name != "options" && name != "set") length += name.size() + encoded.size();
    if (length >= max_query)
      return RequestError{
          .status = 414,
          .message = "the query must be shorter than 2048 bytes, without options and set"};
    const auto parameter = std::ranges::find(parameters, name, &Parameter::name);
    if (parameter == parameters.end()) return fault(name, "no such parameter");
    if (std::exchange(seen[static_cast<std::size_t>(parameter - parameters.begin())], true))
      return fault(name, "given twice");
    auto value = percent_decoded(encoded);
    if (!value) return fault(name, "malformed percent-encoding");
    if (const Problem problem = parameter->set(request, std::move(*value)); !problem.empty())
      return fault(name, std::string(problem));
  }
  return request;
}

Result<StreamRequest, RequestError> read_open(const client_protocol::Open& open) {
  if (open.version != client_protocol::version)
    return fault("version",
                 "this service supports version " + std::to_string(client_protocol::version));
  StreamRequest request{.channels = open.channels, .dim = open.dim};
  std::optional<RequestError> error;
  const auto check = [&](std::string_view name, Problem problem) {
    if (!problem.empty() && !error) error = fault(name, std::string(problem));
  };
  if (open.pipeline) check("pipeline", set_name(request.pipeline, std::string(*open.pipeline)));
  if (open.id) check("id", set_name(request.id, std::string(*open.id)));
  if (open.format) check("format", set_text(request.format, std::string(*open.format)));
  if (open.rate) check("rate", set_rate(request.rate, *open.rate));
  if (open.channel) check("channel", set_text(request.channel, std::string(*open.channel)));
  if (open.chunk) check("chunk", set_text(request.chunk, std::string(*open.chunk)));
  if (open.options) check("options", set_options(request.options, std::string(*open.options)));
  if (open.record) check("record", set_record(request.record, *open.record));
  request.resume = open.resume;
  if (open.n) check("n", set_number<&Resumption::n>(request, open.n));
  if (const auto& place = open.place) {
    check("seq", set_number<&ResumePoint::seq>(request, place->seq));
    check("from", set_number<&ResumePoint::frames>(request, place->frames));
    check("commands", set_number<&ResumePoint::commands>(request, place->commands));
    check("begin", set_number<&ResumePoint::begin>(request, place->begin));
    check("skip", set_number<&ResumePoint::skip>(request, place->skip));
  }
  if (open.have) check("have", set_number<&Resumption::results>(request, open.have));
  if (open.flushed) check("flushed", set_number<&Resumption::flushed>(request, open.flushed));
  if (open.set) check("set", set_changed(request, std::string(*open.set)));
  if (!error) error = add_resume_token(request, open.resume_token.value_or(""), "resume_token");
  if (error) return std::move(*error);
  return request;
}

std::optional<RequestError> add_resume_token(StreamRequest& request, std::string_view token,
                                             std::string_view shown) {
  if (token.empty() && !request.resumption) return std::nullopt;
  if (token.empty()) return fault("n", "only with " + std::string(shown) + ", of a stream's ready");
  if (!request.resume || request.id.empty())
    return fault(request.resume ? "id" : "resume",
                 "must be given with a token that continues a stream");
  if (!request.resumption) request.resumption.emplace();
  request.resumption->token = token;
  return std::nullopt;
}

std::string stream_target(const StreamRequest& request) {
  const auto decimal = [](double value) {
    std::string digits;
    append_number(digits, value);
    return digits;
  };
  std::string target(stream_path);
  append_parameter(target, "pipeline", request.pipeline);
  if (!request.id.empty()) append_parameter(target, "id", request.id);
  if (request.format) append_parameter(target, "format", *request.format);
  if (request.rate) append_parameter(target, "rate", decimal(*request.rate));
  if (request.channels) append_parameter(target, "channels", std::to_string(*request.channels));
  if (request.dim) append_parameter(target, "dim", std::to_string(*request.dim));
  if (request.channel) append_parameter(target, "channel", *request.channel);
  if (request.chunk) append_parameter(target, "chunk", *request.chunk);
  if (!request.options.empty()) append_parameter(target, "options", request.options);
  if (!request.record) append_parameter(target, "record", "no");
  if (request.explain) append_parameter(target, "explain", "1");
  if (request.resume) append_parameter(target, "resume", "1");
  if (const auto& from = request.resumption) {
    append_parameter(target, "n", std::to_string(from->n));
    append_parameter(target, "seq", std::to_string(from->point.seq));
    append_parameter(target, "from", std::to_string(from->point.frames));
    append_parameter(target, "commands", std::to_string(from->point.commands));
    append_parameter(target, "begin", std::to_string(from->point.begin));
    append_parameter(target, "skip", std::to_string(from->point.skip));
    append_parameter(target, "have", std::to_string(from->results));
    append_parameter(target, "flushed", std::to_string(from->flushed));
    if (!from->set.empty()) append_parameter(target, "set", from->set);
  }
  return target;
}

}  // namespace millrace
