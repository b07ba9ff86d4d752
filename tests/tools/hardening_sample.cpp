// SPDX-License-Identifier: Apache-2.0
// A program for the check of hardening: a buffer on the stack, and a copy whose length is
// known only at run time.
#include <cstdio>
#include <cstring>

int main(int count, char** words) {
  char copy[16];
  std::strncpy(copy, words[0], static_cast<std::size_t>(count));
  copy[15] = '\0';
  return std::puts(copy) < 0;
}
