// SPDX-License-Identifier: Apache-2.0
#include "transport/access/resume_keys.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <span>

#include "base/bytes.h"
#include "base/files/small_file.h"
#include "transport/access/random_bytes.h"
#include "transport/access/token.h"
#include "transport/base64/base64.h"

namespace millrace {
namespace {

constexpr std::string_view blank = " \t\r";

// The parts of a token, in bytes.
constexpr std::size_t id_size = 4, epoch_size = 4, opening_size = 4, time_size = 4, key_size = 16,
                      mac_size = 32;
constexpr std::size_t signed_size = id_size + epoch_size + opening_size + time_size + key_size;
static_assert((signed_size + mac_size) * 4 == (resume_token_size - 2) * 3 + 4);

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return text_in(std::as_bytes(bytes));
}

template <class Number>
void append(std::string& to, Number number) {
  for (int shift = 8 * sizeof(Number) - 8; shift >= 0; shift -= 8)
    to += static_cast<char>(number >> shift);
}

// Removes a number from the front of the bytes.
template <class Number>
Number take(std::string_view& bytes) {
  Number number = 0;
  for (const char byte : bytes.substr(0, sizeof number))
    number = number << 8 | static_cast<std::uint8_t>(byte);
  bytes.remove_prefix(sizeof number);
  return number;
}

// `head`: the part of the token before the MAC. The lengths keep the end of one field from being
// taken for the begin of the next.
ThirtyTwoBytes mac_of(std::string_view head, const ResumeSubject& stream,
                      const ThirtyTwoBytes& secret) {
  std::string message(head);
  for (const std::string_view field : {stream.name, stream.pipeline, stream.tenant}) {
    append(message, std::uint64_t{field.size()});
    message += field;
  }
  ThirtyTwoBytes mac;
  std::size_t size = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(message.data());
  if (!EVP_Q_mac(nullptr, "HMAC", nullptr, "SHA256", nullptr, secret.data(), secret.size(), data,
                 message.size(), mac.data(), mac.size(), &size))
    throw std::bad_alloc();  // the only cause of a failure
  return mac;
}

std::chrono::seconds seconds_of(Duration time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

}  // namespace

ResumeKeys::Key::Key(const ThirtyTwoBytes& bytes) : secret(bytes) {
  std::copy_n(digest_of(text_of(secret)).begin(), id.size(), id.begin());
}

ResumeKeys ResumeKeys::random() {
  ThirtyTwoBytes secret;
  fill_random(secret);
  ResumeKeys keys;
  keys.keys_.emplace_back(secret);
  return keys;
}

// Two different keys with one id are refused too: one pair in four billion.
Result<ResumeKeys, std::string> ResumeKeys::parse(std::string_view text) {
  ResumeKeys keys;
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(blank), line.size()));
    line = line.substr(0, line.find_last_not_of(blank) + 1);
    if (line.empty() || line.starts_with('#')) continue;
    const auto wrong = [&](std::string_view what) {
      return "line " + std::to_string(number) + ": " + std::string(what);
    };
    const auto secret = from_hex(line);
    if (!secret) return wrong("must be a key of 64 hexadecimal digits");
    const Key key(*secret);
    if (keys.find(text_of(key.id))) return wrong("another line has the same key");
    if (keys.keys_.size() == most_keys) return wrong("a file may have 8 keys");
    keys.keys_.push_back(key);
  }
  if (keys.keys_.empty()) return std::string("has no key");
  return keys;
}

std::string ResumeKeys::sign(const ResumeToken& token, const ResumeSubject& stream,
                             Duration now) const {
  const Key& key = keys_.front();
  std::string bytes(text_of(key.id));
  append(bytes, token.epoch);
  append(bytes, token.opening);
  append(bytes, static_cast<std::uint32_t>(seconds_of(now).count()));
  bytes += text_of(token.stream.bytes);
  bytes += text_of(mac_of(bytes, stream, key.secret));
  return base64url(bytes);
}

Result<ResumeToken, ResumeFault> ResumeKeys::verify(std::string_view text,
                                                    const ResumeSubject& stream,
                                                    Duration now) const {
  if (text.size() != resume_token_size) return ResumeFault::malformed;
  std::vector<std::byte> memory;
  const auto bytes = decode_base64url(text, memory);
  if (!bytes) return ResumeFault::malformed;
  std::string_view rest = text_in(*bytes);
  const Key* key = find(rest.substr(0, id_size));
  if (!key) return ResumeFault::unknown_key;
  const ThirtyTwoBytes mac = mac_of(rest.substr(0, signed_size), stream, key->secret);
  if (CRYPTO_memcmp(mac.data(), rest.data() + signed_size, mac.size()) != 0)
    return ResumeFault::wrong_mac;
  rest.remove_prefix(id_size);
  ResumeToken token;
  token.epoch = take<std::uint32_t>(rest);
  token.opening = take<std::uint32_t>(rest);
  const std::chrono::seconds issued(take<std::uint32_t>(rest));
  if (issued < seconds_of(now) - longest_resume_age) return ResumeFault::too_old;
  std::memcpy(token.stream.bytes.data(), rest.data(), token.stream.bytes.size());
  return token;
}

Result<ResumeKeys, std::string> ResumeKeys::read(const std::string& path) {
  const auto text = read_secret_file(path, 64 << 10);
  if (!text) return text.error();
  return parse(*text);
}

const ResumeKeys::Key* ResumeKeys::find(std::string_view id) const {
  const auto found = std::ranges::find(keys_, id, [](const Key& key) { return text_of(key.id); });
  return found == keys_.end() ? nullptr : &*found;
}

}  // namespace millrace
