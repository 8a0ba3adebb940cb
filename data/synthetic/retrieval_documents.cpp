// Generates long documents, and digits on a background.
#include "heed/data/synthetic/retrieval_documents.h"

#include <algorithm>
#include <array>

#include "heed/core/parallel/thread_pool.h"
#include "heed/data/synthetic/digits.h"
#include "heed/data/synthetic/random_stream.h"
#include "heed/data/synthetic/rhymed_text.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

constexpr std::array first_names{"Anna", "Boris", "Clara", "Dario", "Elena", "Felix", "Greta", "Hugo"};
constexpr std::array houses{"Ash",  "Birch", "Cedar", "Date",  "Elm",   "Fir",    "Gorse", "Hazel",
                            "Iris", "Jade",  "Kelp",  "Larch", "Maple", "Nettle", "Oak",   "Pine"};
constexpr std::array things{"the bread", "the wine", "the roof", "the song", "the road", "the bell"};

void check(int64_t count, const LedgerLengths& lengths) {
  if (count < 1 || count > 10'000'000)
    fail("ledgers: a count of ", count, " is outside 1 .. 10000000. Choose one inside.");
  if (lengths.shortest < 600 || lengths.longest < lengths.shortest || lengths.longest > 1'000'000) {
    fail("ledgers: documents of ", lengths.shortest, " to ", lengths.longest,
         " bytes. Give at least 600 and at most 1000000, the shortest first.");
  }
}

/// Lines of verse to choose from, the same for all documents of a seed.
struct Filler {
  explicit Filler(uint64_t seed) : text(verse(200000, seed)) {
    for (const std::string_view line : split_lines(text)) {
      if (line.size() > 10) lines.push_back(line);
    }
  }
  std::string text;
  std::vector<std::string_view> lines;
};

/// A document of about `length` bytes: `first`, then `said` at random positions among lines of verse.
std::string document(RandomStream& random, const Filler& filler, int64_t length, const std::string& first,
                     std::vector<std::string> said) {
  int64_t left = length - static_cast<int64_t>(first.size());
  for (const std::string& line : said) left -= static_cast<int64_t>(line.size()) + 1;
  std::vector<std::string> lines;
  while (left > 0) {
    lines.emplace_back(random.pick(filler.lines));
    left -= static_cast<int64_t>(lines.back().size()) + 1;
  }
  for (std::string& line : said)
    lines.insert(lines.begin() + random.below(static_cast<int64_t>(lines.size()) + 1), std::move(line));
  std::string out = first;
  for (const std::string& line : lines) out += line + " ";  // no line ends: a document is a field of a file
  out.pop_back();
  return out;
}

std::string ledger(RandomStream& random, const Filler& filler, const LedgerLengths& lengths, bool good) {
  std::array<size_t, first_names.size()> order{};
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (size_t i = order.size() - 1; i > 0; --i)
    std::swap(order[i], order[static_cast<size_t>(random.below(static_cast<int64_t>(i) + 1))]);
  // order[0] is the named person; of the other seven, three share the verdict and four do not.
  const std::string thing = random.pick(things);
  std::vector<std::string> said;
  for (size_t i = 0; i < order.size(); ++i)
    said.push_back(text(first_names[order[i]], " calls ", thing, (i < 4) == good ? " good." : " poor."));
  const std::string first = text("Only the word of ", first_names[order[0]], " counts. ");
  return document(random, filler, random.between(lengths.shortest, lengths.longest), first, std::move(said));
}

std::string housed(RandomStream& random, const Filler& filler, const LedgerLengths& lengths,
                   const char* house) {
  return document(random, filler, random.between(lengths.shortest, lengths.longest), "",
                  {text("This is a tale of the house of ", house, ".")});
}

/// Labels 0 and 1 in equal numbers, shuffled.
std::vector<uint8_t> even_labels(int64_t count, uint64_t seed) {
  std::vector<uint8_t> labels(static_cast<size_t>(count));
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<uint8_t>(i % 2);
  shuffle(std::span(labels), seed, 0);
  return labels;
}

/// `count` examples; make() generates the parts of example i from its own random stream.
template <class Make>
Sequences made(int64_t count, int64_t parts, uint64_t seed, const ProgressCallback& on_progress, Make make) {
  Sequences out;
  out.parts = parts;
  out.labels = even_labels(count, seed);
  std::vector<std::string> texts(static_cast<size_t>(count * parts));
  parallel_rows_with_progress(count, 16, on_progress, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      RandomStream random(seed, static_cast<uint64_t>(i) + 1);
      make(random, out.labels[static_cast<size_t>(i)] == 1, &texts[static_cast<size_t>(i * parts)]);
    }
  });
  for (const std::string& one : texts) out.add(one);
  return out;
}

}  // namespace

Sequences ledgers(int64_t count, uint64_t seed, const LedgerLengths& lengths,
                  const ProgressCallback& on_progress) {
  check(count, lengths);
  const Filler filler(seed);
  return made(count, 1, seed, on_progress, [&](RandomStream& random, bool good, std::string* out) {
    *out = ledger(random, filler, lengths, good);
  });
}

Sequences paired_ledgers(int64_t count, uint64_t seed, const LedgerLengths& lengths,
                         const ProgressCallback& on_progress) {
  check(count, lengths);
  const Filler filler(seed);
  return made(count, 2, seed, on_progress, [&](RandomStream& random, bool same, std::string* out) {
    const auto number = static_cast<int64_t>(houses.size());
    const int64_t one = random.below(number);
    const int64_t other = same ? one : (one + random.between(1, number - 1)) % number;
    out[0] = housed(random, filler, lengths, houses[static_cast<size_t>(one)]);
    out[1] = housed(random, filler, lengths, houses[static_cast<size_t>(other)]);
  });
}

Sequences grounded_digits(int64_t count, uint64_t seed, const ProgressCallback& on_progress) {
  constexpr int64_t side = 32, drawn_side = 28;
  const LabelledImages drawn = digits(count, seed, on_progress);
  Sequences out = blank_sequences(drawn.labels, side * side);
  parallel_rows(count, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      RandomStream random(seed, (uint64_t{1} << 40) + static_cast<uint64_t>(i));
      const double ground = random.uniform(40, 215), down = random.uniform(-1, 1),
                   right = random.uniform(-1, 1);
      const double ink = ground > 128 ? random.uniform(-110, -60) : random.uniform(60, 110);
      const int64_t top = random.below(side - drawn_side + 1), left = random.below(side - drawn_side + 1);
      const uint8_t* digit = drawn.images.pixels.data() + i * drawn_side * drawn_side;
      for (int64_t y = 0; y < side; ++y) {
        for (int64_t x = 0; x < side; ++x) {
          const int64_t row = y - top, column = x - left;
          const bool inside = row >= 0 && row < drawn_side && column >= 0 && column < drawn_side;
          const double share = inside ? static_cast<double>(digit[row * drawn_side + column]) / 255 : 0;
          const double grey = ground + down * static_cast<double>(y - side / 2) +
                              right * static_cast<double>(x - side / 2) + ink * share + random.uniform(-8, 8);
          out.bytes[static_cast<size_t>((i * side + y) * side + x)] =
              static_cast<char>(static_cast<uint8_t>(std::clamp(grey, 1.0, 255.0)));
        }
      }
    }
  });
  return out;
}

}  // namespace heed
