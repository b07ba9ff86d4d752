// SPDX-License-Identifier: Apache-2.0
#include "load/clients/service_place.h"

#include <boost/asio/connect.hpp>
#include <stdexcept>

namespace millrace::load {

Tcp::endpoint find_place(const ServiceUrl& service) {
  net::io_context context;
  Resolver resolver(context);
  boost::system::error_code error;
  const auto places = resolver.resolve(service.host, service.port, error);
  // One address needs no trial: whether it answers is for the streams to tell.
  if (!error && places.size() == 1) return places.begin()->endpoint();
  Tcp::endpoint place;
  if (!error) {
    Socket trial(context);
    place = net::connect(trial, places, error);
  }
  if (error) throw std::runtime_error(service.host + ":" + service.port + ": " + error.message());
  return place;
}

}  // namespace millrace::load
