// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/recording/writer/kept_slices.h"
#include "tests/support/allocations.h"

using namespace millrace;
using namespace millrace::recording;
using Kind = Event::Kind;

namespace {

constexpr std::size_t page_frames = PagePool::page_bytes / sizeof(std::int16_t);

// Uses up the pages with frames of another stream.
void fill(PagesUnderTest& pages, StreamPen& other) {
  for (std::size_t i = 0; i <= pages.pool.pages(); ++i)
    add_frames(other, 0, page_frames, second(static_cast<std::int64_t>(i)));
}

}  // namespace

TEST_CASE_METHOD(PagesUnderTest, "a commit has the events and frames of a stream since the last") {
  StreamPen stream = pen(7);
  stream.event({.kind = Kind::open}, second(5), {});
  add_frames(stream, 1, 100, second(6));
  writer.hand_over();
  commit();
  add_frames(stream, 101, 50, second(7));
  stream.event({.kind = Kind::flush, .mark = 9}, second(7), {});
  writer.hand_over();
  commit();
  const auto& all = slices(7);
  REQUIRE(all.size() == 2);
  CHECK(all[0].events.size() == 2);
  CHECK(all[0].frames == frames_from(1, 100));
  CHECK(all[1].number == 1);
  CHECK(all[1].first_event == 2);
  CHECK(all[1].begin == 100);
  CHECK(all[1].frames == frames_from(101, 50));
  CHECK(all[1].events[1].event.mark == 9u);
  CHECK(all[1].events[1].at == second(7));
}

TEST_CASE_METHOD(PagesUnderTest, "a stream that is opened anew begins at its position") {
  StreamPen stream = pen(7);
  stream.event({.count = 1000, .rows = 12}, second(5), {});
  add_frames(stream, 1, 100, second(6));
  stream.event({.kind = Kind::gap, .count = 30}, second(7), {});
  writer.hand_over();
  commit();
  add_frames(stream, 101, 50, second(8));
  stream.close({});
  CHECK(stream.finish());
  writer.hand_over();
  commit();
  const auto& all = slices(7);
  REQUIRE(all.size() == 2);
  CHECK(all[0].first_event == 0);
  CHECK(all[0].begin == 1000);
  CHECK(all[0].events[0].event.count == 1000);
  CHECK(all[0].events[0].event.rows == 12);
  CHECK(all[1].begin == 1130);
  REQUIRE(all[1].closing);
  CHECK(all[1].closing->frames == 150);
  CHECK(all[1].closing->lost == 30);
}

TEST_CASE_METHOD(PagesUnderTest, "frames that were read at the same instant are one event") {
  StreamPen stream = pen(1);
  for (int i = 0; i < 5; ++i)
    add_frames(stream, static_cast<std::uint64_t>(1 + 20 * i), 20, second(6));
  add_frames(stream, 101, 20, second(7));
  writer.hand_over();
  commit();
  REQUIRE(slices(1)[0].events.size() == 2);
  CHECK(slices(1)[0].events[0].event.count == 100);
  CHECK(slices(1)[0].frames == frames_from(1, 120));
}

TEST_CASE_METHOD(PagesUnderTest, "an event between frames keeps them apart") {
  StreamPen stream = pen(1);
  add_frames(stream, 1, 20, second(6));
  stream.event({.kind = Kind::size, .cause = Cause::load, .count = 40}, second(6), {});
  add_frames(stream, 21, 20, second(6));
  writer.hand_over();
  commit();
  CHECK(slices(1)[0].events.size() == 3);
}

TEST_CASE_METHOD(PagesUnderTest, "frames that are longer than a page are several events") {
  StreamPen stream = pen(1);
  add_frames(stream, 1, 3 * page_frames, second(6));
  writer.hand_over();
  commit();
  CHECK(slices(1)[0].events.size() == 4);
  CHECK(slices(1)[0].frames == frames_from(1, 3 * page_frames));
}

TEST_CASE_METHOD(PagesUnderTest, "a frame that is longer than 64 KiB has room in a page") {
  StreamMeta meta = meta_of(1);
  meta.frames = {.element = Element::f32, .values = 65'535, .rate = 100, .features = true};
  PagePool wide(0, 1, meta.frames.bytes());
  PageWriter thread(wide, 0, stats);
  StreamPen stream(thread, std::make_unique<StreamMeta>(meta));
  const std::vector<std::byte> frame(meta.frames.bytes());
  stream.event({.kind = Kind::frames, .count = 1}, second(6), {Bytes(frame), Bytes()});
  CHECK(stats.dropped[DropReason::queue_full].value() == 0);
}

TEST_CASE("without a page, events are dropped, and the next slice states it") {
  PagesUnderTest pages(4);
  StreamPen other = pages.pen(1), stream = pages.pen(2);
  stream.event({.kind = Kind::open}, second(5), {});
  add_frames(stream, 1, 10, second(5));
  fill(pages, other);
  add_frames(stream, 11, 10, second(6));
  stream.event({.kind = Kind::gap, .count = 30}, second(6), {});
  stream.event({.kind = Kind::size, .count = 40}, second(6), {});
  CHECK(pages.stats.dropped[DropReason::queue_full].value() == 2);  // and one of the other stream
  pages.commit();
  add_frames(stream, 21, 10, second(7));
  pages.writer.hand_over();
  pages.commit();
  const KeptSlice& after = pages.slices(2)[1];
  CHECK(after.number == 2);
  CHECK(after.lost == LostEvents{.first_event = 2, .begin = 10, .reason = DropReason::queue_full});
  CHECK(after.first_event == 5);
  CHECK(after.begin == 50);
  CHECK(after.size == 40);
  CHECK(after.frames == frames_from(21, 10));
  CHECK(pages.kept.skips == std::vector{DropReason::queue_full});
}

TEST_CASE("a slice ends where events were dropped") {
  PagesUnderTest pages(4);
  StreamPen other = pages.pen(1), stream = pages.pen(2);
  add_frames(stream, 1, 10, second(5));
  fill(pages, other);
  add_frames(stream, 11, 10, second(6));
  pages.take();  // the pages are not free before the commit, except these
  for (int i = 0; i < 2; ++i) {
    pages.pool.give_back(*pages.held.back());
    pages.held.pop_back();
  }
  add_frames(stream, 21, 10, second(7));
  pages.writer.hand_over();
  pages.commit();
  REQUIRE(pages.slices(2).size() == 2);
  CHECK(pages.slices(2)[0].frames == frames_from(1, 10));
  CHECK(pages.slices(2)[1].lost->first_event == 1);
  CHECK(pages.slices(2)[1].frames == frames_from(21, 10));
}

TEST_CASE("a stream that begins and ends while there is no page is recorded as lost") {
  PagesUnderTest pages(4);
  StreamPen other = pages.pen(1);
  fill(pages, other);
  auto stream = std::make_unique<StreamPen>(pages.pen(2));
  stream->event({.kind = Kind::open}, second(5), {});
  add_frames(*stream, 1, 10, second(5));
  stream->event({.kind = Kind::end}, second(5), {});
  stream->close({.rows = 3, .complete = true});
  REQUIRE_FALSE(stream->finish());
  pages.writer.finish_later(std::move(stream));
  pages.commit();
  pages.writer.hand_over();
  pages.commit();
  CHECK(pages.writer.unfinished() == 0);
  const KeptSlice& only = pages.slices(2).at(0);
  CHECK(only.lost == LostEvents{});
  CHECK(only.first_event == 3);
  CHECK(only.closing == StreamTotals{.rows = 3, .frames = 10, .complete = true});
}

TEST_CASE_METHOD(PagesUnderTest, "the last record has the totals of the stream") {
  StreamPen stream = pen(1);
  add_frames(stream, 1, 10, second(5));
  stream.event({.kind = Kind::gap, .count = 7}, second(5), {});
  stream.close({.rows = 4, .digest = 5, .closing = 2, .complete = true});
  REQUIRE(stream.finish());
  writer.hand_over();
  commit();
  CHECK(slices(1)[0].closing ==
        StreamTotals{
            .rows = 4, .frames = 10, .lost = 7, .digest = 5, .closing = 2, .complete = true});
}

TEST_CASE_METHOD(PagesUnderTest, "answers of any length are recorded") {
  StreamPen stream = pen(1);
  const std::string longest(5 * PagePool::page_bytes, 'x');
  stream.answer(0, BatchId{3}, {Answer::Kind::json, "1", false});
  stream.answer(1, BatchId{3}, {Answer::Kind::text, longest, false});
  stream.answer(2, BatchId{4}, {Answer::Kind::text, "", false});
  writer.hand_over();
  commit();
  using Answers = std::vector<std::pair<std::uint64_t, std::string>>;
  CHECK(slices(1)[0].answers == Answers{{0, "1"}, {1, longest}, {2, ""}});
}

TEST_CASE("an answer for which there is no page is dropped whole, and the next slice states it") {
  PagesUnderTest pages(4);
  StreamPen stream = pages.pen(1);
  stream.answer(0, BatchId{3},
                {Answer::Kind::text, std::string(5 * PagePool::page_bytes, 'x'), false});
  CHECK(pages.stats.dropped[DropReason::queue_full].value() == 1);
  pages.commit();
  add_frames(stream, 1, 10, second(5));
  stream.answer(1, BatchId{3}, {Answer::Kind::text, "y", false});
  pages.writer.hand_over();
  pages.commit();
  const KeptSlice& only = pages.slices(1).at(0);
  CHECK(only.number == 1);
  CHECK(only.first_event == 0);
  CHECK(only.lost == LostEvents{.reason = DropReason::queue_full});
  CHECK(only.answers.size() == 1);
  CHECK(only.answers[0].second == "y");
}

TEST_CASE_METHOD(PagesUnderTest, "texts of any length are recorded, in order with the frames") {
  StreamPen stream = pen(1);
  const std::string longest(5 * PagePool::page_bytes, '1');
  add_text(stream, "1", second(5));
  add_frames(stream, 1, 10, second(5));
  add_text(stream, longest, second(6));
  add_text(stream, "{}", second(7), Kind::set);
  add_frames(stream, 11, 10, second(7));
  writer.hand_over();
  take();
  CHECK(streams.bytes() == 1 + longest.size() + 2 + 2 * 20);  // what a commit is bounded by
  commit();
  const KeptSlice& only = slices(1).at(0);
  std::vector<Kind> kinds;
  for (const RecordedEvent& read : only.events) kinds.push_back(read.event.kind);
  CHECK(kinds == std::vector{Kind::message, Kind::frames, Kind::message, Kind::set, Kind::frames});
  CHECK(only.texts == std::vector<std::string>{"1", longest, "{}"});
  CHECK(only.events[2].event.count == longest.size());
  CHECK(only.events[2].at == second(6));
}

TEST_CASE("a text for which there is no page is dropped whole, and the next slice states it") {
  PagesUnderTest pages(4);
  StreamPen stream = pages.pen(1);
  stream.event({.kind = Kind::open}, second(5), {});
  add_text(stream, std::string(5 * PagePool::page_bytes, '1'), second(5));
  CHECK(pages.stats.dropped[DropReason::queue_full].value() == 1);
  pages.commit();
  add_text(stream, "2", second(6));
  pages.writer.hand_over();
  pages.commit();
  REQUIRE(pages.slices(1).size() == 2);
  const KeptSlice& after = pages.slices(1)[1];
  CHECK(after.lost == LostEvents{.first_event = 1, .reason = DropReason::queue_full});
  CHECK(after.first_event == 2);
  CHECK(after.texts == std::vector<std::string>{"2"});
}

TEST_CASE_METHOD(PagesUnderTest, "while recording is shed, events are dropped because of memory") {
  StreamPen stream = pen(1);
  add_frames(stream, 1, 10, second(5));
  writer.shed(true);
  add_frames(stream, 11, 10, second(6));
  CHECK(stats.dropped[DropReason::memory].value() == 1);
  writer.shed(false);
  add_frames(stream, 21, 10, second(7));
  writer.hand_over();
  commit();
  REQUIRE(slices(1).size() == 2);
  CHECK(slices(1)[0].frames == frames_from(1, 10));
  CHECK(slices(1)[1].lost->reason == DropReason::memory);
}

TEST_CASE_METHOD(PagesUnderTest, "the page that was used last is used first") {
  StreamPen stream = pen(1);
  add_frames(stream, 1, 10, second(5));
  Page* const first = writer.current();
  for (int i = 0; i < 5; ++i) {
    writer.hand_over();
    commit();
    add_frames(stream, 1, 10, second(6));
    CHECK(writer.current() == first);
  }
}

TEST_CASE_METHOD(PagesUnderTest, "in steady state events, answers and slices need no allocation") {
  StreamPen stream = pen(1);
  const std::vector<std::byte> bytes(3200);
  const Answer answer{Answer::Kind::json, "{\"text\":\"a longer answer\"}", false};
  std::int64_t now = 0;
  // A sink that drops: kept slices are copies.
  const auto round = [&] {
    for (int i = 0; i < 100; ++i) {
      stream.event({.kind = Kind::frames, .count = 1600}, second(++now), {Bytes(bytes), Bytes()});
      stream.event({.kind = Kind::flush}, second(now), {});
      add_text(stream, answer.data, second(now));
      stream.answer(static_cast<std::uint64_t>(now), BatchId{1}, answer);
    }
    writer.hand_over();
    pool.filled().drain(taken);
    for (Page* const page : taken) streams.take(*page);
    for (PendingStream* const waiting : streams.waiting()) waiting->begin_next();
    streams.clear();
    for (Page* const page : taken) pool.give_back(*page);
  };
  for (int i = 0; i < 10; ++i) round();
  const std::size_t before = test::allocations();
  for (int i = 0; i < 100; ++i) round();
  CHECK(test::allocations() == before);
}
