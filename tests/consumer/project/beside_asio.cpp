// SPDX-License-Identifier: Apache-2.0
// A client and another library that uses Asio: both work in one program at the same time.
#include <beats.h>
#include <millrace/client.h>

#include <cstddef>
#include <exception>
#include <future>
#include <iostream>
#include <variant>
#include <vector>

namespace {

// The number of results of a second of audio: ten chunks and the end.
int stream_to(const char* url) {
  millrace::Client client(url);
  millrace::ClientStream stream = client.open({.rate = 16000});
  const std::vector<std::byte> packet(3200);
  for (int i = 0; i < 10; ++i) stream.send(packet);
  stream.end();
  int results = 0;
  while (const auto event = stream.next())
    results += std::holds_alternative<millrace::client_event::Result>(*event);
  return results;
}

}  // namespace

int main(int, char** arguments) try {
  auto beaten = std::async(std::launch::async, [] { return beats::beat(16, 100); });
  const int results = stream_to(arguments[1]);
  std::cout << results << " results, " << beaten.get() << " beats" << std::endl;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
