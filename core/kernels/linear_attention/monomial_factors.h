// All features of a polynomial of scores by their letters, for kernels that make each by itself.
#pragma once

#include <cstdint>
#include <vector>

namespace heed::kernel {

/// Monomials of degree 0 to p in d variables, in the order of monomials.h behind those of degree 0 and 1,
/// which are left out where their coefficient is zero. Feature n is the product of letters[n each], ..., of
/// which d stands for the number one; in f(x . y) it counts for weights[n], degree 1 for 1.
struct MonomialLetters {
  int each = 1;
  std::vector<int32_t> letters;
  std::vector<double> weights;

  /// coefficients[l] is that of s^l, with that of degree 1 zero or one.
  MonomialLetters(int64_t d, const std::vector<double>& coefficients) {
    const auto degree = static_cast<int>(coefficients.size()) - 1;
    each = degree > 1 ? degree : 1;
    const auto one = static_cast<int32_t>(d);
    const auto put = [&](const std::vector<int32_t>& word, double weight) {
      letters.insert(letters.end(), word.begin(), word.end());
      letters.insert(letters.end(), static_cast<size_t>(each) - word.size(), one);
      weights.push_back(weight);
    };
    if (coefficients[0] != 0) put({}, coefficients[0]);
    for (int32_t a = 0; degree >= 1 && coefficients[1] != 0 && a < one; ++a) put({a}, 1);
    std::vector<int32_t> word;
    // `count` is l! / (a_1! ... a_d!) of the word, `run` how often its last letter ends it.
    const auto below = [&](const auto& self, int run, double count) -> void {
      const auto depth = static_cast<int>(word.size());
      for (int32_t letter = word.back(), last = letter; depth < degree && letter < one; ++letter) {
        const int longer = letter == last ? run + 1 : 1;
        const double many = count * (depth + 1) / longer;
        word.push_back(letter);
        put(word, many * coefficients[static_cast<size_t>(depth) + 1]);
        self(self, longer, many);
        word.pop_back();
      }
    };
    for (int32_t letter = 0; degree >= 2 && letter < one; ++letter) {
      word = {letter};
      below(below, 1, 1);
    }
  }
};

}  // namespace heed::kernel
