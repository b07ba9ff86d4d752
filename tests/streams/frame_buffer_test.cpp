// SPDX-License-Identifier: Apache-2.0
#include "streams/frames/frame_buffer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

using namespace millrace;

namespace {

// Frames of two bytes in blocks of ten by default; frame i has the value i.
struct Buffer {
  explicit Buffer(std::size_t block_frames = 10)
      : pool(2 * block_frames, 100, in_use), frames(pool, 2) {}

  void append(std::size_t count) {
    while (count > 0) {
      const MutableBytes writable = frames.writable(count);
      REQUIRE(writable.size() >= 2);
      REQUIRE(writable.size() <= 2 * count);
      for (std::size_t i = 0; i < writable.size() / 2; ++i) {
        const std::uint64_t value = frames.end() + i;
        writable[2 * i] = static_cast<std::byte>(value & 0xff);
        writable[2 * i + 1] = static_cast<std::byte>(value >> 8);
      }
      frames.append(writable.size() / 2);
      count -= writable.size() / 2;
    }
  }

  std::vector<int> window(std::uint64_t index, std::size_t count) const {
    std::vector<int> values;
    for (Bytes part : frames.window(index, count))
      for (std::size_t i = 0; i < part.size(); i += 2)
        values.push_back(static_cast<int>(part[i]) | static_cast<int>(part[i + 1]) << 8);
    return values;
  }

  std::int64_t blocks() const {
    return in_use.value() / static_cast<std::int64_t>(pool.block_bytes());
  }

  Gauge in_use;
  BlockPool pool;
  FrameBuffer frames;
};

}  // namespace

TEST_CASE("an empty buffer holds no block") {
  Buffer buffer;
  CHECK(buffer.blocks() == 0);
  buffer.append(3);
  CHECK(buffer.blocks() == 1);
  buffer.frames.release(3);
  CHECK(buffer.blocks() == 0);
  CHECK(buffer.frames.held() == 0);
}

TEST_CASE("a window is in one or two pieces") {
  Buffer buffer;
  buffer.append(25);
  CHECK(buffer.window(0, 3) == std::vector<int>{0, 1, 2});
  CHECK(buffer.frames.window(0, 10)[1].empty());
  CHECK(buffer.window(8, 4) == std::vector<int>{8, 9, 10, 11});
  CHECK(buffer.frames.window(8, 4)[0].size() == 4);
  CHECK(buffer.window(19, 2) == std::vector<int>{19, 20});
  CHECK(buffer.window(24, 1) == std::vector<int>{24});
  CHECK(buffer.window(25, 0).empty());
}

TEST_CASE("frames stay at their address until they are released") {
  Buffer buffer;
  buffer.append(15);
  const auto window = buffer.frames.window(5, 10);
  buffer.frames.release(5);
  buffer.append(1000);
  CHECK(buffer.frames.window(5, 10)[0].data() == window[0].data());
  CHECK(buffer.frames.window(5, 10)[1].data() == window[1].data());
  CHECK(buffer.window(5, 3) == std::vector<int>{5, 6, 7});
}

TEST_CASE("a block is given back as soon as its last frame is released") {
  Buffer buffer;
  buffer.append(35);
  CHECK(buffer.blocks() == 4);
  buffer.frames.release(19);
  CHECK(buffer.blocks() == 3);
  buffer.frames.release(20);
  CHECK(buffer.blocks() == 2);
  buffer.frames.release(3);
  CHECK(buffer.frames.held() == 15);
}

TEST_CASE("after a buffer was empty, frames begin with a new block") {
  Buffer buffer;
  buffer.append(7);
  buffer.frames.release(7);
  buffer.append(10);
  CHECK(buffer.blocks() == 1);
  CHECK(buffer.frames.window(7, 10)[1].empty());
  CHECK(buffer.window(7, 3) == std::vector<int>{7, 8, 9});
}

TEST_CASE("truncate() removes appended frames") {
  Buffer buffer;
  buffer.append(8);
  buffer.append(30);
  buffer.frames.truncate(8);
  CHECK(buffer.blocks() == 1);
  CHECK(buffer.frames.end() == 8);
  buffer.append(4);
  CHECK(buffer.window(6, 6) == std::vector<int>{6, 7, 8, 9, 10, 11});
  buffer.frames.release(12);
  buffer.append(3);
  buffer.frames.truncate(12);
  CHECK(buffer.blocks() == 0);
}

TEST_CASE("truncate() to the border of a block leaves no empty block") {
  Buffer buffer;
  buffer.append(15);
  buffer.frames.truncate(10);
  CHECK(buffer.blocks() == 1);
  buffer.append(2);
  CHECK(buffer.window(8, 4) == std::vector<int>{8, 9, 10, 11});
}

TEST_CASE("a buffer gives its blocks back when it is destroyed") {
  Gauge in_use;
  BlockPool pool(20, 100, in_use);
  {
    FrameBuffer frames(pool, 2);
    frames.append(frames.writable(10).size() / 2);
    CHECK(in_use.value() == 20);
  }
  CHECK(in_use.value() == 0);
}

TEST_CASE("a block holds a window, or about a page if that is more") {
  CHECK(FrameBuffer::block_bytes(2, 1600) == 4096);
  CHECK(FrameBuffer::block_bytes(2, 16000) == 32000);
  CHECK(FrameBuffer::block_bytes(320, 3) == 3840);
  CHECK(FrameBuffer::block_bytes(10000, 1) == 10000);
}

TEST_CASE("frames are correct after any appends, truncations and releases") {
  std::mt19937 random(11);
  const auto up_to = [&](std::uint64_t n) {
    return std::uniform_int_distribution<std::uint64_t>(0, n)(random);
  };
  Buffer buffer(16);
  std::uint64_t released = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t before = buffer.frames.end();
    buffer.append(up_to(40));
    if (up_to(4) == 0) buffer.frames.truncate(before + up_to(buffer.frames.end() - before));
    const std::uint64_t held = buffer.frames.end() - released;
    const std::uint64_t count = std::min<std::uint64_t>(up_to(16), held);
    const std::uint64_t index = released + up_to(held - count);
    const std::vector<int> window = buffer.window(index, count);
    for (std::size_t k = 0; k < count; ++k)
      if (window[k] != static_cast<int>((index + k) & 0xffff)) FAIL("frame " << index + k);
    released += std::min(up_to(60), buffer.frames.end() - released);
    buffer.frames.release(released);
    REQUIRE(buffer.frames.held() == buffer.frames.end() - released);
    REQUIRE(buffer.blocks() <= static_cast<std::int64_t>(buffer.frames.held() / 16 + 2));
  }
}
