// Writes tar archives for tests, valid and malformed.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace heed {

/// One entry; the defaults are valid.
struct TarPart {
  std::string name = {};
  std::string bytes = {};
  char kind = '0';
  std::string prefix = {};
  std::string link = {};
  int64_t claimed_size = -1;   ///< instead of the real size
  std::string size_text = {};  ///< instead of its octal digits
  std::string magic = {"ustar\00000", 8};
  bool wrong_sum = false;
};

inline std::string octal(int64_t value, int width) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%0*llo", width, static_cast<unsigned long long>(value));
  return digits;
}

inline std::string tar_block(const TarPart& part) {
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string& bytes) { header.replace(at, bytes.size(), bytes); };
  const auto size = part.claimed_size >= 0 ? part.claimed_size : static_cast<int64_t>(part.bytes.size());
  put(0, part.name.substr(0, 100));
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, part.size_text.empty() ? octal(size, 11) : part.size_text);
  put(136, "00000000000");
  put(148, "        ");
  header[156] = part.kind;
  put(157, part.link);
  put(257, part.magic);
  put(345, part.prefix);
  int64_t sum = part.wrong_sum ? 1 : 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return header + part.bytes + std::string((512 - part.bytes.size() % 512) % 512, '\0');
}

/// An archive of these entries, padded as tar does.
inline std::string make_tar(const std::vector<TarPart>& parts) {
  std::string out;
  for (const TarPart& part : parts) out += tar_block(part);
  out.append(1024, '\0');
  out.append((10240 - out.size() % 10240) % 10240, '\0');
  return out;
}

/// A pax record, with its length.
inline std::string pax_record(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

}  // namespace heed
