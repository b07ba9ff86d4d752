// SPDX-License-Identifier: Apache-2.0
// A program with something to protect: a buffer on the stack, and a copy whose length comes from
// outside.
#include <cstdio>
#include <cstring>

int main(int count, char** words) {
  char copy[16];
  std::strncpy(copy, words[0], static_cast<std::size_t>(count));
  copy[15] = '\0';
  return std::puts(copy) < 0;
}
