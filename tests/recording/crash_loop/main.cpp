// SPDX-License-Identifier: Apache-2.0
// Kills a process that writes recordings, again and again: half of the times at a drawn system
// call, before it, after it or within a write, and half of the times at any instant. Then, as after
// a loss of power, may damage the bytes that were not synced, and checks every file.
//
//   crash_loop [KILLS [SEED]]
//
// Default: 1000 kills. With KEEP_FILES, keeps the files (kept_files.h).
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <random>
#include <stdexcept>
#include <string>

#include "recording/files/directory.h"
#include "recording/files/recording_file.h"
#include "tests/recording/crash_loop/expectation.h"
#include "tests/recording/crash_loop/life.h"
#include "tests/recording/kept_files.h"
#include "tests/recording/recording_files.h"
#include "tests/support/temporary_directory.h"

namespace millrace::recording {
namespace {

constexpr int lives_per_directory = 12;

struct Totals {
  std::uint64_t kills = 0, lives = 0, repairs = 0, damaged = 0;
  std::uint64_t committed = 0, cut_bytes = 0, lost_bytes = 0;
  double longest = 0;  // seconds of a recovery
};

class Loop {
 public:
  Loop(std::uint64_t kills, std::uint64_t seed) : kills_(kills), random_(seed) {
    void* memory = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory");
    progress_ = static_cast<Progress*>(memory);
  }

  Totals run() {
    while (totals_.kills < kills_) run_directory();
    return totals_;
  }

 private:
  std::uint64_t draw(std::uint64_t most) { return random_() % (most + 1); }

  void run_directory() {
    const TemporaryDirectory temporary(memory_folder());
    const Directory directory = expect(Directory::open(temporary.path(), Directory::For::writing));
    Expectation expectation(directory);
    for (int life = 0; life < lives_per_directory && totals_.kills < kills_; ++life) {
      const std::uint64_t seed = random_();
      run_life(temporary.path(), seed);
      expectation.add(seed, *progress_);
      const std::vector<FileNumber> files = directory.list();
      if (files.empty()) continue;
      lose_power(temporary.path(), files.back());
      expectation.check(files.back());
      // Otherwise the next process recovers the file, and may be killed while it does.
      if (draw(1) == 0) repair(expectation, files.back());
    }
    const std::vector<FileNumber> files = directory.list();
    if (!files.empty()) repair(expectation, files.back());
    expectation.check_all();
    totals_.committed += expectation.committed();
    for (const FileNumber file : files) keep_file(directory, file);
  }

  void repair(Expectation& expectation, FileNumber number) {
    const Expectation::Repair repaired = expectation.recover_and_check(number);
    ++totals_.repairs;
    totals_.cut_bytes += repaired.cut_bytes;
    totals_.lost_bytes += repaired.lost_bytes;
    totals_.longest = std::max(totals_.longest, repaired.seconds);
  }

  void run_life(const std::string& directory, std::uint64_t seed) {
    new (progress_) Progress();
    const bool by_call = draw(1) == 0;
    const std::uint64_t calls = by_call ? 1 + draw(150) : 0, how = random_();
    const timespec instant{0, static_cast<long>(draw(20'000'000))};
    // Its end of the pipe is closed when the process ends.
    int pipe[2];
    if (::pipe(pipe) != 0) throw std::runtime_error("pipe");
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("fork");
    if (child == 0) {
      kill_after(calls, how, &progress_->synced);
      const std::string error = live(directory, seed, *progress_);
      if (!error.empty()) std::fprintf(stderr, "%s\n", error.c_str());
      ::_exit(error.empty() ? 0 : 1);
    }
    ::close(pipe[1]);
    pollfd ended{.fd = pipe[0], .events = POLLIN, .revents = 0};
    if (!by_call) {
      ::ppoll(&ended, 1, &instant, nullptr);
      ::kill(child, SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(pipe[0]);
    ++totals_.lives;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
      ++totals_.kills;
    else if (status != 0)
      throw std::runtime_error("the process failed");
  }

  // Bytes of the newest file that were not synced may have any content, or be missing.
  void lose_power(const std::string& directory, FileNumber number) {
    const bool written = std::ranges::any_of(
        progress_->files, [=](const Progress::File& file) { return file.number == number; });
    const bool sealed_again = std::ranges::any_of(
        progress_->files, [](const Progress::File& file) { return file.removing > 0; });
    if (!written || sealed_again || draw(1) == 0) return;
    const std::string path = directory + "/" + Directory::file_name(number);
    const FileDescriptor file(::open(path.c_str(), O_RDWR));
    struct stat facts {};
    if (::fstat(file.get(), &facts) != 0) throw std::runtime_error("fstat " + path);
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    const bool synced = progress_->synced.inode == facts.st_ino;
    const std::uint64_t safe = synced ? progress_->synced.size.load() : 0;
    if (size <= safe) return;
    ++totals_.damaged;
    if (draw(1) == 0 && ::ftruncate(file.get(), static_cast<off_t>(safe + draw(size - safe))) != 0)
      throw std::runtime_error("ftruncate " + path);
    for (std::uint64_t pages = draw(2); pages > 0; --pages) {
      const std::uint64_t at = std::max(safe, draw(size) & ~std::uint64_t{4095});
      const std::uint64_t end = std::min(size, (at / 4096 + 1) * 4096);
      const std::string page(end - at,
                             safe == 0 || draw(1) == 0 ? '\0' : static_cast<char>(draw(255)));
      if (::pwrite(file.get(), page.data(), page.size(), static_cast<off_t>(at)) < 0)
        throw std::runtime_error("pwrite " + path);
    }
  }

  std::uint64_t kills_;
  std::mt19937_64 random_;
  Progress* progress_;
  Totals totals_;
};

}  // namespace
}  // namespace millrace::recording

int main(int argc, char** argv) {
  const std::uint64_t kills = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  const std::uint64_t seed =
      argc > 2 ? std::strtoull(argv[2], nullptr, 10) : std::random_device()();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  try {
    const auto totals = millrace::recording::Loop(kills, seed).run();
    const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf("%llu processes, %llu killed, %llu losses of power; %llu slices committed\n",
                number(totals.lives), number(totals.kills), number(totals.damaged),
                number(totals.committed));
    std::printf("%llu repairs: %llu bytes cut, %llu bytes lost; longest %.1f ms\n",
                number(totals.repairs), number(totals.cut_bytes), number(totals.lost_bytes),
                1000 * totals.longest);
    return 0;
  } catch (const std::exception& error) {
    std::printf("FAILED: %s\n", error.what());
    return 1;
  }
}
