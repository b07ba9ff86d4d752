// SPDX-License-Identifier: Apache-2.0
#include "commands/train_serve/train_options.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <variant>
#include <vector>

#include "service/config/toml/section.h"
#include "transport/net/local_path.h"

namespace millrace {

namespace {

void read_listen(Section listen, TrainOptions& options) {
  const std::string workers = listen.text("workers", default_trainers_url());
  if (workers != "off") {
    const auto path = local_path(workers);
    if (!path)
      listen.wrong("workers", "must be \"off\" or unix:PATH, with a path of 1 to " +
                                  std::to_string(max_local_path) + " bytes");
    options.workers = path.value_or("");
  }
  options.workers_remote = read_tcp_or_off(listen, "workers_remote", options.workers_remote);
  options.admin = read_address(listen, "admin", options.admin);
  options.names = read_names(listen);
  options.plain = listen.flag("plain", false);
  std::vector<Listener> listeners{{"admin", options.admin}};
  if (options.workers_remote) listeners.push_back({"workers_remote", *options.workers_remote});
  for (const Listener& listener : listeners)
    check_listener(listen, listener, listeners, options.plain);
  if (workers == "off" && !options.workers_remote)
    listen.wrong("workers_remote",
                 "must be an address, or workers must be one: otherwise no "
                 "trainer can attach");
  listen.refuse_unknown();
}

}  // namespace

Result<TrainOptions, ConfigError> parse_train_options(std::string_view text,
                                                      const std::string& file) {
  const auto table = read_toml(text);
  if (!table) return file + ":" + std::to_string(table.error().line) + ": " + table.error().message;
  Findings findings{.file = file, .error = {}};
  Section root(*table, "", 1, findings);
  TrainOptions options;
  read_listen(root.section("listen", "a table, headed [listen]"), options);
  Section limits = root.section("limits", "a table, headed [limits]");
  options.slab_bytes = limits.bytes("slab_bytes", options.slab_bytes, 1 << 20, 1ull << 40);
  limits.refuse_unknown();
  options.log = read_log(root.section("log", "a table, headed [log]"));
  if (!root.has_table("plan")) root.wrong("plan", "must be a table, headed [plan]");
  root.refuse_unknown();
  if (findings.error) return *findings.error;
  const ConfigValue& plan = std::ranges::find(*table, "plan", &ConfigEntry::key)->value;
  auto read = read_plan_table(std::get<ConfigTable>(plan.value), plan.line);
  if (!read) return file + ":" + std::to_string(read.error().line) + ": " + read.error().message;
  options.plan = std::move(*read);
  return options;
}

Result<TrainOptions, ConfigError> load_train_options(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return path + ": is a directory";
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return path + ": cannot be read: " + std::strerror(errno);
  return parse_train_options(text, path);
}

}  // namespace millrace
