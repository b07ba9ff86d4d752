// SPDX-License-Identifier: Apache-2.0
#include "recording/reader/database.h"

#include <fcntl.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/file_descriptor.h"
#include "recording/format/checksums.h"

namespace millrace::recording {
namespace {

constexpr std::int64_t header_bytes = 100;
constexpr int patience = 1'000;  // milliseconds to wait for the lock of another process

void check(sqlite3* database, int code) {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
  const int primary = code & 0xff;
  throw DatabaseError(sqlite3_errmsg(database), primary == SQLITE_BUSY || primary == SQLITE_LOCKED);
}

}  // namespace

Statement::Statement(sqlite3* database, const char* sql) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  check(database_, sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr));
  statement_.reset(statement);
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::reset() {
  // Returns the error of the last step() again.
  sqlite3_reset(statement_.get());
}

void Statement::bind(int index, std::int64_t value) {
  check(database_, sqlite3_bind_int64(statement_.get(), index, value));
}

void Statement::bind(int index, double value) {
  check(database_, sqlite3_bind_double(statement_.get(), index, value));
}

void Statement::bind(int index, const std::string& value) {
  check(database_, sqlite3_bind_text64(statement_.get(), index, value.data(), value.size(),
                                       SQLITE_STATIC, SQLITE_UTF8));
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  check(database_, code);
  if (code == SQLITE_ROW) return true;
  reset();
  return false;
}

std::int64_t Statement::integer(int column) {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::number(int column) { return sqlite3_column_double(statement_.get(), column); }

std::string_view Statement::text(int column) {
  const void* text = sqlite3_column_blob(statement_.get(), column);
  const int bytes = sqlite3_column_bytes(statement_.get(), column);
  return {static_cast<const char*>(text), text ? static_cast<std::size_t>(bytes) : 0};
}

Database::Database(const std::string& path, int flags) {
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(database);
  check(database, code);
  check(database, sqlite3_busy_timeout(database, patience));
  check(database, sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr));
  check(database, sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr));
  run("PRAGMA journal_mode = MEMORY");
  run("PRAGMA synchronous = OFF");
  run("PRAGMA cache_size = -65536");  // KiB
}

void Database::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

Database Database::in_memory() {
  Database database(":memory:", SQLITE_OPEN_READWRITE);
  database.in_memory_ = true;
  return database;
}

Database Database::open(const std::string& path, Access access) {
  if (access == Access::read) return Database(path, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW);
  // SQLite would make the file with another mode.
  FileDescriptor(::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600));
  return Database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW);
}

std::int64_t Database::value(const char* sql) {
  Statement statement = prepare(sql);
  return statement.step() ? statement.integer(0) : 0;
}

// Reads with SQLite's own descriptor: closing another one would release the locks of this process.
std::uint32_t Database::checksum() {
  sqlite3_file* file = nullptr;
  check(database_.get(),
        sqlite3_file_control(database_.get(), "main", SQLITE_FCNTL_FILE_POINTER, &file));
  sqlite3_int64 size = 0;
  check(database_.get(), file->pMethods->xFileSize(file, &size));
  std::vector<std::byte> buffer(1 << 20);
  std::uint32_t crc = 0;
  for (sqlite3_int64 at = header_bytes; at < size;) {
    const auto bytes =
        std::min<sqlite3_int64>(size - at, static_cast<sqlite3_int64>(buffer.size()));
    const int code = file->pMethods->xRead(file, buffer.data(), static_cast<int>(bytes), at);
    if (code != SQLITE_OK) throw DatabaseError("the file cannot be read", false);
    crc = crc32(std::span(buffer).first(static_cast<std::size_t>(bytes)), crc);
    at += bytes;
  }
  return crc;
}

bool Database::good(int version) {
  if (in_memory_) return value("PRAGMA user_version") == version;
  const bool locked = sqlite3_get_autocommit(database_.get()) == 0;
  // A transaction, so that no other process changes the file between these.
  if (!locked) run("BEGIN");
  const bool good = value("PRAGMA user_version") == version &&
                    static_cast<std::uint32_t>(value("PRAGMA application_id")) == checksum();
  if (!locked) run("COMMIT");
  return good;
}

bool Database::empty() { return value("PRAGMA page_count") == 0; }

void Database::lock() {
  if (in_memory_) return run("BEGIN");
  run("PRAGMA locking_mode = EXCLUSIVE");
  run("BEGIN EXCLUSIVE");
}

void Database::commit(int version) {
  run(("PRAGMA user_version = " + std::to_string(version)).c_str());
  run("COMMIT");
  if (in_memory_) return;
  const auto crc = static_cast<std::int32_t>(checksum());
  run(("PRAGMA application_id = " + std::to_string(crc)).c_str());
  unlock();
}

void Database::roll_back() {
  run("ROLLBACK");
  if (!in_memory_) unlock();
}

void Database::unlock() {
  run("PRAGMA locking_mode = NORMAL");
  // SQLite gives the lock back when the file is read the next time.
  value("SELECT count(*) FROM sqlite_schema");
}

Database Database::copy_in_memory() {
  Database copy = in_memory();
  sqlite3_backup* backup =
      sqlite3_backup_init(copy.database_.get(), "main", database_.get(), "main");
  if (!backup) throw DatabaseError(sqlite3_errmsg(copy.database_.get()), false);
  const int code = sqlite3_backup_step(backup, -1);
  sqlite3_backup_finish(backup);
  check(copy.database_.get(), code);
  return copy;
}

}  // namespace millrace::recording
