// SPDX-License-Identifier: Apache-2.0
#include "transport/net/tls/tls_context.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/transport/net/tls/tls_server.h"

using namespace millrace;
using namespace std::chrono_literals;
using Catch::Contains;
using test::Certificate;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Why the files are no server's; empty if they are.
std::string error(const TlsFiles& files) {
  try {
    TlsContext::for_servers(files);
  } catch (const std::invalid_argument& wrong) {
    return wrong.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a file that TLS cannot use is an error that names the file and the cause") {
  const Certificate one, other;
  const TlsFiles good{.certificate = one.path(), .key = one.key_path(), .ca = other.path()};
  CHECK(error(good).empty());
  const auto with = [&](std::string TlsFiles::*which, const std::string& path) {
    TlsFiles files = good;
    files.*which = path;
    return error(files);
  };
  const std::string& certificate = one.path();
  CHECK(with(&TlsFiles::certificate, "/nowhere") ==
        "/nowhere: cannot be read: No such file or directory");
  CHECK(with(&TlsFiles::certificate, one.key_path()) ==
        one.key_path() + ": must have certificates in the format PEM");
  CHECK(with(&TlsFiles::key, other.key_path()) ==
        other.key_path() + ": does not fit the certificate " + certificate);
  CHECK_THAT(with(&TlsFiles::ca, "/dev/null"), Contains("is not a regular file"));
  REQUIRE(::chmod(certificate.c_str(), 0600) == 0);
  CHECK(with(&TlsFiles::key, certificate) ==
        certificate + ": must have a key in the format PEM, without a password");
  REQUIRE(::chmod(one.key_path().c_str(), 0644) == 0);
  CHECK_THAT(error(good), Contains("has mode 0644"));
}

TEST_CASE("a certificate file that ends in the middle of a certificate is refused") {
  const Certificate one;
  const std::string whole = text_of(one.path());
  std::ofstream(one.path(), std::ios::app) << whole.substr(0, whole.size() / 2);
  CHECK_THAT(error({.certificate = one.path(), .key = one.key_path()}),
             Contains("must have certificates"));
}

TEST_CASE("contexts are equal if the content of their files is") {
  const Certificate one, other;
  const TlsFiles files{.certificate = one.path(), .key = one.key_path()};
  const TlsContext before = TlsContext::for_servers(files);
  CHECK(before == TlsContext::for_servers(files));
  std::filesystem::copy_file(other.path(), one.path(),
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy_file(other.key_path(), one.key_path(),
                             std::filesystem::copy_options::overwrite_existing);
  CHECK_FALSE(before == TlsContext::for_servers(files));
}

TEST_CASE("a context expires with the first of its certificates") {
  const Certificate late("DNS:localhost", 1'000'000), soon("DNS:authority", 1000);
  const TlsFiles files{.certificate = late.path(), .key = late.key_path()};
  const auto alone = TlsContext::for_servers(files).expires();
  std::ofstream(late.path(), std::ios::app) << text_of(soon.path());
  const auto chain = TlsContext::for_servers(files).expires();
  CHECK(alone - chain >= 998'000s);
  CHECK(alone - chain <= 1'000'000s);
}
