// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace millrace::recording {

// An error of SQLite.
class DatabaseError : public std::runtime_error {
 public:
  DatabaseError(const std::string& message, bool busy) : std::runtime_error(message), busy_(busy) {}
  // Another process has locked the file: nothing is wrong with it.
  bool busy() const { return busy_; }

 private:
  bool busy_;
};

// A statement of SQL, compiled once and run many times. Confined to one thread.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql);

  // Sets the parameters of the statement, in order, and begins it anew.
  template <class... Values>
  Statement& with(const Values&... values) {
    reset();
    int index = 0;
    (bind(++index, values), ...);
    return *this;
  }
  // The next row: false if there are no more. A statement without rows is run by one call.
  bool step();

  // Values of the row, by column from 0. Texts are valid until the next step().
  std::int64_t integer(int column);
  double number(int column);
  std::string_view text(int column);

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };

  void reset();
  void bind(int index, std::int64_t value);
  void bind(int index, std::uint64_t value) { bind(index, static_cast<std::int64_t>(value)); }
  void bind(int index, std::uint32_t value) { bind(index, std::int64_t{value}); }
  void bind(int index, double value);
  void bind(int index, const std::string& value);

  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// A database of SQLite with a checksum. The field application_id of its header has the CRC-32 of
// all bytes after the header (100 bytes), and the field user_version the version of the tables. So
// any damage is detected when the file is opened, and the file needs neither a journal nor syncs:
// after a crash during a change the checksum is wrong.
//
// Several processes may use the file. All functions throw DatabaseError. Confined to one thread.
class Database {
 public:
  enum class Access { read, write };

  static Database in_memory();
  // For writing, a missing file is made (0600). Links are not followed.
  static Database open(const std::string& path, Access access);

  Statement prepare(const char* sql) { return Statement(database_.get(), sql); }
  void run(const char* sql) { prepare(sql).step(); }

  // True if the file has this version, and its checksum is good.
  bool good(int version);
  // True if nothing was ever written to the file.
  bool empty();

  // A change by one process: locks the file until commit(), or until the database is closed.
  void lock();
  // Ends the change: writes it with a new checksum, and unlocks.
  void commit(int version);
  // Ends the change without effect.
  void roll_back();

  // Copies all content into a database in memory.
  Database copy_in_memory();

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };

  Database(const std::string& path, int flags);
  std::int64_t value(const char* sql);
  std::uint32_t checksum();
  void unlock();

  std::unique_ptr<sqlite3, Close> database_;
  bool in_memory_ = false;
};

}  // namespace millrace::recording
