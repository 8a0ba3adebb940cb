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
constexpr size_t digits = 64;  // hexadecimal digits of a SHA-256

template <class T>
std::string_view raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// Sizes at the start of the serialised form.
struct Head {
  int64_t parts = 0, count = 0, bytes = 0;
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
  const auto first = static_cast<size_t>(begin * parts), last = static_cast<size_t>(end * parts);
  const int64_t from = first == 0 ? 0 : ends[first - 1];
  for (size_t i = first; i < last; ++i) out.ends.push_back(ends[i] - from);
  if (last > first) out.bytes = bytes.substr(static_cast<size_t>(from), static_cast<size_t>(out.ends.back()));
  return out;
}

Sequences Sequences::pick(std::span<const int64_t> numbers) const {
  Sequences out;
  out.parts = parts;
  for (const int64_t number : numbers) {
    for (int64_t part = 0; part < parts; ++part) out.add(at(number, part));
    out.labels.push_back(labels[static_cast<size_t>(number)]);
  }
  return out;
}

std::string Sequences::sha256() const {
  Sha256 sum;
  for (const std::string_view part : {raw(labels), raw(ends), std::string_view(bytes)}) sum.update(part);
  return sum.hex();
}

std::string encode(const Sequences& sequences) {
  const Head head{.parts = sequences.parts,
                  .count = sequences.count(),
                  .bytes = static_cast<int64_t>(sequences.bytes.size())};
  std::string out(magic);
  out += sequences.sha256();
  out.append(reinterpret_cast<const char*>(&head), sizeof head);
  out += raw(sequences.labels);
  out += raw(sequences.ends);
  out += sequences.bytes;
  return out;
}

Sequences decode_sequences(std::string_view bytes, std::string_view name) {
  const auto damaged = [&](size_t at) {
    fail(Fault::data, name, ": byte ", at,
         " and what follows are not as they were written. Remove the file.");
  };
  Head head;
  const size_t body = magic.size() + digits + sizeof head;
  if (bytes.size() < body || !bytes.starts_with(magic)) damaged(0);
  std::memcpy(&head, bytes.data() + magic.size() + digits, sizeof head);
  const auto rest = static_cast<int64_t>(bytes.size() - body);
  // Bound each factor before multiplying, against overflow.
  if (head.parts < 1 || head.count < 0 || head.bytes < 0 || head.parts > rest + 1 || head.count > rest ||
      head.bytes > rest || head.count * head.parts > rest / 8 ||
      head.count + 8 * head.count * head.parts + head.bytes != rest)
    damaged(magic.size() + digits);
  Sequences out;
  out.parts = head.parts;
  const auto examples = static_cast<size_t>(head.count),
             strings = static_cast<size_t>(head.count * head.parts);
  const char* from = bytes.data() + body;
  out.labels.resize(examples);
  out.ends.resize(strings);
  if (examples > 0) std::memcpy(out.labels.data(), from, examples);
  if (strings > 0) std::memcpy(out.ends.data(), from + examples, 8 * strings);
  out.bytes.assign(from + examples + 8 * strings, static_cast<size_t>(head.bytes));
  if (!std::is_sorted(out.ends.begin(), out.ends.end()) ||
      (strings > 0 ? out.ends.front() < 0 || out.ends.back() != head.bytes : head.bytes != 0) ||
      out.sha256() != bytes.substr(magic.size(), digits))
    damaged(magic.size());
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
