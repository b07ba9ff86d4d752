// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace millrace::training {

// The header of a `.npy` file, as NumPy writes it.
inline std::string npy_header(const std::string& descr, const std::string& shape,
                              const std::string& fortran = "False", char version = 1) {
  std::string dict =
      "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
  const std::size_t head = version == 1 ? 10 : 12;
  while ((head + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string text = "\x93NUMPY";
  text += version;
  text += '\0';
  for (std::size_t i = 0; i < head - 8; ++i) text += static_cast<char>(dict.size() >> (8 * i));
  return text + dict;
}

template <class Value>
void write_npy(const std::string& path, const std::string& descr, const std::string& shape,
               const std::vector<Value>& values) {
  std::ofstream out(path, std::ios::binary);
  out << npy_header(descr, shape);
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(Value)));
}

}  // namespace millrace::training
