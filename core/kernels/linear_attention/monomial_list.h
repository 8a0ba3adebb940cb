// The monomials of a polynomial of scores, as lists.
#pragma once

#include <cstdint>
#include <vector>

namespace heed::kernel {

/// A monomial of degree 2 or more: its parent, a monomial of one degree less, times one more variable.
template <class T>
struct Monomial {
  int32_t depth;     ///< its degree
  int32_t variable;  ///< the last variable; variables ascend within a monomial
  int32_t parent;    ///< only for degree 2: the first variable
  T weight;          ///< its weight in f(x . y): coefficient times multiplicity
};

/// The monomials of degree 2 to p in d variables, each after its parent and before its parent's next child.
/// coefficients[l] is that of s^l.
template <class T>
std::vector<Monomial<T>> monomials(int64_t d, const std::vector<double>& coefficients) {
  std::vector<Monomial<T>> out;
  const auto degree = static_cast<int32_t>(coefficients.size()) - 1;
  // `multiplicity` is l! / (a_1! ... a_d!) of the parent, whose last variable occurs `repeats` times.
  const auto append_children = [&](const auto& self, int32_t depth, int32_t last, int32_t repeats,
                                   double multiplicity) -> void {
    for (int32_t variable = last; depth < degree && variable < d; ++variable) {
      const int32_t child_repeats = variable == last ? repeats + 1 : 1;
      const double child_multiplicity = multiplicity * (depth + 1) / child_repeats;
      out.push_back({depth + 1, variable, last,
                     static_cast<T>(child_multiplicity * coefficients[static_cast<size_t>(depth) + 1])});
      self(self, depth + 1, variable, child_repeats, child_multiplicity);
    }
  };
  for (int32_t variable = 0; variable < d; ++variable) append_children(append_children, 1, variable, 1, 1);
  return out;
}

/// All features of a polynomial in d variables as lists of factors, for kernels that compute each feature on
/// its own: degree 0 and degree 1, without those whose coefficient is zero, then monomials(). Feature n is
/// the product of the factors_per_monomial variables from variables[n * factors_per_monomial] on, where d
/// stands for the number one. Its weight in f(x . y) is weights[n].
struct MonomialFactors {
  int factors_per_monomial = 1;
  std::vector<int32_t> variables;
  std::vector<double> weights;

  /// coefficients[l] is that of s^l; that of degree 1 is zero or one.
  MonomialFactors(int64_t d, const std::vector<double>& coefficients) {
    const auto degree = static_cast<int>(coefficients.size()) - 1;
    factors_per_monomial = degree > 1 ? degree : 1;
    const auto one = static_cast<int32_t>(d);
    std::vector<int32_t> factors(static_cast<size_t>(factors_per_monomial), one);
    const auto append = [&](double weight) {
      variables.insert(variables.end(), factors.begin(), factors.end());
      weights.push_back(weight);
    };
    if (coefficients[0] != 0) append(coefficients[0]);
    for (factors[0] = 0; degree >= 1 && coefficients[1] != 0 && factors[0] < one; ++factors[0]) append(1);
    for (const Monomial<double>& monomial : monomials<double>(d, coefficients)) {
      const auto depth = static_cast<size_t>(monomial.depth);
      if (depth == 2) factors[0] = monomial.parent;
      factors[depth - 1] = monomial.variable;
      for (size_t behind = depth; behind < factors.size(); ++behind) factors[behind] = one;
      append(monomial.weight);
    }
  }
};

}  // namespace heed::kernel
