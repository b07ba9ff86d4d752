// SPDX-License-Identifier: Apache-2.0
#include "service/config/print_options.h"

#include <array>
#include <charconv>
#include <cmath>
#include <sstream>
#include <type_traits>
#include <utility>

#include "chunker/lengths.h"
#include "service/config/memory_bounds.h"
#include "service/config/toml/config_value.h"
#include "service/config/toml/units.h"
#include "service/log/printable.h"

namespace millrace {

namespace {

std::string list_of(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const std::string& text : texts) list += (list.size() > 1 ? ", " : "") + toml_string(text);
  return list + "]";
}

void print(std::ostream& out, const ListenOptions& listen) {
  out << "[listen]\n"
      << "websocket = " << in_quotes(readable(listen.websocket)) << '\n'
      << "zeromq = "
      << in_quotes(listen.zeromq ? "tcp://" + readable(*listen.zeromq) : std::string("off")) << '\n'
      << "admin = " << in_quotes(readable(listen.admin)) << '\n'
      << "workers = " << toml_string("unix:" + listen.workers) << '\n';
  if (listen.workers_remote)
    out << "workers_remote = " << in_quotes("tcp://" + readable(*listen.workers_remote)) << '\n';
  out << "threads = " << listen.threads << '\n'
      << "receive_buffer = " << in_quotes(readable_bytes(listen.receive_buffer)) << '\n'
      << "plain = " << (listen.plain ? "true" : "false") << '\n'
      << "proxies = " << list_of(listen.proxies) << '\n'
      << "origins = " << list_of(listen.origins) << '\n'
      << "names = " << list_of(listen.names) << '\n'
      << "try_page = " << (listen.try_page ? "true" : "false") << '\n'
      << "explain = " << (listen.explain ? "true" : "false") << '\n';
}

void print(std::ostream& out, const TlsOptions& tls) {
  if (!tls.on()) return;
  out << "\n[tls]\n"
      << "certificate = " << toml_string(tls.certificate) << '\n'
      << "key = " << toml_string(tls.key) << '\n';
  if (!tls.client_ca.empty()) out << "client_ca = " << toml_string(tls.client_ca) << '\n';
  out << "admin = " << (tls.admin ? "true" : "false") << '\n';
}

void print(std::ostream& out, const AccessRule& access) {
  out << "\n[access]\n";
  if (!access.tokens.empty()) out << "tokens = " << toml_string(access.tokens) << '\n';
  if (!access.tenants.empty()) out << "tenants = " << toml_string(access.tenants) << '\n';
  if (!access.resume_key.empty()) out << "resume_key = " << toml_string(access.resume_key) << '\n';
}

void print(std::ostream& out, const LimitOptions& limits) {
  out << "\n[limits]\n"
      << "profile = " << in_quotes(limits.is_public ? "public" : "private") << '\n'
      << "message = " << in_quotes(readable_bytes(limits.message)) << '\n'
      << "text = " << in_quotes(readable_bytes(limits.text)) << '\n'
      << "stream_buffer = " << in_quotes(readable(limits.stream_buffer)) << '\n'
      << "pause_buffer = " << in_quotes(readable(limits.pause_buffer)) << '\n'
      << "send_buffer = " << in_quotes(readable_bytes(limits.send_buffer)) << '\n'
      << "resume = " << in_quotes(readable(limits.resume)) << '\n'
      << "resume_buffer = " << in_quotes(readable_bytes(limits.resume_buffer)) << '\n'
      << "connections = " << limits.connections << '\n'
      << "slab_bytes = " << in_quotes(readable_bytes(limits.slab_bytes)) << '\n'
      << "drain = " << in_quotes(readable(limits.drain)) << '\n'
      << "linger = " << in_quotes(readable(limits.linger)) << '\n'
      << "notice = " << in_quotes(readable(limits.notice)) << '\n';
}

std::string devices_of(const DeviceRule& rule) {
  switch (rule.use) {
    case DeviceRule::Use::automatic: return in_quotes("auto");
    case DeviceRule::Use::host: return in_quotes("host");
    case DeviceRule::Use::listed: break;
  }
  return list_of(rule.listed);
}

void print(std::ostream& out, const DeviceRule& rule) {
  out << "\n[gpu]\n"
      << "devices = " << devices_of(rule) << '\n'
      << "slab_bytes = " << in_quotes(readable_bytes(rule.slab_bytes)) << '\n'
      << "pageable = " << in_quotes(rule.pageable ? "allow" : "refuse") << '\n';
}

void print(std::ostream& out, const LogOptions& log) {
  out << "\n[log]\n"
      << "level = " << in_quotes(name_of(log.level)) << '\n'
      << "format = " << in_quotes(log.format == LogFormat::json ? "json" : "text") << '\n';
}

void print(std::ostream& out, const RecordingOptions& recording) {
  out << "\n[recording]\n";
  if (!recording.directory.empty())
    out << "directory = " << toml_string(recording.directory) << '\n';
  out << "file_size = " << in_quotes(readable_bytes(recording.file_size)) << '\n'
      << "commit = " << in_quotes(readable(recording.commit)) << '\n'
      << "queue = " << in_quotes(readable_bytes(recording.queue)) << '\n'
      << "keep = " << in_quotes(readable_bytes(recording.keep)) << '\n'
      << "keep_for = " << in_quotes(readable(recording.keep_for)) << '\n'
      << "min_free = " << in_quotes(readable_bytes(recording.min_free)) << '\n';
}

std::string value_of(const SizeList& sizes) {
  if (sizes.is_range())
    return "{ from = " + std::to_string(sizes.smallest()) +
           ", to = " + std::to_string(sizes.largest()) +
           ", step = " + std::to_string(sizes.step()) + " }";
  std::string list = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i)
    list += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  return list + "]";
}

template <class Value>
std::string value_of(const Value& value) {
  if constexpr (std::is_enum_v<Value>)
    return in_quotes(name_of(value));
  else
    return std::to_string(value);
}

// `step` and `first` are printed only if they are set: otherwise they follow each new size.
void print(std::ostream& out, const ChunkRule& rule) {
  std::string_view before = "chunk = { ";
  for_each_key(rule, [&](std::string_view key, const auto& value) {
    const bool absent =
        (key == "step" && rule.spec.step == 0) || (key == "first" && rule.spec.first == 0);
    if (!absent && has_key(rule, key))
      out << std::exchange(before, ", ") << key << " = " << value_of(value);
  });
  out << " }\n";
}

void print(std::ostream& out, const EndpointRule& rule) {
  out << "endpoint = { by = " << in_quotes(name_of(rule.by));
  if (rule.by == EndpointRule::By::vad)
    out << ", silence = " << rule.silence << ", before_speech = "
        << (rule.before_speech ? std::to_string(*rule.before_speech) : in_quotes("off"))
        << ", sensitivity = " << rule.sensitivity;
  out << ", max = " << rule.max << ", on_endpoint = " << in_quotes(name_of(rule.on_endpoint))
      << " }\n";
}

// The shortest text that is parsed to the same number.
std::string exact(double number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

void print(std::ostream& out, const RecordRule& rule) {
  out << "record = { share = " << exact(rule.share)
      << ", answers = " << (rule.answers ? "true" : "false") << " }\n";
}

// The duration of the frames, rounded to microseconds: 32 ms.
std::string duration_of(double frames, double rate) {
  return readable(std::round(1e6 * frames / rate) / 1000) + " ms";
}

// The number of frames with their duration: 512 (32 ms).
std::string with_duration(std::uint32_t frames, double rate) {
  return std::to_string(frames) + " (" + duration_of(frames, rate) + ")";
}

// The durations of the frames: 80 ms, or 80 to 640 ms.
std::string durations(std::uint32_t least, std::uint32_t most, std::uint32_t more, double rate) {
  const std::string longest = duration_of(double{1} * most + more, rate);
  if (least == most) return longest;
  return readable(std::round(1e6 * (double{1} * least + more) / rate) / 1000) + " to " + longest;
}

// Comments with the lengths and the latency of the rule. A row is ready when the last frame of its
// right context has arrived; then it waits for a batch.
void print_lengths(std::ostream& out, const PipelineOptions& pipeline) {
  const ChunkRule& rule = pipeline.chunk;
  const Spec& spec = rule.spec;
  const SizeList& sizes = rule.sizes.sizes;
  const double rate = pipeline.frames.rate;
  out << "# frames: size " << with_duration(spec.size, rate);
  if (!sizes.empty())
    out << " of " << with_duration(sizes.smallest(), rate) << " to "
        << with_duration(sizes.largest(), rate);
  else
    out << ", step " << with_duration(spec.step_of(spec.size), rate);
  out << ", first " << with_duration(spec.first_body(spec.size), rate) << ", left "
      << with_duration(spec.left, rate) << ", right " << with_duration(spec.right, rate)
      << "; a row has " << rule.width() << " columns\n"
      << "# latency of the rule: "
      << durations(sizes.empty() ? spec.size : sizes.smallest(),
                   sizes.empty() ? spec.size : sizes.largest(), spec.right, rate)
      << " from the first frame of a body until its row is ready, " << duration_of(spec.right, rate)
      << " from the last; then at most " << readable(pipeline.batch.max_wait)
      << " (max_wait) if a worker is free\n";
}

void print_buckets(std::ostream& out, std::string_view key,
                   const std::vector<std::uint32_t>& buckets) {
  if (buckets.empty()) return;
  out << ", " << key << " = ";
  std::string_view before = "[";
  for (const std::uint32_t bucket : buckets) out << std::exchange(before, ", ") << bucket;
  out << ']';
}

void print(std::ostream& out, const BatchRule& rule) {
  out << "batch = { rows = " << rule.rows << ", max_wait = " << in_quotes(readable(rule.max_wait));
  print_buckets(out, "row_buckets", rule.row_buckets);
  print_buckets(out, "width_buckets", rule.width_buckets);
  out << " }\n";
}

void print(std::ostream& out, const PipelineOptions& pipeline) {
  out << "\n[[pipeline]]\n"
      << "name = " << toml_string(pipeline.name) << '\n'
      << "rate = " << exact(pipeline.frames.rate) << '\n'
      << (pipeline.frames.features ? "dim = " : "channels = ") << pipeline.frames.values << '\n'
      << "frames = " << in_quotes(name_of(pipeline.frames.element)) << '\n'
      << "dtype = " << in_quotes(name_of(pipeline.dtype)) << '\n'
      << "state = " << (pipeline.batch.stateful ? "\"slot\"\n" : "\"none\"\n")
      << "slots = " << pipeline.batch.slots << '\n'
      << "required = " << (pipeline.required ? "true" : "false") << '\n'
      << "worker_wait = " << in_quotes(readable(pipeline.worker_wait)) << '\n'
      << "bye_wait = " << in_quotes(readable(pipeline.bye_wait)) << '\n'
      << "answer_wait = " << in_quotes(readable(pipeline.answer_wait)) << '\n'
      << "first_answer_wait = " << in_quotes(readable(pipeline.first_answer_wait)) << '\n';
  if (pipeline.shed_after)
    out << "shed_after = " << in_quotes(readable(*pipeline.shed_after)) << '\n';
  print(out, pipeline.chunk);
  if (pipeline.endpoint) print(out, *pipeline.endpoint);
  if (pipeline.record) print(out, *pipeline.record);
  print(out, pipeline.batch);
}

void print(std::ostream& out, const ProtocolOptions& protocol) {
  out << "\n[[protocol]]\nname = " << in_quotes(name_of(protocol.name)) << '\n';
  if (protocol.listen) out << "listen = " << in_quotes(readable(*protocol.listen)) << '\n';
  if (!protocol.tenant.empty()) out << "tenant = " << toml_string(protocol.tenant) << '\n';
  out << "pipeline = " << toml_string(protocol.pipelines.pipeline) << '\n';
  std::string_view before = "models = { ";
  for (const auto& [model, pipeline] : protocol.pipelines.models)
    out << std::exchange(before, ", ") << toml_string(model) << " = " << toml_string(pipeline);
  if (!protocol.pipelines.models.empty()) out << " }\n";
}

void print(std::ostream& out, const MemoryBounds& bounds) {
  out << "frames " << rounded_bytes(bounds.frames) << ", rows " << rounded_bytes(bounds.rows)
      << ", slabs " << rounded_bytes(bounds.slabs) << ", results " << rounded_bytes(bounds.results)
      << ", streams " << rounded_bytes(bounds.streams);
  if (bounds.recording > 0) out << ", recording " << rounded_bytes(bounds.recording);
  if (bounds.sockets > 0) out << ", sockets " << rounded_bytes(bounds.sockets);
  out << '\n';
}

}  // namespace

std::string to_toml(const Options& options) {
  std::ostringstream out;
  if (options.protocols.empty()) out << "protocol = []\n\n";
  print(out, options.listen);
  print(out, options.tls);
  print(out, options.access);
  print(out, options.limits);
  print(out, options.gpu);
  print(out, options.recording);
  print(out, options.log);
  for (const PipelineOptions& pipeline : options.pipelines) {
    print(out, pipeline);
    print_lengths(out, pipeline);
    out << "# memory per worker at most: ";
    print(out, memory_bounds(pipeline, options.limits));
  }
  for (const ProtocolOptions& protocol : options.protocols) print(out, protocol);
  out << "\n# memory at most, with " << options.limits.connections << " connections: ";
  print(out, memory_bounds(options));
  return std::move(out).str();
}

}  // namespace millrace
