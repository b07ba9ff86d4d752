// SPDX-License-Identifier: Apache-2.0
#include "batcher/row_fifo.h"

#include <catch2/catch.hpp>

using namespace millrace;

namespace {

ReadyRow row(std::uint64_t seq) {
  ReadyRow row;
  row.row.seq = seq;
  return row;
}

}  // namespace

TEST_CASE("rows come out as they went in while the ring grows and wraps") {
  RowFifo fifo;
  std::uint64_t in = 0, out = 0;
  for (int round = 1; round < 40; ++round) {
    for (int i = 0; i < round; ++i) fifo.push(row(in++));
    for (std::size_t i = 0; i < fifo.size(); ++i) REQUIRE(fifo[i].row.seq == out + i);
    for (int i = 0; i < round / 2; ++i) {
      REQUIRE(fifo.front().row.seq == out++);
      fifo.pop();
    }
  }
  CHECK(fifo.size() == in - out);
}

TEST_CASE("a cleared fifo is empty and can be used again") {
  RowFifo fifo;
  for (std::uint64_t seq = 0; seq < 3; ++seq) fifo.push(row(seq));
  fifo.clear();
  CHECK(fifo.empty());
  fifo.push(row(9));
  CHECK(fifo.size() == 1);
  CHECK(fifo.front().row.seq == 9);
}
