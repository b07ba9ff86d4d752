// SPDX-License-Identifier: Apache-2.0
#include "commands/datasets/listed_lengths.h"

#include <boost/json.hpp>
#include <fstream>
#include <iterator>

#include "chunker/chunker.h"

namespace millrace {

Result<ListedLengths, std::string> ListedLengths::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return path + ": cannot be read";
  const std::string text(std::istreambuf_iterator<char>(file), {});
  boost::json::error_code failed;
  const boost::json::value parsed = boost::json::parse(text, failed);
  const auto* array = failed ? nullptr : parsed.if_array();
  if (array == nullptr) return path + ": must be a JSON array of lengths in frames";
  std::vector<std::uint64_t> lengths;
  for (const boost::json::value& value : *array) {
    boost::json::error_code invalid;
    lengths.push_back(value.to_number<std::uint64_t>(invalid));
    if (invalid || lengths.back() > max_position)
      return path + ": " + boost::json::serialize(value) + " must be a whole number from 0 to " +
             std::to_string(max_position);
  }
  return ListedLengths(std::move(lengths));
}

}  // namespace millrace
