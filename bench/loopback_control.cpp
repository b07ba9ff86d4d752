// SPDX-License-Identifier: Apache-2.0
#include "bench/loopback_control.h"

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <thread>
#include <utility>

#include "transport/spawn.h"

namespace millrace::bench {

namespace {

using namespace std::chrono_literals;

class Control {
 public:
  Control(const Packets& packets, Schedule& schedule, Duration wait)
      : packets_(packets), schedule_(schedule), wait_(wait) {}

  ControlTimes run() {
    Acceptor acceptor(reading_, Tcp::endpoint(net::ip::address_v4::loopback(), 0));
    std::vector<Socket> writers;
    for (std::uint32_t i = 0; i < schedule_.streams(); ++i) {
      Socket writer(writing_), reader(reading_);
      writer.connect(acceptor.local_endpoint());
      writer.set_option(Tcp::no_delay(true));
      acceptor.accept(reader);
      writers.push_back(std::move(writer));
      spawn(reading_.get_executor(), receive(std::move(reader)));
    }
    schedule_.start(Clock::now() + 200ms);
    for (std::uint32_t i = 0; i < writers.size(); ++i)
      spawn(writing_.get_executor(), send(std::move(writers[i]), i));
    std::jthread reader([this] { reading_.run(); });
    writing_.run();
    reader.join();
    return std::move(times_);
  }

 private:
  Task<> send(Socket socket, std::uint32_t stream) {
    const auto give = [&](std::string_view packet) { return write(socket, packet); };
    co_await send_paced(packets_, schedule_, stream, give);
  }

  static Task<bool> write(Socket& socket, std::string_view packet) {
    const auto [error, size] = co_await net::async_write(socket, net::buffer(packet), no_throw);
    co_return !error;
  }

  Task<> receive(Socket socket) {
    Timer timer(reading_.get_executor());
    std::vector<std::byte> packet(packet_bytes);
    for (;;) {
      const auto [error, size] = co_await net::async_read(socket, net::buffer(packet), no_throw);
      if (error) co_return;
      if (wait_ > Duration::zero()) {
        if (std::exchange(waiting_, true)) continue;
        timer.expires_after(wait_);
        co_await timer.async_wait(no_throw);
        waiting_ = false;
      }
      note(packet, Clock::now());
    }
  }

  void note(Bytes packet, Time now) {
    const auto head = packets_.read(packet);
    if (!head || head->due < schedule_.counted_from()) return;
    times_.since_due.add(now - head->due - wait_);
    times_.since_sent.add(now - head->sent - wait_);
  }

  const Packets& packets_;
  Schedule& schedule_;
  const Duration wait_;
  net::io_context reading_{1}, writing_{1};
  bool waiting_ = false;  // for the packet that came first
  ControlTimes times_;
};

}  // namespace

ControlTimes run_control(const Packets& packets, Schedule& schedule, Duration wait) {
  Control control(packets, schedule, wait);
  return control.run();
}

}  // namespace millrace::bench
