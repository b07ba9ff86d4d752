// SPDX-License-Identifier: Apache-2.0
#include "service/config/reload.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "service/config/descriptors.h"
#include "service/config/print_options.h"
#include "service/config/toml/config_value.h"
#include "transport/access/resume_keys.h"
#include "transport/access/tenant_list.h"
#include "transport/access/token_list.h"
#include "transport/net/tls/tls_context.h"

namespace millrace {

namespace {

constexpr std::array<std::string_view, 11> reloadable = {
    "tls.client_ca",      "access.tokens",     "access.tenants", "access.resume_key",
    "limits.connections", "limits.slab_bytes", "limits.drain",   "limits.linger",
    "limits.notice",      "log.level",         "log.format"};

struct Difference {
  std::string key;
  std::string before, after;  // values in the form for messages
};
using Differences = std::vector<Difference>;

void compare_values(const std::string& key, const ConfigValue& before, const ConfigValue& after,
                    Differences& into);

const ConfigValue* find(const ConfigTable& table, std::string_view key) {
  const auto found = std::ranges::find(table, key, &ConfigEntry::key);
  return found == table.end() ? nullptr : &found->value;
}

void compare_tables(const std::string& prefix, const ConfigTable& before, const ConfigTable& after,
                    Differences& into) {
  for (const auto& [key, value] : before) {
    if (const ConfigValue* other = find(after, key))
      compare_values(prefix + key, value, *other, into);
    else
      into.push_back({prefix + key, readable(value), "no value"});
  }
  for (const auto& [key, value] : after)
    if (!find(before, key)) into.push_back({prefix + key, "no value", readable(value)});
}

void compare_values(const std::string& key, const ConfigValue& before, const ConfigValue& after,
                    Differences& into) {
  const auto differ = [&] { into.push_back({key, readable(before), readable(after)}); };
  if (before.value.index() != after.value.index()) return differ();
  if (const auto* table = std::get_if<ConfigTable>(&before.value))
    return compare_tables(key + ".", *table, std::get<ConfigTable>(after.value), into);
  if (const auto* array = std::get_if<ConfigArray>(&before.value)) {
    const auto& other = std::get<ConfigArray>(after.value);
    if (array->size() != other.size()) return differ();
    for (std::size_t i = 0; i < array->size(); ++i)
      compare_values(key, (*array)[i], other[i], into);
    return;
  }
  const auto same = [&]<class T>(const T* value) {
    return value == nullptr || *value == std::get<T>(after.value);
  };
  if (!same(std::get_if<bool>(&before.value)) || !same(std::get_if<std::int64_t>(&before.value)) ||
      !same(std::get_if<double>(&before.value)) || !same(std::get_if<std::string>(&before.value)))
    differ();
}

// Compares the output of check-config: each key with its effective value.
Differences differences(const Options& before, const Options& after) {
  Differences all;
  compare_tables("", *read_toml(to_toml(before)), *read_toml(to_toml(after)), all);
  return all;
}

bool may_change(std::string_view key, const Configuration& running, const Configuration& read) {
  // A listener gains or loses TLS only by a restart.
  if (key == "tls.certificate" || key == "tls.key")
    return running.options.tls.on() && read.options.tls.on();
  // If neither file sets it, it follows limits.slab_bytes, which may change.
  if (key == "gpu.slab_bytes") return !running.sets_device_slabs && !read.sets_device_slabs;
  return std::ranges::find(reloadable, key) != reloadable.end();
}

// Adds the key of a file whose name is the same, but not its content.
template <class Content>
void add_if_other(const char* key, const std::shared_ptr<const Content>& before,
                  const std::shared_ptr<const Content>& after, std::vector<std::string>& changed) {
  const bool listed = std::ranges::find(changed, key) != changed.end();
  if (!listed && before && after && *before != *after) changed.emplace_back(key);
}

}  // namespace

Result<Reloaded, ConfigError> compare(const Configuration& running, Configuration read) {
  Reloaded reloaded;
  for (const auto& [key, before, after] : differences(running.options, read.options)) {
    if (!may_change(key, running, read))
      return read.file + ": key '" + key + "' = " + after + ": cannot change from " + before +
             " while the service runs; restart it";
    reloaded.changed.push_back(key);
  }
  reloaded.configuration = std::move(read);
  return reloaded;
}

Result<Reloaded, ConfigError> reload(const Configuration& running, const AccessFiles& in_use) {
  const std::string& path = running.file;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  // Reading a pipe could block the thread without end.
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return path + ": is not a regular file, and cannot be read again";
  auto read = load_options(path);
  if (!read) return read.error();
  // The start does the same: otherwise each reload would appear to change `connections`.
  std::string fewer = fit_to_descriptors(read->options.limits.connections);
  auto access = load_access(*read);
  if (!access) return access.error();
  auto reloaded = compare(running, *std::move(read));
  if (!reloaded) return reloaded;
  reloaded->fewer_connections = std::move(fewer);
  add_if_other("access.tokens", in_use.tokens, access->tokens, reloaded->changed);
  add_if_other("access.tenants", in_use.tenants, access->tenants, reloaded->changed);
  add_if_other("access.resume_key", in_use.resume_keys, access->resume_keys, reloaded->changed);
  add_if_other("tls", in_use.tls, access->tls, reloaded->changed);
  // The keys of a file that is no longer named must not count any more.
  if (!access->resume_keys && !running.options.access.resume_key.empty())
    access->resume_keys = std::make_shared<const ResumeKeys>(ResumeKeys::random());
  reloaded->access = *std::move(access);
  return reloaded;
}

}  // namespace millrace
