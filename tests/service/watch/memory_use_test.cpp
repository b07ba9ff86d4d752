// SPDX-License-Identifier: Apache-2.0
#include "service/watch/memory_use.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <system_error>

#include "tests/support/descriptor_limit.h"
#include "tests/support/temporary_directory.h"

using namespace millrace;

namespace {

constexpr std::uint64_t mebi = 1 << 20;

// A machine with 1000 MiB available, on which the process has 100 resident pages.
struct MemoryMachine {
  MemoryMachine() {
    write("proc/self/statm", "5000 100 50 1 0 900 0\n");
    write("proc/meminfo", "MemTotal:        8192000 kB\nMemAvailable:    1024000 kB\n");
  }
  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  // Free memory in MiB.
  std::uint64_t free() {
    const auto use = memory_use(root.path());
    REQUIRE(use);
    CHECK(use->used == 100 * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
    return (use->limit - use->used) / mebi;
  }
  // Sizes in MiB. A limit of 0 means no limit.
  void group(const std::string& name, std::uint64_t limit, std::uint64_t usage,
             std::uint64_t cache = 0, std::uint64_t active = 0, std::uint64_t slab = 0) {
    const std::string folder = "sys/fs/cgroup/" + name + "/";
    write(folder + "memory.max", limit ? std::to_string(limit * mebi) + "\n" : "max\n");
    write(folder + "memory.current", std::to_string(usage * mebi) + "\n");
    write(folder + "memory.stat", "anon 17\ninactive_file " + std::to_string(cache * mebi) +
                                      "\nfile 1\nactive_file " + std::to_string(active * mebi) +
                                      "\nslab_reclaimable " + std::to_string(slab * mebi) + "\n");
  }
  void high(const std::string& name, std::uint64_t limit) {
    write("sys/fs/cgroup/" + name + "/memory.high", std::to_string(limit * mebi) + "\n");
  }
  void old_group(const std::string& name, std::uint64_t limit, std::uint64_t usage) {
    const std::string folder = "sys/fs/cgroup/memory/" + name + "/";
    write(folder + "memory.limit_in_bytes", std::to_string(limit * mebi));
    write(folder + "memory.usage_in_bytes", std::to_string(usage * mebi));
    write(folder + "memory.stat",
          "inactive_file 1\ntotal_inactive_file 1048576\n"
          "total_active_file 2097152\n");
  }

  TemporaryDirectory root;
};

}  // namespace

TEST_CASE("without a control group the free memory is that of the machine") {
  MemoryMachine machine;
  CHECK(machine.free() == 1000);
  machine.write("proc/self/cgroup", "0::/\n");
  CHECK(machine.free() == 1000);
}

TEST_CASE("no available memory differs from an unknown amount") {
  MemoryMachine machine;
  machine.write("proc/meminfo", "MemAvailable:          0 kB\n");
  CHECK(machine.free() == 0);
  machine.write("proc/meminfo", "MemTotal:        8192000 kB\n");
  CHECK_FALSE(memory_use(machine.root.path()));
  machine.write("proc/self/cgroup", "0::/a\n");
  machine.group("a", 300, 100);
  CHECK(machine.free() == 200);
}

TEST_CASE("the free memory of a control group includes cached pages of files") {
  MemoryMachine machine;
  machine.write("proc/self/cgroup", "0::/a\n");
  machine.group("a", 300, 120, 20);
  CHECK(machine.free() == 200);
  machine.group("a", 300, 290, 20, 100, 30);
  CHECK(machine.free() == 160);
  machine.group("a", 300, 310, 5);
  CHECK(machine.free() == 0);
  machine.group("a", 3000, 0);
  CHECK(machine.free() == 1000);
}

TEST_CASE("among nested control groups, the one with the least free memory counts") {
  MemoryMachine machine;
  machine.write("proc/self/cgroup", "0::/a/b\n");
  machine.group("a/b", 0, 100);
  machine.group("a", 200, 150);
  CHECK(machine.free() == 50);
  machine.group("a/b", 130, 100);
  CHECK(machine.free() == 30);
}

TEST_CASE("the limit of a control group is memory.high if that is less") {
  MemoryMachine machine;
  machine.write("proc/self/cgroup", "0::/a\n");
  machine.group("a", 300, 100);
  machine.high("a", 400);
  CHECK(machine.free() == 200);
  machine.high("a", 250);
  CHECK(machine.free() == 150);
  machine.group("a", 0, 100);
  CHECK(machine.free() == 150);
}

TEST_CASE("in a container the group is at the root, whatever its name") {
  MemoryMachine machine;
  machine.write("proc/self/cgroup", "0::/system.slice/docker-1.scope\n");
  machine.group(".", 64, 60);
  CHECK(machine.free() == 4);
}

TEST_CASE("the memory control group of version 1 is found among other groups") {
  MemoryMachine machine;
  machine.write("proc/self/cgroup", "9:cpu:/x\n4:hugetlb,memory:/a\n1:name=systemd:/y\n0::/\n");
  machine.old_group("a", 500, 101);
  machine.old_group("x", 1, 1);
  CHECK(machine.free() == 402);
}

TEST_CASE("resource limits on address space and data limit the free memory") {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));  // 5000 mapped, 900 data
  const auto limits = [](const std::string& address_space, const std::string& data) {
    return "Limit                     Soft Limit           Hard Limit           Units     \n"
           "Max data size             " +
           data +
           "            unlimited            bytes     \n"
           "Max stack size            8388608              unlimited            bytes     \n"
           "Max address space         " +
           address_space + "   unlimited            bytes     \n";
  };
  MemoryMachine machine;
  machine.write("proc/self/limits", limits("unlimited", "unlimited"));
  CHECK(machine.free() == 1000);
  machine.write("proc/self/limits", limits(std::to_string(5000 * page + 70 * mebi), "unlimited"));
  CHECK(machine.free() == 70);
  machine.write("proc/self/limits", limits("unlimited", std::to_string(900 * page + 30 * mebi)));
  CHECK(machine.free() == 30);
  machine.write("proc/self/limits", limits(std::to_string(5000 * page + 20 * mebi), "1"));
  CHECK(machine.free() == 0);
  machine.write("proc/self/limits", limits(std::to_string(1ull << 60), std::to_string(1ull << 60)));
  CHECK(machine.free() == 1000);
}

TEST_CASE("an invalid list of control groups is ignored") {
  MemoryMachine machine;
  machine.write("proc/self/cgroup", "nonsense\n::\n4:memory\n\n");
  CHECK(machine.free() == 1000);
}

TEST_CASE("without /proc the memory use is unknown") {
  const TemporaryDirectory empty;
  CHECK_FALSE(memory_use(empty.path()));
}

TEST_CASE("a limit that cannot be read for lack of descriptors is an error") {
  MemoryMachine machine;
  REQUIRE(memory_use(machine.root.path()));
  const DescriptorLimit none(0);
  CHECK_THROWS_AS(memory_use(machine.root.path()), std::system_error);
}

TEST_CASE("this process uses memory, and more is available") {
  const auto use = memory_use();
  REQUIRE(use);
  CHECK(use->used > mebi);
  CHECK(use->limit > use->used);
}
