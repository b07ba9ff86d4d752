// SPDX-License-Identifier: Apache-2.0
// Gives a fuzz target every file of the folders that are named, in place of libFuzzer.
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
  // Named first, so that it is the last word of one that ends the process.
  std::cout << file.filename().string() << std::endl;
  // Of exactly its size, so that a read past its end is seen.
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
