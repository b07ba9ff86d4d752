// SPDX-License-Identifier: Apache-2.0
// Every key of the configuration is documented, printed by check-config, and read back.
#include <catch2/catch.hpp>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "service/config/options.h"
#include "service/config/print_options.h"

using namespace millrace;

namespace {

using Keys = std::set<std::string>;

std::string text_of(const std::string& path) {
  std::ifstream file(MILLRACE_TREE + ("/" + path));
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// All matches of the first group of `pattern`.
Keys all_of(const std::string& text, const char* pattern) {
  const std::regex regex(pattern, std::regex::multiline);
  Keys found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
    found.insert((*match)[1]);
  return found;
}

// The keys that the error about an unknown key lists.
Keys known_in(const std::string& section) {
  const auto read = parse_options(section + "\nzzzzzzzzzzzz = 1\n", "f");
  REQUIRE_FALSE(read.has_value());
  const std::string marker = "the keys here are ";
  REQUIRE(read.error().find(marker) != std::string::npos);
  const std::string list = read.error().substr(read.error().find(marker) + marker.size());
  Keys keys = all_of(std::regex_replace(list, std::regex(" and "), ", "), "([a-z_]+)");
  keys.erase("segment");  // the former name of file_size, which has no row of its own
  return keys;
}

// The keys in the table of docs/configuration.md whose head begins with `head`.
Keys documented(const std::string& head) {
  const std::string page = text_of("docs/configuration.md");
  const auto begin = page.find("\n| " + head + " |");
  REQUIRE(begin != std::string::npos);
  const auto rows = page.find("\n| `", begin + head.size() + 4);
  return all_of(page.substr(rows, page.find("\n\n", rows) - rows), "^\\| `([a-z_]+)` \\|");
}

const std::string sections[] = {"[listen]", "[tls]", "[access]",    "[[pipeline]]", "[[protocol]]",
                                "[limits]", "[gpu]", "[recording]", "[log]"};

const char* const every_key = "tests/fuzz/corpus/configuration/every_key.toml";

Options options_of(const std::string& text) {
  const auto read = parse_options(text, "f");
  INFO((read ? "" : read.error()));
  REQUIRE(read.has_value());
  return read->options;
}

}  // namespace

TEST_CASE("the document has a row for each key of each table, and for no other") {
  for (const std::string& section : sections) {
    CAPTURE(section);
    CHECK(documented("`" + section + "`") == known_in(section));
  }
  for (const std::string table : {"chunk", "endpoint", "record"}) {
    CAPTURE(table);
    CHECK(documented("key of `" + table + "`") ==
          known_in("[[pipeline]]\n[pipeline." + table + "]"));
  }
}

TEST_CASE("the document names each key of batch") {
  const std::string page = text_of("docs/configuration.md");
  for (const std::string& key : known_in("[[pipeline]]\n[pipeline.batch]")) {
    CAPTURE(key);
    CHECK(page.find("`" + key + "`") != std::string::npos);
  }
}

TEST_CASE("a configuration with each key off its default is printed and read back the same") {
  const Options options = options_of(text_of(every_key));
  CHECK(options_of(to_toml(options)) == options);
}

TEST_CASE("the configuration of this test sets each key") {
  Keys known = known_in("[[pipeline]]\n[pipeline.chunk]");
  known.merge(known_in("[[pipeline]]\n[pipeline.batch]"));
  known.merge(known_in("[[pipeline]]\n[pipeline.endpoint]"));
  known.merge(known_in("[[pipeline]]\n[pipeline.record]"));
  for (const std::string& section : sections) known.merge(known_in(section));
  known.erase("chunk");  // these are tables in the printed text
  known.erase("batch");
  known.erase("endpoint");
  known.erase("record");
  CHECK(all_of(text_of(every_key), "^([a-z_]+) = ") == known);
}

TEST_CASE("without any one of its lines, this configuration is different or invalid") {
  const std::string text = text_of(every_key);
  const Options options = options_of(text);
  std::istringstream lines(text);
  std::size_t begin = 0;
  for (std::string line; std::getline(lines, line); begin += line.size() + 1) {
    if (!std::regex_match(line, std::regex("[a-z_]+ = .*"))) continue;
    CAPTURE(line);
    const auto without = parse_options(std::string(text).erase(begin, line.size()), "f");
    CHECK((!without || !(without->options == options)));
  }
}
