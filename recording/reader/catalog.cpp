// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/catalog.h"

#include <filesystem>
#include <optional>
#include <tuple>
#include <utility>

namespace millrace::recording {
namespace {

// Any change of the tables or of their meaning has a new version.
constexpr int version = 1;

constexpr const char* tables[] = {
    "CREATE TABLE directory(inode INTEGER)",
    "CREATE TABLE files(number INTEGER PRIMARY KEY, inode INTEGER, bytes INTEGER, changed INTEGER,"
    " run TEXT)",
    // Values that many streams have in common.
    "CREATE TABLE formats(id INTEGER PRIMARY KEY, pipeline TEXT, rule TEXT, element INTEGER,"
    " frame_values INTEGER, rate REAL, features INTEGER, client TEXT)",
    "CREATE TABLE parts(stream INTEGER, file INTEGER, name TEXT, format INTEGER, options TEXT,"
    " opened_wall INTEGER, opened_steady INTEGER, first_slice INTEGER, slices INTEGER,"
    " first_event INTEGER, begin INTEGER, \"end\" INTEGER, frames INTEGER, channel INTEGER,"
    " closed INTEGER, complete INTEGER, lost INTEGER, PRIMARY KEY(stream, file)) WITHOUT ROWID",
};

constexpr const char* select_parts =
    "SELECT stream, file, name, options, opened_wall, opened_steady, first_slice, slices,"
    " first_event, begin, \"end\", frames, channel, closed, complete, lost, format FROM parts ";

std::string path_in(const std::string& directory) {
  // SQLite follows no link in the path of a database, so the path must not have any.
  std::error_code none;
  const auto real = std::filesystem::canonical(directory, none);
  return (none ? std::filesystem::path(directory) : real) / "catalog.sqlite";
}

bool is_of(Database& database, std::uint64_t inode) {
  Statement statement = database.prepare("SELECT inode FROM directory");
  return statement.step() && statement.integer(0) == static_cast<std::int64_t>(inode);
}

void make_tables(Database& database, std::uint64_t inode) {
  database.lock();
  // Another process may have made them meanwhile.
  if (!database.empty() && database.good(version)) return database.roll_back();
  for (const char* table : tables) database.run(table);
  database.prepare("INSERT INTO directory VALUES (?)").with(inode).step();
  database.commit(version);
}

// nullopt: the file cannot be used as it is.
std::optional<Database> existing(const std::string& path, std::uint64_t inode,
                                 Database::Access access) {
  try {
    Database database = Database::open(path, access);
    if (access == Database::Access::write && database.empty()) make_tables(database, inode);
    if (database.good(version) && is_of(database, inode)) return database;
  } catch (const DatabaseError& error) {
    if (error.busy()) throw;
  }
  return std::nullopt;
}

template <class Integer>
Integer column(Statement& row, int index) {
  return static_cast<Integer>(row.integer(index));
}

}  // namespace

Catalog::Catalog(Database database) : database_(std::move(database)) {}

Catalog Catalog::in_memory() {
  Database database = Database::in_memory();
  make_tables(database, 0);
  return Catalog(std::move(database));
}

void Catalog::remove(const std::string& directory) {
  std::error_code ignored;
  const std::string path = path_in(directory);
  for (const char* suffix : {"", "-journal", "-wal", "-shm"})
    std::filesystem::remove(path + suffix, ignored);
}

Catalog Catalog::open(const std::string& directory, std::uint64_t inode) {
  using Access = Database::Access;
  const std::string path = path_in(directory);
  try {
    if (auto database = existing(path, inode, Access::write)) return Catalog(std::move(*database));
    if (auto database = existing(path, inode, Access::read))
      return Catalog(database->copy_in_memory());
    remove(directory);
    if (auto database = existing(path, inode, Access::write)) return Catalog(std::move(*database));
  } catch (const DatabaseError&) {
    // Another process uses the file, or it cannot be copied.
  }
  return in_memory();
}

std::vector<CatalogFile> Catalog::files() {
  std::vector<CatalogFile> files;
  Statement row =
      database_.prepare("SELECT number, inode, bytes, changed, run FROM files ORDER BY number");
  while (row.step())
    files.push_back({.number = column<FileNumber>(row, 0),
                     .inode = column<std::uint64_t>(row, 1),
                     .bytes = column<std::uint64_t>(row, 2),
                     .changed = row.integer(3),
                     .run = std::string(row.text(4))});
  return files;
}

void Catalog::each(const std::function<void(CatalogPart&)>& visit) {
  const Formats formats = read_formats();
  Statement row = database_.prepare((std::string(select_parts) + "ORDER BY stream, file").c_str());
  while (row.step()) {
    CatalogPart part = part_of(row, formats);
    visit(part);
  }
}

std::vector<CatalogPart> Catalog::of(std::uint64_t stream) {
  Statement row =
      database_.prepare((std::string(select_parts) + "WHERE stream = ? ORDER BY file").c_str());
  row.with(stream);
  std::vector<CatalogPart> parts;
  Formats formats;
  while (row.step()) {
    if (formats.empty()) formats = read_formats();
    parts.push_back(part_of(row, formats));
  }
  return parts;
}

Catalog::Formats Catalog::read_formats() {
  Formats formats;
  Statement row = database_.prepare(
      "SELECT id, pipeline, rule, element, frame_values, rate, features, client FROM formats");
  while (row.step()) {
    StreamMeta& meta = formats[row.integer(0)];
    meta.pipeline = row.text(1);
    meta.rule = row.text(2);
    meta.frames = {.element = column<Element>(row, 3),
                   .values = column<std::uint32_t>(row, 4),
                   .rate = row.number(5),
                   .features = row.integer(6) != 0};
    meta.client = row.text(7);
  }
  return formats;
}

CatalogPart Catalog::part_of(Statement& row, const Formats& formats) {
  const auto format = formats.find(row.integer(16));
  if (format == formats.end()) throw DatabaseError("a part has no format", false);
  CatalogPart part{.meta = format->second, .file = column<FileNumber>(row, 1), .part = {}};
  part.meta.number = column<std::uint64_t>(row, 0);
  part.meta.name = row.text(2);
  part.meta.options = row.text(3);
  part.meta.opened_wall = row.integer(4);
  part.meta.opened_steady = row.integer(5);
  part.part = {.stream = part.meta.number,
               .first_slice = column<std::uint32_t>(row, 6),
               .slices = column<std::uint32_t>(row, 7),
               .first_event = column<std::uint64_t>(row, 8),
               .begin = column<std::uint64_t>(row, 9),
               .end = column<std::uint64_t>(row, 10),
               .frames = column<std::uint64_t>(row, 11),
               .channel = column<std::uint16_t>(row, 12),
               .closed = row.integer(13) != 0,
               .complete = row.integer(14) != 0,
               .lost = row.integer(15) != 0};
  return part;
}

void Catalog::begin() {
  database_.lock();
  // Another process may have been killed during a change.
  if (!database_.good(version)) throw DatabaseError("the catalog is damaged", false);
}

void Catalog::forget(FileNumber number) {
  database_.prepare("DELETE FROM files WHERE number = ?").with(number).step();
  database_.prepare("DELETE FROM parts WHERE file = ?").with(number).step();
}

std::int64_t Catalog::format_of(const StreamMeta& meta, FormatNumbers& known) {
  const FormatKey key{meta.pipeline,      meta.rule,        meta.frames.element,
                      meta.frames.values, meta.frames.rate, meta.frames.features,
                      meta.client};
  if (const auto found = known.find(key); found != known.end()) return found->second;
  Statement insert = database_.prepare(
      "INSERT INTO formats(pipeline, rule, element, frame_values, rate, features, client)"
      " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id");
  insert.with(meta.pipeline, meta.rule, std::int64_t(meta.frames.element), meta.frames.values,
              meta.frames.rate, std::int64_t(meta.frames.features), meta.client);
  insert.step();
  return known[key] = insert.integer(0);
}

void Catalog::put(const CatalogFile& file, const std::map<std::uint16_t, StreamMeta>& channels,
                  const std::vector<StreamPart>& parts) {
  database_.prepare("INSERT INTO files VALUES (?, ?, ?, ?, ?)")
      .with(file.number, file.inode, file.bytes, file.changed, file.run)
      .step();
  FormatNumbers known;
  for (const auto& [id, meta] : read_formats())
    known[{meta.pipeline, meta.rule, meta.frames.element, meta.frames.values, meta.frames.rate,
           meta.frames.features, meta.client}] = id;
  // A forged file may have two parts of one stream.
  Statement insert = database_.prepare(
      "INSERT OR IGNORE INTO parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const StreamPart& part : parts) {
    const auto channel = channels.find(part.channel);
    if (channel == channels.end() || channel->second.number != part.stream) continue;
    const StreamMeta& meta = channel->second;
    insert
        .with(part.stream, file.number, meta.name, format_of(meta, known), meta.options,
              meta.opened_wall, meta.opened_steady, part.first_slice, part.slices, part.first_event,
              part.begin, part.end, part.frames, std::uint32_t(part.channel),
              std::uint32_t(part.closed), std::uint32_t(part.complete), std::uint32_t(part.lost))
        .step();
  }
}

void Catalog::commit() { database_.commit(version); }

}  // namespace millrace::recording
