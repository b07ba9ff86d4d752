// SPDX-License-Identifier: Apache-2.0
#include "load/clients/service_endpoint.h"

#include <boost/asio/connect.hpp>
#include <stdexcept>

namespace millrace::load {

Tcp::endpoint find_endpoint(const ServiceUrl& service) {
  net::io_context context;
  Resolver resolver(context);
  boost::system::error_code error;
  const auto endpoints = resolver.resolve(service.host, service.port, error);
  // A single address needs no test connection: the streams report whether it answers.
  if (!error && endpoints.size() == 1) return endpoints.begin()->endpoint();
  Tcp::endpoint endpoint;
  if (!error) {
    Socket trial(context);
    endpoint = net::connect(trial, endpoints, error);
  }
  if (error) throw std::runtime_error(service.host + ":" + service.port + ": " + error.message());
  return endpoint;
}

}  // namespace millrace::load
