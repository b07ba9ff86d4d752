// SPDX-License-Identifier: Apache-2.0
#include "service/config/access_files.h"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "service/config/tenants/tenants_file.h"
#include "service/config/toml/config_value.h"
#include "transport/access/resume_keys.h"
#include "transport/access/tenant_list.h"
#include "transport/access/token_list.h"
#include "transport/net/tls/tls_context.h"

namespace millrace {
namespace {

// The content of the file that `key` names; null if its path is empty.
template <class Content>
Result<std::shared_ptr<const Content>, ConfigError> load(const std::string& configuration,
                                                         const std::string& key,
                                                         const std::string& path) {
  if (path.empty()) return std::shared_ptr<const Content>();
  auto content = Content::read(path);
  if (!content)
    return configuration + ": key '" + key + "' = " + toml_string(path) + ": " + content.error();
  return std::make_shared<const Content>(*std::move(content));
}

// The error of TlsContext begins with the path of a file.
ConfigError tls_error(const Configuration& from, std::string_view error) {
  const TlsOptions& tls = from.options.tls;
  for (const auto& [name, path] : {std::pair{"tls.certificate", &tls.certificate},
                                   {"tls.key", &tls.key},
                                   {"tls.client_ca", &tls.client_ca}})
    if (!path->empty() && error.starts_with(*path + ": "))
      return from.file + ": key '" + name + "': " + std::string(error);
  return from.file + ": key 'tls': " + std::string(error);
}

std::optional<ConfigError> load_tls(const Configuration& from, AccessFiles& into) {
  const TlsOptions& tls = from.options.tls;
  if (!tls.on()) return std::nullopt;
  TlsFiles files{.certificate = tls.certificate, .key = tls.key, .ca = tls.client_ca};
  try {
    into.tls = std::make_shared<const TlsContext>(TlsContext::for_servers(files));
    files.ca.clear();  // the program that scrapes it has no certificate
    if (tls.admin)
      into.admin_tls = std::make_shared<const TlsContext>(TlsContext::for_servers(files));
  } catch (const std::invalid_argument& wrong) {
    return tls_error(from, wrong.what());
  }
  return std::nullopt;
}

// Why the tenants do not fit the rest of the configuration.
std::optional<std::string> misfit(const TenantList& tenants, const TokenList* tokens,
                                  const Options& options) {
  const auto is_pipeline = [&](const std::string& name) {
    return std::ranges::find(options.pipelines, name, &PipelineOptions::name) !=
           options.pipelines.end();
  };
  for (const TenantRule& tenant : tenants.tenants()) {
    for (const std::string& pipeline : tenant.pipelines.value_or(std::vector<std::string>()))
      if (!is_pipeline(pipeline))
        return "the tenant " + tenant.name + " has the pipeline " + pipeline +
               ", which does not exist";
    for (const TenantToken& token : tenant.tokens)
      if (tokens && tokens->accepts(token.digest))
        return "the tenant " + tenant.name + " has a token that [access] tokens has too";
  }
  for (const ProtocolOptions& protocol : options.protocols)
    if (!protocol.tenant.empty() && !tenants.find(protocol.tenant))
      return "there is no tenant " + protocol.tenant + ", which a [[protocol]] names";
  return std::nullopt;
}

std::optional<ConfigError> load_tenants(const Configuration& from, AccessFiles& into) {
  const std::string& file = from.options.access.tenants;
  if (file.empty()) return std::nullopt;
  auto tenants = read_tenants(file);
  if (!tenants) return tenants.error();
  if (auto wrong = misfit(*tenants, into.tokens.get(), from.options)) return file + ": " + *wrong;
  into.tenants = std::make_shared<const TenantList>(*std::move(tenants));
  return std::nullopt;
}

}  // namespace

Result<AccessFiles, ConfigError> load_access(const Configuration& from) {
  const AccessRule& access = from.options.access;
  auto tokens = load<TokenList>(from.file, "access.tokens", access.tokens);
  if (!tokens) return tokens.error();
  auto keys = load<ResumeKeys>(from.file, "access.resume_key", access.resume_key);
  if (!keys) return keys.error();
  AccessFiles files{.tokens = *std::move(tokens), .resume_keys = *std::move(keys)};
  if (auto error = load_tenants(from, files)) return std::move(*error);
  if (auto error = load_tls(from, files)) return std::move(*error);
  return files;
}

}  // namespace millrace
