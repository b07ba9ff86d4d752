// SPDX-License-Identifier: Apache-2.0
#include "commands/console/commands.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "commands/console/command_line.h"
#include "service/config/address.h"
#include "service/config/toml/units.h"
#include "transport/http/client.h"

namespace millrace {

namespace {

struct HealthcheckArguments {
  std::string url = "http://127.0.0.1:9464/readyz";
  std::string timeout = "2s";
  std::string ca, name;  // only for https://
};

struct Url {
  bool tls;
  TcpAddress address;
  std::string path;
};

// Parses http://ADDRESS:PORT/PATH and https://…; nullopt for any other text.
std::optional<Url> parse_url(std::string_view text) {
  constexpr std::string_view plain = "http://", secure = "https://";
  const bool tls = text.starts_with(secure);
  if (!tls && !text.starts_with(plain)) return std::nullopt;
  text.remove_prefix(tls ? secure.size() : plain.size());
  const auto slash = std::min(text.find('/'), text.size());
  const auto address = parse_tcp(text.substr(0, slash));
  const std::string_view path = text.substr(slash);
  const auto printable = [](char c) { return c > ' ' && c < 127; };
  if (!address || !std::ranges::all_of(path, printable)) return std::nullopt;
  return Url{tls, *address, path.empty() ? "/" : std::string(path)};
}

// Nullopt for http://. Throws std::runtime_error for options that cannot be used.
std::optional<ServerCheck> check_of(const Url& url, const HealthcheckArguments& arguments) {
  const auto& [host, port] = url.address;
  if (url.tls)
    return ServerCheck{TlsContext::for_clients({.ca = arguments.ca}),
                       arguments.name.empty() ? host : arguments.name};
  if (!(arguments.ca + arguments.name).empty())
    throw std::runtime_error("--ca and --name need a URL with https://");
  return std::nullopt;
}

// Throws std::runtime_error or std::invalid_argument if the service is not ready.
void check(const HealthcheckArguments& arguments) {
  const auto timeout = parse_time(arguments.timeout);
  if (!timeout)
    throw std::runtime_error("--timeout: \"" + arguments.timeout + "\" must be a time such as 2s");
  const auto url = parse_url(arguments.url);
  if (!url)
    throw std::runtime_error("--url: \"" + arguments.url +
                             "\" must be http://ADDRESS:PORT/PATH or https://…");
  const auto& [host, port] = url->address;
  const auto status = get_status({net::ip::make_address(host), port}, readable(url->address),
                                 url->path, *timeout, check_of(*url, arguments));
  if (!status) throw std::runtime_error(arguments.url + ": " + status.error());
  if (*status != 200)
    throw std::runtime_error(arguments.url + ": status " + std::to_string(*status));
}

}  // namespace

void add_healthcheck_command(CommandLine& program, Console& console) {
  Command command =
      program.add("healthcheck", "Check whether a service is ready; exit code 0 if it is, else 1");
  const auto arguments = std::make_shared<HealthcheckArguments>();
  command.add("--url", &arguments->url, "URL to request; the service is ready if the status is 200")
      .shows_default();
  command.add("--timeout", &arguments->timeout, "Longest time to wait for the answer")
      .shows_default();
  command
      .add("--ca", &arguments->ca,
           "Certificates of the authorities to trust (PEM), for https://. Default: the system's")
      .type("FILE");
  command
      .add("--name", &arguments->name,
           "The name that the service's certificate must have. Default: the address")
      .type("NAME");
  command.run(console, [arguments] { check(*arguments); });
}

}  // namespace millrace
