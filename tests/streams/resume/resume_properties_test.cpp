// SPDX-License-Identifier: Apache-2.0
// Streams of clients that resume, under random losses of connections and of streams.
#include <catch2/catch.hpp>
#include <map>

#include "tests/streams/resume/model_play.h"
#include "tests/support/chunk_reference.h"
#include "tests/support/sampled.h"

using namespace millrace;
using test::expect;
using test::FromService;
using test::ModelPlay;
using Event = millrace::Event;

namespace {

using Texts = std::vector<std::string>;

// The results and `flushed` that the client received, in order.
Texts received(const ModelPlay& play) {
  Texts all;
  for (const FromService& one : play.client().messages()) {
    if (one.kind == FromService::Kind::result)
      all.push_back("result " + std::to_string(one.head.seq));
    if (one.kind == FromService::Kind::flushed)
      all.push_back("flushed " + std::to_string(one.mark));
  }
  return all;
}

// Those of an uncut stream with these rows.
Texts of_rows(const ModelPlay& play, const std::vector<ReadyRow>& rows) {
  Texts all;
  for (const ReadyRow& ready : rows) {
    if (test::ModelNode::has_result(ready.row.seq, play.used_rule().answered))
      all.push_back("result " + std::to_string(ready.row.seq));
    if (ready.row.mark) all.push_back("flushed " + std::to_string(*ready.row.mark));
  }
  return all;
}

Texts worker_messages(const ModelPlay& play) {
  Texts all;
  for (const FromService& one : play.client().messages())
    if (one.kind == FromService::Kind::message) all.push_back(one.text);
  return all;
}

void check_end(const ModelPlay& play) {
  for (const FromService& one : play.client().messages()) {
    expect(one.kind != FromService::Kind::error, "the client received an error");
    expect(one.kind != FromService::Kind::rejected, "a message was rejected");
    if (one.kind != FromService::Kind::closed) continue;
    const std::uint64_t all = play.script().frames(), sent = play.script().sent(all);
    expect(one.frames >= sent && one.frames <= (play.is_opened_anew() ? all : sent),
           "the total of frames is wrong");
  }
}

// All of the client's input arrives once and in order, and so do the messages to it.
void check_kept(const ModelPlay& play) {
  ReferenceChunker reference(play.used_rule().stream.chunk.spec);
  for (const auto& item : play.script().items()) reference.event(item.event);
  const test::LiveStream& live = *play.node(0).streams().back();
  check_end(play);
  Texts expected = of_rows(play, live.lane.rows), texts;
  for (std::uint64_t i = 0; i < play.node(0).sent_messages(); ++i)
    texts.push_back("message " + std::to_string(i));
  if (play.is_lost()) {
    const Texts some = received(play);
    expect(some.size() <= expected.size() && std::equal(some.begin(), some.end(), expected.begin()),
           "a lost stream gave other messages");
    return;
  }
  expect(live.rows() == reference.rows(), "other rows than those of the input without losses");
  test::LiveStream::Carried carried;
  for (const auto& item : play.script().items())
    if (item.event.has_text()) {
      const auto& message = reference.messages()[carried.size()];
      carried.emplace_back(message[1], message[0], item.text);
    }
  expect(live.carried() == carried, "other messages of the client than without losses");
  expect(received(play) == expected, "other results than without losses");
  expect(worker_messages(play) == texts, "other messages of the worker than without losses");
}

// The script's positions at which segments end and frames are lost.
std::map<std::uint64_t, bool> borders(const test::Script& script) {
  std::map<std::uint64_t, bool> all;  // by position: every stream has a LAST row there
  for (const auto& item : script.items())
    if (item.is_command() && !item.event.has_text())
      all[item.frame] |= item.event.kind != Event::Kind::gap;
  return all;
}

// The results of all rows: their numbers continue, and their bodies have every frame once.
void check_bodies(const ModelPlay& play) {
  std::vector<bool> covered(play.script().frames());
  auto expected = borders(play.script());
  std::uint64_t next = 0;
  for (const FromService& one : play.client().messages()) {
    if (one.kind != FromService::Kind::result) continue;
    expect(one.head.seq == next++, "a result is missing or was repeated");
    for (std::uint64_t i = one.head.begin; i < one.head.end; ++i) {
      expect(!covered.at(i), "a frame is in two bodies");
      covered[i] = true;
    }
    if ((one.head.flags & flag::last) == 0) continue;
    expect(expected.contains(one.head.end), "a segment ends elsewhere");
    expected[one.head.end] = false;
  }
  for (const auto& [position, is_missing] : expected)
    expect(!is_missing, "a segment does not end where it should");
  for (const auto& item : play.script().items()) {
    const bool has_frames = item.event.kind == Event::Kind::frames;
    if (!has_frames && item.event.kind != Event::Kind::gap) continue;
    for (std::uint64_t i = item.frame; i < item.end(); ++i)
      expect(covered[i] == has_frames, "a frame is in no body");
  }
}

// Each message of the client is in a row, at its position; in each stream at most once.
void check_carried(const ModelPlay& play) {
  std::map<std::string, std::uint64_t> positions;
  for (const auto& item : play.script().items())
    if (item.event.has_text()) positions[item.text] = item.frame;
  std::map<std::string, bool> found;
  for (const std::size_t node : {0, 1})
    for (const auto& stream : play.node(node).streams()) {
      std::map<std::string, bool> here;
      for (const auto& [row, position, text] : stream->carried()) {
        expect(!std::exchange(here[text], true), "a message of the client is twice in a stream");
        expect(positions.at(text) == position, "a message of the client moved");
        found[text] = true;
      }
    }
  expect(found.size() == positions.size(), "a message of the client was lost");
}

// The same, as far as it can be, if streams are opened anew from the client's numbers.
void check_anew(const ModelPlay& play) {
  check_end(play);
  Texts marks, expected;
  std::uint64_t next = 0;
  for (const FromService& one : play.client().messages()) {
    if (one.kind == FromService::Kind::flushed) marks.push_back(std::to_string(one.mark));
    if (one.kind != FromService::Kind::result) continue;
    while (next < one.head.seq)
      expect(!test::ModelNode::has_result(next++, play.used_rule().answered), "no result of a row");
    expect(next++ == one.head.seq, "a result was repeated");
  }
  for (const auto& item : play.script().items())
    if (item.event.mark) expected.push_back(std::to_string(*item.event.mark));
  expect(marks == expected, "a flushed is missing or was repeated");
  check_carried(play);
  if (play.used_rule().answered == 100) check_bodies(play);
}

template <class Check>
std::uint32_t play_all(std::uint32_t plays, bool loses_streams, const Check& check) {
  std::uint32_t lost = 0;
  for (std::uint32_t seed = 1; seed <= plays; ++seed) {
    try {
      const ModelPlay play(seed, loses_streams);
      check(play);
      lost += play.is_lost() || play.is_opened_anew() ? 1 : 0;
    } catch (const std::exception& error) {
      FAIL("seed " << seed << ": " << error.what());
    }
  }
  return lost;
}

}  // namespace

TEST_CASE("lost connections change no row and no message of a stream", "[property]") {
  const std::uint32_t plays = test::sampled(200'000u);
  const std::uint32_t lost = play_all(plays, false, check_kept);
  CHECK(lost > 0);
  CHECK(lost < plays / 4);
}

TEST_CASE("streams that are opened anew lose and repeat no frame and no result", "[property]") {
  const std::uint32_t plays = test::sampled(200'000u);
  const std::uint32_t lost = play_all(plays, true, check_anew);
  CHECK(lost > plays / 10);
}
