// Labelled byte strings and their cache.
#include "heed/data/text/labelled_sequences.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"

namespace heed {
namespace {

constexpr std::string_view magic = "heed sequences 1\n";
constexpr size_t hash_digits = 64;  // hexadecimal digits of a SHA-256

template <class T>
std::string_view raw_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// The serialised form is: magic, SHA-256 as text, this header, labels (1 byte each), ends (8 bytes each),
/// bytes.
struct SequencesHeader {
  int64_t parts = 0;  // byte strings per example
  int64_t count = 0;  // examples
  int64_t bytes = 0;  // size of all byte strings
};

}  // namespace

Sequences blank_sequences(std::vector<uint8_t> labels, int64_t length) {
  Sequences out;
  out.labels = std::move(labels);
  out.bytes.resize(static_cast<size_t>(out.count() * length));
  for (int64_t i = 1; i <= out.count(); ++i) out.ends.push_back(i * length);
  return out;
}

Sequences Sequences::slice(int64_t begin, int64_t end) const {
  Sequences out;
  out.parts = parts;
  out.labels.assign(labels.begin() + begin, labels.begin() + end);
  const auto first_string = static_cast<size_t>(begin * parts), end_string = static_cast<size_t>(end * parts);
  const int64_t first_byte = first_string == 0 ? 0 : ends[first_string - 1];
  for (size_t i = first_string; i < end_string; ++i) out.ends.push_back(ends[i] - first_byte);
  if (end > begin)
    out.bytes = bytes.substr(static_cast<size_t>(first_byte), static_cast<size_t>(out.ends.back()));
  return out;
}

Sequences Sequences::pick(std::span<const int64_t> indices) const {
  Sequences out;
  out.parts = parts;
  for (const int64_t index : indices) {
    for (int64_t part = 0; part < parts; ++part) out.add(at(index, part));
    out.labels.push_back(labels[static_cast<size_t>(index)]);
  }
  return out;
}

std::string Sequences::sha256() const {
  Sha256 sum;
  for (const std::string_view field : {raw_bytes(labels), raw_bytes(ends), std::string_view(bytes)})
    sum.update(field);
  return sum.hex();
}

std::string encode(const Sequences& sequences) {
  const SequencesHeader header{.parts = sequences.parts,
                               .count = sequences.count(),
                               .bytes = static_cast<int64_t>(sequences.bytes.size())};
  std::string out(magic);
  out += sequences.sha256();
  out.append(reinterpret_cast<const char*>(&header), sizeof header);
  out += raw_bytes(sequences.labels);
  out += raw_bytes(sequences.ends);
  out += sequences.bytes;
  return out;
}

Sequences decode_sequences(std::string_view bytes, std::string_view name) {
  const auto fail_at = [&](size_t offset) {
    fail(Fault::data, name, ": byte ", offset,
         " and what follows are not as they were written. Remove the file.");
  };
  SequencesHeader header;
  const size_t body = magic.size() + hash_digits + sizeof header;
  if (bytes.size() < body || !bytes.starts_with(magic)) fail_at(0);
  std::memcpy(&header, bytes.data() + magic.size() + hash_digits, sizeof header);
  const auto body_size = static_cast<int64_t>(bytes.size() - body);
  constexpr int64_t end_size = sizeof(int64_t);
  // Each factor is bounded before it is multiplied, against overflow.
  if (header.parts < 1 || header.count < 0 || header.bytes < 0 || header.parts > body_size + 1 ||
      header.count > body_size || header.bytes > body_size ||
      header.count * header.parts > body_size / end_size ||
      header.count + end_size * header.count * header.parts + header.bytes != body_size)
    fail_at(magic.size() + hash_digits);
  Sequences out;
  out.parts = header.parts;
  out.labels.resize(static_cast<size_t>(header.count));
  out.ends.resize(static_cast<size_t>(header.count * header.parts));
  const char* const labels = bytes.data() + body;
  const char* const ends = labels + out.labels.size();
  if (!out.labels.empty()) std::memcpy(out.labels.data(), labels, out.labels.size());
  if (!out.ends.empty()) std::memcpy(out.ends.data(), ends, end_size * out.ends.size());
  out.bytes.assign(ends + end_size * out.ends.size(), static_cast<size_t>(header.bytes));
  const bool ends_fit =
      out.ends.empty() ? header.bytes == 0 : out.ends.front() >= 0 && out.ends.back() == header.bytes;
  if (!ends_fit || !std::is_sorted(out.ends.begin(), out.ends.end()) ||
      out.sha256() != bytes.substr(magic.size(), hash_digits))
    fail_at(magic.size());
  return out;
}

Path cache_folder() {
  if (const char* named = std::getenv("HEED_CACHE")) return named;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return Path(cache) / "heed";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return Path(home) / ".cache" / "heed";
  return {};
}

Sequences cached(const std::string& recipe, const std::function<Sequences()>& make,
                 const std::function<void(const std::string&)>& log) {
  const Path folder = cache_folder();
  if (folder.empty()) return make();
  const Path file = folder / (sha256_hex(recipe) + ".sequences");
  try {
    if (io::exists(file)) {
      Sequences found = decode_sequences(io::read(file), file.string());
      log(text("kept in ", file));
      return found;
    }
  } catch (const Error& error) {
    log(text("made anew: ", error.what()));
  }
  Sequences made = make();
  try {
    io::make_directories(folder);
    io::write(file, encode(made));
  } catch (const Error& error) {
    if (error.fault() != Fault::file) throw;
    log(text("not kept: ", error.what()));
  }
  return made;
}

}  // namespace heed
