// The random search of Conti 2024 and the generators of its notebook.
#include "heed/attention/structure/random_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/core/error.h"
#include "heed/core/random.h"

namespace heed {
namespace {

/// Divides each row by its sum; a row of zeros becomes NaN.
void normalise_rows(SquareMatrix& map) {
  for (int64_t i = 0; i < map.size; ++i) {
    double sum = 0;
    for (const double value : map.row(i)) sum += value;
    for (int64_t j = 0; j < map.size; ++j) map.at(i, j) /= sum;
  }
}

/// The entry-wise distance of two maps; infinity where it is at least `limit` or not a number, which ends the
/// sum early.
double bounded_distance(const SquareMatrix& a, const SquareMatrix& b, double limit) {
  double sum = 0;
  for (int64_t i = 0; i < a.size; ++i) {
    for (int64_t j = 0; j < a.size; ++j) sum += std::abs(a.at(i, j) - b.at(i, j));
    if (!(sum < limit)) return std::numeric_limits<double>::infinity();
  }
  return sum;
}

}  // namespace

double MapGenerator::uniform() {
  if (num_unused_words_ == 0) {
    const Philox block = Philox::at(seed_, counter_++, stream_);
    std::copy(std::begin(block.word), std::end(block.word), words_);
    num_unused_words_ = 4;
  }
  return words_[--num_unused_words_] * 0x1p-32;
}

int64_t MapGenerator::below(int64_t count) {
  return std::min(static_cast<int64_t>(uniform() * static_cast<double>(count)), count - 1);
}

void MapGenerator::add_noise(SquareMatrix& map, double size) {
  std::vector<int64_t> drawn;  // map.size distinct entries of the row-major map
  while (static_cast<int64_t>(drawn.size()) < map.size) {
    const int64_t entry = below(map.size * map.size);
    if (std::find(drawn.begin(), drawn.end(), entry) != drawn.end()) continue;
    drawn.push_back(entry);
    const double noise = size * uniform();
    const bool is_on_diagonal = entry % (map.size + 1) == 0;
    if (!is_on_diagonal) map.values[static_cast<size_t>(entry)] += noise;  // diagonal entries use up a draw
  }
}

SquareMatrix MapGenerator::diagonal(int64_t size, double noise) {
  SquareMatrix out = SquareMatrix::zeros(size);
  for (int64_t i = 0; i < size; ++i) out.at(i, i) = 1 - 0.1 * uniform();
  add_noise(out, noise);
  normalise_rows(out);
  return out;
}

SquareMatrix MapGenerator::band(int64_t size, int64_t width, double noise) {
  SquareMatrix out = SquareMatrix::zeros(size);
  for (int64_t i = 0; i < size; ++i) {
    const int64_t last = std::min(i + width, size - 1);
    for (int64_t j = std::max<int64_t>(i - width, 0); j <= last; ++j) {
      if (uniform() < 0.6) out.at(i, j) = 0.7 + 0.3 * uniform();
    }
  }
  add_noise(out, noise);
  normalise_rows(out);
  return out;
}

SquareMatrix MapGenerator::bars(int64_t size, int64_t num_pos, int64_t width, double weight) {
  SquareMatrix out = SquareMatrix::zeros(size);
  for (int64_t i = 0; i < size; ++i) out.at(i, i) = weight * (0.7 + 0.3 * uniform());
  // Distinct numbers below size - num_pos (width - 1), in ascending order, each shifted by width - 1 for
  // every earlier bar: every set of starts at least `width` apart is equally likely.
  const int64_t num_choices = size - num_pos * (width - 1);
  std::vector<int64_t> drawn;
  while (static_cast<int64_t>(drawn.size()) < num_pos) {
    const int64_t number = below(num_choices);
    if (std::find(drawn.begin(), drawn.end(), number) == drawn.end()) drawn.push_back(number);
  }
  std::sort(drawn.begin(), drawn.end());
  for (int64_t k = 0; k < num_pos; ++k) {
    const int64_t start = drawn[static_cast<size_t>(k)] + k * (width - 1);
    for (int64_t i = start; i < start + width; ++i) std::swap(out.at(i, i), out.at(i, start));
  }
  add_noise(out, 0.5);
  normalise_rows(out);
  return out;
}

SearchResult random_search(const SquareMatrix& map, const SearchOptions& options) {
  if (options.width < 1 || options.num_pos < 1 || options.num_pos * options.width > map.size) {
    fail("structure: ", options.num_pos, " bars of height ", options.width, " do not fit into a map of ",
         map.size, " rows. Both must be at least 1, and their product at most the number of rows.");
  }
  if (options.draws < 1 || options.grid < 2)
    fail("structure: ", options.draws, " draws on a grid of ", options.grid,
         ". There must be at least 1, and 2 values.");
  MapGenerator generator(options.seed, options.stream);
  SearchResult best{.distance = std::numeric_limits<double>::infinity()};
  const auto try_candidate = [&](MapFamily family, SquareMatrix candidate) {
    ++best.candidates;
    const double distance = bounded_distance(map, candidate, best.distance);
    if (!(distance < best.distance)) return;
    best.distance = distance;
    best.family = family;
    best.matrix = std::move(candidate);
  };
  const auto coefficient = [&](int64_t step) {
    return static_cast<double>(step) / static_cast<double>(options.grid - 1);
  };
  for (int64_t weight = 0; weight < options.grid; ++weight) {
    for (int64_t unused = 0; unused < options.grid;
         ++unused) {  // a coefficient that the notebook never reads
      for (int64_t noise = 0; noise < options.grid; ++noise) {
        for (int64_t draw = 0; draw < options.draws; ++draw) {
          try_candidate(MapFamily::diagonal, generator.diagonal(map.size, coefficient(noise)));
          try_candidate(MapFamily::band, generator.band(map.size, options.width, coefficient(noise)));
          try_candidate(MapFamily::bars,
                        generator.bars(map.size, options.num_pos, options.width, coefficient(weight)));
        }
      }
    }
  }
  return best;
}

}  // namespace heed
