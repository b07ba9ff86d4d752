// SPDX-License-Identifier: Apache-2.0
#include "bench/options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace millrace::bench {

struct Options::Impl {
  explicit Impl(const char* description) : app(description) {}

  CLI::App app;
};

Options::Options(const char* description) : impl_(std::make_unique<Impl>(description)) {}
Options::~Options() = default;

template <class T>
Options& Options::add(const char* name, T& value, const char* help) {
  CLI::Option& option = *impl_->app.add_option(name, value, help)->capture_default_str();
  if (option.get_default_str() == "[]") option.default_str("");
  if (option.get_items_expected_max() > 1) option.delimiter(',');
  return *this;
}

template Options& Options::add(const char*, int&, const char*);
template Options& Options::add(const char*, std::uint16_t&, const char*);
template Options& Options::add(const char*, std::uint32_t&, const char*);
template Options& Options::add(const char*, std::uint64_t&, const char*);
template Options& Options::add(const char*, double&, const char*);
template Options& Options::add(const char*, std::optional<double>&, const char*);
template Options& Options::add(const char*, std::string&, const char*);
template Options& Options::add(const char*, std::vector<std::uint32_t>&, const char*);

Options& Options::flag(const char* name, bool& value, const char* help) {
  impl_->app.add_flag(name, value, help);
  return *this;
}

void Options::parse(int argc, char** argv) try {
  impl_->app.parse(argc, argv);
} catch (const CLI::ParseError& error) {
  std::exit(impl_->app.exit(error));
}

void Options::require(bool holds, const char* message) const {
  if (!holds) std::exit(impl_->app.exit(CLI::ValidationError(message)));
}

}  // namespace millrace::bench
