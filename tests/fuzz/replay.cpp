// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer, on every file of the folders given as arguments.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <vector>

#include "tests/fuzz/target.h"

namespace {

std::vector<std::filesystem::path> files_of(const char* folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry);
  std::ranges::sort(files);
  return files;
}

void replay(const std::filesystem::path& file) {
  // Printed first: if the input ends the process, its name is the last line.
  std::cout << file.filename().string() << std::endl;
  // A buffer of the exact size, so that a read past its end is detected.
  std::vector<std::uint8_t> bytes(std::filesystem::file_size(file));
  std::ifstream(file, std::ios::binary)
      .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t inputs = 0;
  for (int i = 1; i < argc; ++i)
    for (const auto& file : files_of(argv[i])) replay(file), ++inputs;
  std::cout << inputs << " inputs passed\n";
  return inputs > 0 ? 0 : 1;
}
