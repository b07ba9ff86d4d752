// SPDX-License-Identifier: Apache-2.0
#include "service/config/options.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <unordered_set>
#include <utility>

#include "service/config/drain_times.h"
#include "service/config/gpu_options.h"
#include "service/config/memory_bounds.h"
#include "service/config/pipeline_options.h"
#include "service/config/protocol_options.h"
#include "service/config/recording_options.h"
#include "service/config/toml/config_value.h"
#include "service/config/toml/section.h"
#include "service/config/toml/units.h"
#include "transport/addresses/proxy_list.h"
#include "transport/net/local_path.h"

namespace millrace {

namespace {

using namespace std::chrono_literals;

std::string read_workers(Section& listen) {
  const auto path = local_path(listen.text("workers", default_workers_url()));
  if (!path)
    listen.wrong("workers", "must be unix:PATH, with a path of 1 to " +
                                std::to_string(max_local_path) + " bytes");
  return path.value_or("");
}

// Half of the cores: workers on the same machine need the others. Static: a reload must not differ.
std::uint32_t default_threads() {
  static const auto cores = std::thread::hardware_concurrency();
  return std::max(1u, (cores + 1) / 2);
}

// True for an origin as browsers send it: "https://app.example", "http://127.0.0.1:8000".
bool is_origin(std::string_view text) {
  if (text == "file://") return true;  // a page that was loaded from a file, as in Electron
  const auto scheme = text.find("://");
  if (scheme == std::string_view::npos || scheme == 0) return false;
  const auto is_origin_character = [](char c) {
    return c > ' ' && c < 127 && c != '/' && c != '?' && c != '#' && c != '@' && c != '"' &&
           !(c >= 'A' && c <= 'Z');
  };
  const std::string_view host = text.substr(scheme + 3);
  return !host.empty() && std::ranges::all_of(host, is_origin_character) &&
         std::ranges::all_of(text.substr(0, scheme), is_origin_character);
}

std::vector<std::string> read_origins(Section& listen) {
  constexpr std::string_view allowed =
      R"(must be a list of origins in lower case without a path, like ["https://app.example"])";
  if (!listen.has("origins")) return {};
  auto value = listen.text_or_texts("origins", "", allowed);
  auto* origins = std::get_if<std::vector<std::string>>(&value);
  if (origins && std::ranges::all_of(*origins, is_origin)) return std::move(*origins);
  listen.wrong("origins", std::string(allowed));
  return {};
}

std::vector<std::string> read_proxies(Section& listen) {
  constexpr std::string_view allowed =
      R"(must be a list of networks and addresses, like ["10.0.0.0/8", "fd00::/8", "192.0.2.7"])";
  if (!listen.has("proxies")) return {};
  auto value = listen.text_or_texts("proxies", "", allowed);
  auto* proxies = std::get_if<std::vector<std::string>>(&value);
  if (proxies && ProxyList::parse(*proxies)) return std::move(*proxies);
  listen.wrong("proxies", std::string(allowed));
  return {};
}

TlsOptions read_tls(Section tls) {
  TlsOptions options{.certificate = tls.file("certificate"),
                     .key = tls.file("key"),
                     .client_ca = tls.file("client_ca"),
                     .admin = tls.flag("admin", false)};
  const bool any = !options.key.empty() || !options.client_ca.empty() || options.admin;
  if (options.on() && options.key.empty()) tls.wrong("key", "must be the key of certificate");
  if (!options.on() && any) tls.wrong("certificate", "must be set: the other keys need it");
  tls.refuse_unknown();
  return options;
}

ListenOptions read_listen(Section listen, const TlsOptions& tls) {
  ListenOptions options;
  options.websocket = read_address(listen, "websocket", options.websocket);
  options.admin = read_address(listen, "admin", options.admin);
  options.zeromq = read_tcp_or_off(listen, "zeromq", options.zeromq);
  options.workers = read_workers(listen);
  options.workers_remote = read_tcp_or_off(listen, "workers_remote", std::nullopt);
  options.threads = listen.count("threads", default_threads(), 1, 1024);
  options.receive_buffer =
      listen.bytes("receive_buffer", options.receive_buffer, 4 << 10, 16 << 20);
  std::vector<Listener> listeners{{"websocket", options.websocket, tls.on(), "[tls]"},
                                  {"admin", options.admin, tls.admin, "[tls] with admin = true"}};
  if (options.zeromq) listeners.push_back({"zeromq", *options.zeromq});
  if (options.workers_remote) listeners.push_back({"workers_remote", *options.workers_remote});
  options.proxies = read_proxies(listen);
  options.origins = read_origins(listen);
  options.names = read_names(listen);
  options.plain = listen.flag("plain", false);
  options.explain = listen.flag("explain", false);
  for (const Listener& listener : listeners)
    check_listener(listen, listener, listeners, options.plain);
  options.try_page = listen.flag("try_page", false);
  listen.refuse_unknown();
  return options;
}

AccessRule read_access(Section access) {
  AccessRule rule{.tokens = access.file("tokens"),
                  .tenants = access.file("tenants"),
                  .resume_key = access.file("resume_key")};
  access.refuse_unknown();
  return rule;
}

// A stream must be able to hold the longest Opus packet.
constexpr Duration least_buffer = 120ms;

LimitOptions read_limits(Section limits) {
  LimitOptions options;
  options.is_public = limits.one_of("profile", "private", {"private", "public"}) == "public";
  options.message = limits.bytes("message", options.message, 1 << 10, 1 << 20);
  options.text = limits.bytes("text", std::min(options.text, options.message), 1 << 10,
                              std::min(LimitOptions::longest_text, options.message));
  options.send_buffer = limits.bytes("send_buffer", options.send_buffer, 16 << 10, 1 << 30);
  options.resume = limits.time("resume", options.resume, 1s, 10min);
  options.resume_buffer = limits.bytes("resume_buffer", options.resume_buffer, 64 << 10, 64 << 20);
  options.connections = limits.count("connections", options.connections, 1, most_connections);
  options.slab_bytes = limits.bytes("slab_bytes", options.slab_bytes, 1 << 20, 1ull << 40);
  options.stream_buffer = limits.time("stream_buffer", options.stream_buffer, least_buffer, 10min);
  options.pause_buffer = limits.time("pause_buffer", options.pause_buffer, 0s, 10min);
  options.drain = limits.time("drain", options.drain, 0s, 1h);
  options.linger = limits.time("linger", options.linger, 0s, 1h);
  options.notice = limits.time("notice", options.notice, 0s, 1h);
  if (options.linger + options.notice > most_before_end(options.drain))
    limits.wrong(options.notice > Duration() ? "notice" : "linger",
                 "linger and notice are parts of drain, which is " + readable(options.drain) +
                     ": together they must be at most three quarters of it");
  limits.refuse_unknown();
  return options;
}

// A public service encrypts, and knows its clients.
void check_profile(Section& limits, const Options& options) {
  if (!options.limits.is_public) return;
  if (!options.tls.on() && !options.listen.plain)
    limits.wrong("profile", "public needs [tls], or [listen] plain = true behind a proxy with TLS");
  if (options.access.tenants.empty())
    limits.wrong("profile", "public needs [access] tenants, so that it knows its clients");
}

// Subtracts the slabs of one worker of the pipeline from `left`.
void reserve_slabs(Section& section, const PipelineOptions& pipeline, const LimitOptions& limits,
                   std::size_t& left) {
  const std::size_t slabs = memory_bounds(pipeline, limits).slabs;
  if (slabs > left)
    return section.wrong("batch", "the slabs of one worker take " + rounded_bytes(slabs) +
                                      "; must be at most " + rounded_bytes(left) +
                                      ", the rest of limits.slab_bytes");
  left -= slabs;
}

void read_pipelines(Section& root, const Findings& findings, Options& options) {
  std::vector<Section> sections = root.sections("pipeline");
  if (!root.has("pipeline")) sections.push_back(root.section("pipeline", ""));
  if (sections.empty()) root.wrong("pipeline", "must have at least one [[pipeline]]");
  std::unordered_set<std::string> names;
  std::size_t slab_bytes = options.limits.slab_bytes;
  for (Section& section : sections) {
    const PipelineOptions& pipeline =
        options.pipelines.emplace_back(read_pipeline(section, options.limits));
    if (!names.insert(pipeline.name).second)
      section.wrong("name", "must differ from the names of the pipelines before it");
    if (pipeline.record && options.recording.directory.empty())
      section.wrong("record", "needs [recording] directory, where recordings are written");
    if (!findings.error) reserve_slabs(section, pipeline, options.limits, slab_bytes);
    if (findings.error) return;
  }
}

// Has every table, so that all keys are asked for.
constexpr std::string_view every_table = R"([recording]
directory = "/"
[[pipeline]]
endpoint = {}
record = {}
chunk = { rule = "random", size = 2, sizes = { from = 2, to = 4, step = 2 } }
[[protocol]]
name = "openai"
)";

Configuration read_all(const ConfigTable& table, Findings& findings) {
  Section root(table, "", 1, findings);
  Configuration configuration;
  Options& options = configuration.options;
  options.tls = read_tls(root.section("tls", "a table, headed [tls]"));
  options.listen = read_listen(root.section("listen", "a table, headed [listen]"), options.tls);
  options.access = read_access(root.section("access", "a table, headed [access]"));
  Section limits = root.section("limits", "a table, headed [limits]");
  options.limits = read_limits(limits);
  check_profile(limits, options);
  Section gpu = root.section("gpu", "a table, headed [gpu]");
  configuration.file = findings.file;
  configuration.sets_device_slabs = gpu.has("slab_bytes");
  options.gpu = read_gpu(gpu, options.limits);
  options.log = read_log(root.section("log", "a table, headed [log]"));
  Section recording = root.section("recording", "a table, headed [recording]");
  options.recording = read_recording(recording);
  read_pipelines(root, findings, options);
  options.protocols = read_protocols(root, options);
  check_recording(recording, options);
  check_gpu(gpu, options);
  root.refuse_unknown();
  return configuration;
}

}  // namespace

LogOptions read_log(Section log) {
  LogOptions options;
  const std::string level = log.one_of("level", "info", {"info", "warning", "error"});
  if (level == "warning") options.level = LogLevel::warning;
  if (level == "error") options.level = LogLevel::error;
  if (log.one_of("format", "text", {"text", "json"}) == "json") options.format = LogFormat::json;
  log.refuse_unknown();
  return options;
}

Result<Configuration, ConfigError> parse_options(std::string_view text, const std::string& file) {
  const auto table = read_toml(text);
  if (!table) return file + ":" + std::to_string(table.error().line) + ": " + table.error().message;
  Findings findings{.file = file, .error = {}};
  Configuration configuration = read_all(*table, findings);
  if (!findings.error) return configuration;
  Findings elsewhere;
  read_all(*read_toml(every_table), elsewhere);
  return findings.error_with(elsewhere);
}

Result<Configuration, ConfigError> load_options(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return path + ": is a directory";
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return path + ": cannot be read: " + std::strerror(errno);
  return parse_options(text, path);
}

}  // namespace millrace
