// SPDX-License-Identifier: Apache-2.0
#include "service/config/tenants/tenants_file.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "base/files/small_file.h"
#include "schemas/text.h"
#include "service/config/toml/section.h"
#include "service/config/toml/units.h"

namespace millrace {
namespace {

constexpr std::size_t largest_file = 16 << 20;
constexpr std::uint32_t most_streams = 1'000'000;
// The opens of two seconds may come at once, and ten seconds of the signal of a stream.
constexpr double seconds_at_once = 2;
constexpr double least_signal_at_once = 10;

RateRule read_rate(Section& section, std::string_view key, double least_at_once) {
  if (!section.has(key)) return {};
  const auto rate = parse_rate(section.text(key, "1/s"));
  if (rate) return {*rate, std::max(seconds_at_once * *rate, least_at_once)};
  section.wrong(key, "must be a rate from \"0.001/s\" to \"1000000/s\", like \"20/s\"");
  return {};
}

std::optional<std::vector<std::string>> read_pipelines(Section& section) {
  constexpr std::string_view allowed = "must be names of pipelines, like [\"english\"]";
  if (!section.has("pipelines")) return std::nullopt;
  const auto read = section.text_or_texts("pipelines", "", allowed);
  const auto* names = std::get_if<std::vector<std::string>>(&read);
  if (names && std::ranges::all_of(*names, [](const auto& name) { return is_name(name); }))
    return *names;
  section.wrong("pipelines", std::string(allowed));
  return std::nullopt;
}

class Reader {
 public:
  TenantRule read(Section& section) {
    TenantRule tenant{.name = section.text("name", "")};
    if (!is_tenant_name(tenant.name))
      section.wrong("name", "must be 1 to 64 characters of A-Z a-z 0-9 . _ -");
    if (!names_.insert(tenant.name).second) section.wrong("name", "another tenant has this name");
    for (Section& token : section.sections("tokens")) tenant.tokens.push_back(read_token(token));
    tenant.pipelines = read_pipelines(section);
    tenant.streams = section.count("streams", TenantRule::usual_streams, 1, most_streams);
    tenant.opens = read_rate(section, "opens", 1);
    tenant.signal = read_rate(section, "signal", least_signal_at_once);
    section.refuse_unknown();
    return tenant;
  }

 private:
  TenantToken read_token(Section& section) {
    const auto digest = from_hex(section.text("sha256", ""));
    if (!digest)
      section.wrong("sha256",
                    "must be the SHA-256 of a token in 64 hexadecimal digits, as millrace token "
                    "new prints it");
    TenantToken token{.digest = digest.value_or(TokenDigest()), .until = section.moment("until")};
    if (!digests_.insert(token.digest).second)
      section.wrong("sha256", "the file has this token twice");
    section.refuse_unknown();
    return token;
  }

  std::set<std::string> names_;
  std::set<TokenDigest> digests_;
};

}  // namespace

Result<TenantList, std::string> parse_tenants(std::string_view text, const std::string& file) {
  using Read = Result<TenantList, std::string>;
  const auto table = read_toml(text);
  if (!table)
    return Read(boost::system::in_place_error,
                file + ":" + std::to_string(table.error().line) + ": " + table.error().message);
  Findings findings{.file = file, .error = {}, .repeats_values = false};
  Section root(*table, "", 1, findings);
  Reader reader;
  std::vector<TenantRule> tenants;
  for (Section& section : root.sections("tenant")) {
    tenants.push_back(reader.read(section));
    if (findings.error) break;
  }
  root.refuse_unknown();
  if (findings.error) return Read(boost::system::in_place_error, *findings.error);
  return Read(boost::system::in_place_value, std::move(tenants));
}

Result<TenantList, std::string> read_tenants(const std::string& file) {
  const auto text = read_small_file(file, largest_file);
  if (!text) return {boost::system::in_place_error, file + ": " + text.error()};
  return parse_tenants(*text, file);
}

}  // namespace millrace
