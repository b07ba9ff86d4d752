// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/time.h"

namespace millrace {

namespace net = boost::asio;

// Each io_context has one thread, so the concrete executor type can be used everywhere. A
// type-erased executor would cost an allocation and a virtual call per asynchronous operation.
using Executor = net::io_context::executor_type;
using Tcp = net::ip::tcp;
using Socket = net::basic_stream_socket<Tcp, Executor>;
using Acceptor = net::basic_socket_acceptor<Tcp, Executor>;
using Resolver = net::ip::basic_resolver<Tcp, Executor>;
using Timer = net::basic_waitable_timer<Clock, net::wait_traits<Clock>, Executor>;

template <class T = void>
using Task = net::awaitable<T, Executor>;

// Completion token for co_await that throws the error.
inline constexpr net::use_awaitable_t<Executor> throwing{};

// Completion token for co_await that returns the error as a value instead of throwing it: a closed
// connection is normal control flow.
inline constexpr net::as_tuple_t<net::use_awaitable_t<Executor>> no_throw{
    net::use_awaitable_t<Executor>{}};

}  // namespace millrace
