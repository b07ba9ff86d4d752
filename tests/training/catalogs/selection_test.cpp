// SPDX-License-Identifier: Apache-2.0
#include "training/catalogs/selection.h"

#include <map>
#include <set>

#include "tests/training/catalogs/catalog_under_test.h"
#include "tests/training/catalogs/npy_files.h"
#include "tests/training/plans/listed_catalog.h"

namespace millrace::training {
namespace {

using Kind = Event::Kind;

SharedCatalog selected(SharedCatalog catalog, const Selection& selection) {
  auto streams = select_streams(std::move(catalog), selection);
  if (!streams) FAIL(streams.error().message);
  return std::move(*streams);
}

std::set<std::string> names_of(const Catalog& catalog) {
  std::set<std::string> names;
  for (std::uint64_t i = 0; i < catalog.size(); ++i) names.insert(catalog.name(i));
  return names;
}

std::shared_ptr<ListedCatalog> listed(std::vector<std::uint64_t> lengths) {
  return std::make_shared<ListedCatalog>(std::move(lengths));
}

const std::vector<SplitPart> split{{"test", 0.1}, {"valid", 0.2}};

InnerEvent event(Kind kind, std::uint64_t frame, std::uint64_t count = 0) {
  return {{.kind = kind, .count = count}, frame};
}

// Kind, frame and count of the events of a stream.
std::vector<std::tuple<Kind, std::uint64_t, std::uint64_t>> events_of(const Catalog& catalog,
                                                                      std::uint64_t stream) {
  std::vector<std::tuple<Kind, std::uint64_t, std::uint64_t>> events;
  for (const InnerEvent& inner : catalog.events(stream))
    events.emplace_back(inner.event.kind, inner.frame, inner.event.count);
  CHECK(catalog.has_events(stream) == !events.empty());
  return events;
}

}  // namespace

TEST_CASE("each stream is in one part of a split, and the parts have their fractions") {
  const auto all = listed(std::vector<std::uint64_t>(5000, 9));
  std::set<std::string> names;
  std::map<std::string, std::uint64_t> sizes;
  for (const char* part : {"train", "valid", "test"}) {
    const SharedCatalog catalog = selected(all, {.split = split, .part = part});
    sizes[part] = catalog->size();
    names.merge(names_of(*catalog));
  }
  CHECK(names == names_of(*all));
  CHECK(sizes["train"] + sizes["valid"] + sizes["test"] == 5000);
  CHECK(sizes["test"] == Approx(500).margin(60));
  CHECK(sizes["valid"] == Approx(1000).margin(90));
}

TEST_CASE(
    "a stream stays in its part when streams are added, and when the split has more of them") {
  const auto valid = [&](std::size_t streams, double fraction) {
    return names_of(*selected(listed(std::vector<std::uint64_t>(streams, 9)),
                              {.split = {{"valid", fraction}}, .part = "valid"}));
  };
  const std::set<std::string> few = valid(200, 0.1), more = valid(400, 0.1), wide = valid(200, 0.3);
  CHECK(!few.empty());
  CHECK(std::ranges::includes(more, few));
  CHECK(std::ranges::includes(wide, few));
  // The hash must not change with a release.
  CHECK(valid(40, 0.1) ==
        std::set<std::string>{"stream 5", "stream 6", "stream 19", "stream 34", "stream 37"});
}

TEST_CASE("the digest of a part does not depend on streams of other parts") {
  const auto with_length = [](std::uint64_t stream, std::uint64_t length) {
    std::vector<std::uint64_t> lengths(40, 9);
    lengths[stream] = length;
    return selected(listed(lengths), {.split = {{"valid", 0.1}}})->digest();
  };
  CHECK(with_length(19, 9) == with_length(19, 7));
  CHECK(with_length(13, 9) != with_length(13, 7));
}

TEST_CASE("the digest of a part stays if a stream is added to another part, also the first one") {
  const auto train = [](std::uint64_t streams) {
    return selected(listed(std::vector<std::uint64_t>(streams, 9)), {.split = {{"valid", 0.1}}});
  };
  std::uint64_t added = 0;
  for (std::uint64_t streams = 1; streams < 60; ++streams) {
    const SharedCatalog before = train(streams), after = train(streams + 1);
    if (before->size() != after->size()) continue;
    CHECK(before->digest() == after->digest());
    ++added;
  }
  CHECK(added > 1);
}

TEST_CASE("the digest of a part shows what is converted") {
  AudioFolder plain, converted;
  plain.add("a.wav", 8000, 1);
  converted.add("a.wav", 4000, 1, {.rate = 8000});
  const auto train = [](const std::string& path) {
    const auto all = open_good({.path = path, .rate = 16'000, .convert = true});
    return selected(all, {.split = {{"valid", 1e-9}}});
  };
  const SharedCatalog one = train(plain.path()), other = train(converted.path());
  CHECK(one->frames(0) == other->frames(0));
  CHECK(one->digest() != other->digest());
}

TEST_CASE("files of a list stay in their parts when a file of another folder is added") {
  AudioFolder folder;
  std::vector<std::string> files;
  for (int i = 0; i < 30; ++i) {
    const std::string name = "here/" + std::to_string(i) + ".wav";
    folder.add(name, 40, 1);
    files.push_back(folder / name);
  }
  const auto valid = [&] {
    const auto part = selected(open_good({.path = {}, .files = files}),
                               {.split = {{"valid", 0.5}}, .part = "valid"});
    std::set<std::string> names;
    for (const std::string& name : names_of(*part)) names.insert(name.substr(name.rfind('/') + 1));
    return names;
  };
  const std::set<std::string> before = valid();
  CHECK(before.size() > 4);
  CHECK(before.size() < 26);
  folder.add("there/x.wav", 40, 1);
  files.push_back(folder / "there/x.wav");
  // The common parent is the root.
  files.push_back("/proc/self/root" + folder / "there/x.wav");
  for (const bool both : {true, false}) {
    std::set<std::string> after = valid();
    after.erase("x");
    CHECK(after == before);
    if (both) files.pop_back();
  }
}

TEST_CASE("streams that are parts of one file are in the same part of a split") {
  AudioFolder folder;
  std::string lines;
  for (int i = 0; i < 30; ++i) {
    const std::string file = std::to_string(i) + ".wav";
    folder.add(file, 400, 1);
    for (const char* part : {R"("duration":0.01)", R"("offset":0.01)"})
      lines += R"({"path":")" + file + "\"," + part + "}\n";
  }
  write_text(folder / "m.jsonl", lines);
  const auto all = open_good({.path = folder / "m.jsonl"});
  const auto valid = selected(all, {.split = {{"valid", 0.5}}, .part = "valid"});
  CHECK(valid->size() > 4);
  CHECK(valid->size() < 56);
  for (std::uint64_t i = 0; i < valid->size(); i += 2)
    CHECK(valid->name(i) + "-0.01" == valid->name(i + 1));
  // A whole file is in the part of its excerpts.
  CHECK(all->unit(0) == "0.wav");
  CHECK(open_good({.path = folder.path()})->unit(0) == "0.wav");
}

TEST_CASE("a long stream is divided, and its parts have the time of their begin in their names") {
  auto all = listed({100, 40'000, 0, 32'000, 16'001});
  all->set_parts({0, 2, 2, 5});
  const SharedCatalog catalog = selected(all, {.longest = 16'000});
  std::vector<std::pair<std::string, std::uint64_t>> streams;
  for (std::uint64_t i = 0; i < catalog->size(); ++i)
    streams.emplace_back(catalog->name(i), catalog->frames(i));
  CHECK(streams == std::vector<std::pair<std::string, std::uint64_t>>{{"stream 0", 100},
                                                                      {"stream 1", 16'000},
                                                                      {"stream 1@1s", 16'000},
                                                                      {"stream 1@2s", 8'000},
                                                                      {"stream 2", 0},
                                                                      {"stream 3", 16'000},
                                                                      {"stream 3@1s", 16'000},
                                                                      {"stream 4", 16'000},
                                                                      {"stream 4@1s", 1}});
  CHECK(catalog->parts() == std::vector<std::uint64_t>{0, 4, 4, 9});
  CHECK(catalog->digest() != all->digest());
  CHECK(selected(all, {.longest = 40'000}) == all);  // nothing is divided
}

TEST_CASE("the parts of a long stream have its events, and begin anew") {
  auto all = listed({30, 10, 20});
  all->add_events(0, {event(Kind::gap, 0, 3), event(Kind::size, 2, 4), event(Kind::flush, 7),
                      event(Kind::flush, 10), event(Kind::size, 10, 5), event(Kind::gap, 10, 2),
                      event(Kind::reset, 11), event(Kind::abort, 30)});
  all->add_events(2, {event(Kind::flush, 3)});
  const SharedCatalog catalog = selected(all, {.longest = 10});
  using Events = decltype(events_of(*catalog, 0));
  CHECK(events_of(*catalog, 0) ==
        Events{{Kind::gap, 0, 3}, {Kind::size, 2, 4}, {Kind::flush, 7, 0}});
  CHECK(events_of(*catalog, 1) ==
        Events{{Kind::size, 0, 4}, {Kind::size, 0, 5}, {Kind::reset, 1, 0}});
  CHECK(events_of(*catalog, 2) == Events{{Kind::size, 0, 5}, {Kind::abort, 10, 0}});
  CHECK(events_of(*catalog, 4) == Events{{Kind::flush, 3, 0}});
  CHECK(events_of(*catalog, 5).empty());
}

TEST_CASE("a part of a stream has its frames, its meta and its entries") {
  AudioFolder folder;
  const Samples samples = folder.add("a.wav", 4'000, 1);
  std::vector<float> labels(25);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<float>(i);
  write_npy(folder / "a.npy", "<f4", "(25,)", labels);
  write_text(folder / "m.jsonl", R"({"path":"a.wav","vad":"a.npy"})"
                                 "\n");
  const auto all =
      open_good({.path = folder / "m.jsonl",
                 .companions = {{.name = "vad", .from = "vad", .frames_per_entry = 160}}});
  const SharedCatalog catalog = selected(all, {.longest = 1'600});
  REQUIRE(catalog->size() == 3);
  CHECK(catalog->meta(2) == all->meta(0));
  Samples joined;
  for (std::uint64_t i = 0; i < 3; ++i)
    for (const std::int16_t sample : read_all<std::int16_t>(*catalog, i, 700))
      joined.push_back(sample);
  CHECK(joined == samples);
  const auto reader = catalog->reader();
  const auto entries = open_stream(*reader, 2)->entries(0, {1, 3});
  REQUIRE(entries.has_value());
  CHECK(values_of<float>(*entries) == std::vector<float>{21, 22, 23});
  const auto refused = select_streams(all, {.longest = 1'000});
  REQUIRE_FALSE(refused.has_value());
  CHECK(
      refused.error().message ==
      "max_stream = \"0.0625s\", which is 1000 frames, must be a multiple of the 160 frames of an "
      "entry of the companion \"vad\"");
}

TEST_CASE("the parts of very long streams have names in whole seconds") {
  const SharedCatalog catalog = selected(listed({std::uint64_t{200'001} * 16'000}),
                                         {.longest = std::uint64_t{100'000} * 16'000});
  CHECK(catalog->name(1) == "stream 0@100000s");
  CHECK(catalog->name(2) == "stream 0@200000s");
}

TEST_CASE("a part with the name of another stream is an error") {
  AudioFolder folder;
  folder.add("a.wav", 32'000, 1);
  folder.add("a@1s.wav", 100, 1);
  folder.add("b@1s.wav", 100, 1);
  const auto all = open_good({.path = folder.path()});
  CHECK(selected(all, {.longest = 20'000})->size() == 4);
  const auto same = select_streams(all, {.longest = 16'000});
  REQUIRE_FALSE(same.has_value());
  CHECK_THAT(same.error().message,
             Catch::EndsWith("gives a part of \"a\" the name \"a@1s\", which another stream has: "
                             "rename one of them"));
}

TEST_CASE("a selection without streams, or with too many, is an error") {
  const auto none = select_streams(listed({9}), {.split = {{"valid", 0.01}}, .part = "valid"});
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().message == "part = \"valid\" has none of the 1 streams");
  const auto many = select_streams(listed({std::uint64_t{1} << 40}), {.longest = 16});
  REQUIRE_FALSE(many.has_value());
  CHECK(
      many.error().message ==
      "max_stream = \"0.001s\", which is 16 frames, must be longer: it gives 68719476737 streams");
}

}  // namespace millrace::training
