// SPDX-License-Identifier: Apache-2.0
#include "commands/recorded/verify/slice_order.h"

#include <catch2/catch.hpp>
#include <sstream>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace millrace::recordings {
namespace {

using Kind = Event::Kind;
using recording::Slice;

recording::RecordedEvent event(Kind kind, std::uint64_t count = 0) {
  return {.event = {.kind = kind, .count = count}};
}

// Adds slices of stream 17 to the order of a directory, and collects the problems.
class Order {
 public:
  explicit Order(bool all_files = true) : order_(all_files, problems_) {}

  void add(std::uint32_t number, std::uint64_t first_event, std::uint64_t begin,
           const std::vector<recording::RecordedEvent>& events, Slice more = {},
           const std::string& run = "a") {
    more.stream = 17;
    more.first_event = first_event;
    more.begin = begin;
    more.events = events;
    order_.add(1, run, number, more);
  }
  // The problems, without the name of the file.
  std::string problems() {
    problems_.print();
    std::string text = out_.str();
    for (const std::string name = "0000000001.mcap: stream 17, "; text.find(name) != text.npos;)
      text.erase(text.find(name), name.size());
    return text;
  }
  SliceOrder::Counts counts() const { return order_.counts(); }

 private:
  TemporaryDirectory path_;
  Directory directory_ = std::move(*Directory::open(path_.path(), Directory::For::writing));
  std::ostringstream out_, err_;
  Progress progress_{err_, false};
  Problems problems_{directory_, out_, progress_};
  SliceOrder order_;
};

Slice totals(std::uint64_t frames, std::uint64_t lost = 0, bool complete = true) {
  return {.closing = recording::StreamTotals{.frames = frames, .lost = lost, .complete = complete}};
}

TEST_CASE("slices that continue each other are whole") {
  Order order;
  order.add(0, 0, 0, {event(Kind::open), event(Kind::frames, 5)});
  order.add(1, 2, 5, {event(Kind::gap, 3), event(Kind::size, 80)});
  order.add(2, 4, 8, {event(Kind::frames, 2), event(Kind::end)}, [] {
    Slice last = totals(7, 3);
    last.size = 80;
    return last;
  }());
  CHECK(order.problems() == "");
  CHECK(order.counts().streams == 1);
  CHECK(order.counts().whole == 1);
  CHECK(order.counts().lost_parts == 0);
}

TEST_CASE("missing slices are a problem, at the position where they begin") {
  Order order;
  order.add(0, 0, 0, {event(Kind::open), event(Kind::frames, 5)});
  order.add(2, 4, 25, {event(Kind::end)}, totals(25));
  CHECK(order.problems() == "position 5: 2 events are missing, up to position 25\n");
  CHECK(order.counts().whole == 0);
}

TEST_CASE("an end that is written again after a failed sync is no problem, another one is") {
  Order order;
  order.add(0, 0, 0, {event(Kind::open), event(Kind::frames, 5), event(Kind::end)}, totals(5));
  Slice again = totals(5);
  again.lost = recording::LostEvents{};
  order.add(1, 3, 5, {}, again);
  CHECK(order.problems() == "");
  CHECK(order.counts().whole == 1);
  CHECK(order.counts().lost_parts == 0);
  order.add(2, 3, 5, {}, totals(6));
  CHECK(order.problems().starts_with("position 5: a slice follows the end of the stream\n"));
}

TEST_CASE("a part that the recorder states as lost is no problem") {
  Order order;
  order.add(0, 0, 0, {event(Kind::open), event(Kind::frames, 5)});
  order.add(2, 4, 25, {event(Kind::end)}, [] {
    Slice slice = totals(25);
    slice.lost = recording::LostEvents{.first_event = 2, .begin = 5};
    return slice;
  }());
  CHECK(order.problems() == "");
  CHECK(order.counts().whole == 0);
  CHECK(order.counts().lost_parts == 1);
}

TEST_CASE("a slice that is missing without events is a lost part") {
  Order order;
  order.add(0, 0, 0, {event(Kind::open), event(Kind::frames, 5)});
  order.add(2, 2, 5, {event(Kind::end)}, totals(5));
  CHECK(order.problems() == "");
  CHECK(order.counts().whole == 0);
  CHECK(order.counts().lost_parts == 1);
}

TEST_CASE("a part that is stated as lost, but is on the disk, is not lost") {
  Order order;
  order.add(0, 0, 0, {event(Kind::open), event(Kind::frames, 5)});
  order.add(1, 2, 5, {event(Kind::frames, 5)});
  order.add(2, 3, 10, {event(Kind::end)}, [] {
    Slice slice = totals(10);
    slice.lost = recording::LostEvents{.first_event = 2, .begin = 5};
    return slice;
  }());
  CHECK(order.problems() == "");
  CHECK(order.counts().whole == 1);
}

TEST_CASE("a begin that is missing is a problem only if no file was deleted") {
  for (const bool all_files : {true, false}) {
    Order order(all_files);
    order.add(3, 9, 100, {event(Kind::end)}, totals(100));
    CHECK(order.problems().empty() == !all_files);
    CHECK(order.counts().whole == 0);
    CHECK(order.counts().lost_parts == (all_files ? 0 : 1));
  }
}

TEST_CASE("slices that contradict each other are problems") {
  const std::vector begin{event(Kind::open), event(Kind::frames, 5)};
  const auto problem = [&](std::uint32_t number, std::uint64_t first_event, std::uint64_t position,
                           const std::vector<recording::RecordedEvent>& events, Slice more = {},
                           const std::string& run = "a") {
    Order order;
    order.add(1, 0, 0, begin);
    order.add(number, first_event, position, events, more, run);
    CHECK(order.counts().whole == 0);
    return order.problems();
  };
  const std::vector end{event(Kind::end)};
  CHECK(problem(1, 2, 5, end, totals(5)) == "position 5: slice 1 follows slice 1\n");
  CHECK(problem(2, 1, 5, end, totals(5)) ==
        "position 5: the slice begins with event 1, but the stream has 2 events before it\n");
  CHECK(problem(2, 2, 6, end, totals(5)) ==
        "position 6: the slice before it ended at position 5\n");
  CHECK(problem(2, 2, 5, end, {.size = 80}) ==
        "position 5: the slice begins with the size 80, but the size in force is 0\n");
  CHECK(problem(2, 2, 5, {event(Kind::open)}) == "position 5: event 2 must not be here: open\n");
  CHECK(problem(2, 2, 5, {event(Kind::end), event(Kind::flush)}) ==
        "position 5: event 3 must not be here: flush\n");
  CHECK(problem(2, 2, 5, end, totals(6)) ==
        "position 5: the totals are 6 frames and 0 lost, but the stream has 5 frames and 0 lost\n");
  CHECK(problem(2, 2, 5, {}, totals(5)) ==
        "position 5: the stream has no end, but its totals say that it has one\n");
  CHECK(problem(2, 2, 5, end, totals(5), "b") ==
        "position 5: the file is of another run of the service than the stream\n");
}

TEST_CASE("a stream that its lanes gave up after its end is not whole, and no problem") {
  Order order;
  order.add(0, 0, 0, {event(Kind::open), event(Kind::end)}, totals(0, 0, false));
  CHECK(order.problems() == "");
  CHECK(order.counts().whole == 0);
}

TEST_CASE("a slice after the end of its stream is a problem") {
  Order order;
  order.add(0, 0, 0, {event(Kind::open), event(Kind::end)}, totals(0));
  order.add(1, 2, 0, {});
  CHECK(order.problems() == "position 0: a slice follows the end of the stream\n");
}

}  // namespace
}  // namespace millrace::recordings
