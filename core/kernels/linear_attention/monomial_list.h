// The monomials of a polynomial of scores, as lists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace heed::kernel {

/// A monomial of degree 2 or more: its parent, a monomial of one degree less, times one more variable.
template <class T>
struct Monomial {
  int32_t degree;
  int32_t variable;         ///< the last variable; variables ascend within a monomial
  int32_t parent_variable;  ///< the last variable of the parent, which for degree 2 is the parent itself
  T weight;                 ///< weight in f(x . y): coefficient of the degree times multiplicity
};

/// The monomials of degree 2 to p in d variables, depth first: each after its parent and before the parent's
/// next child. coefficients[l] belongs to s^l.
template <class T>
std::vector<Monomial<T>> list_monomials(int64_t d, const std::vector<double>& coefficients) {
  std::vector<Monomial<T>> out;
  const auto max_degree = static_cast<int32_t>(coefficients.size()) - 1;
  // Appends the children of a monomial, and theirs. `multiplicity` is l! / (a_1! ... a_d!) of the monomial,
  // whose last variable occurs `repeats` times.
  const auto append_children = [&](const auto& self, int32_t degree, int32_t last_variable, int32_t repeats,
                                   double multiplicity) -> void {
    for (int32_t variable = last_variable; degree < max_degree && variable < d; ++variable) {
      const int32_t child_repeats = variable == last_variable ? repeats + 1 : 1;
      const double child_multiplicity = multiplicity * (degree + 1) / child_repeats;
      const double coefficient = coefficients[static_cast<size_t>(degree) + 1];
      out.push_back({.degree = degree + 1,
                     .variable = variable,
                     .parent_variable = last_variable,
                     .weight = static_cast<T>(child_multiplicity * coefficient)});
      self(self, degree + 1, variable, child_repeats, child_multiplicity);
    }
  };
  for (int32_t variable = 0; variable < d; ++variable) append_children(append_children, 1, variable, 1, 1);
  return out;
}

/// All features of a polynomial in d variables as lists of factors, for kernels that compute each feature on
/// its own: degree 0 and degree 1, where their coefficients are not zero, then list_monomials(). Feature n is
/// the product of the factors_per_monomial variables from variables[n * factors_per_monomial] on, where index
/// d stands for the number one. Its weight in f(x . y) is weights[n].
struct MonomialFactors {
  int factors_per_monomial = 1;
  std::vector<int32_t> variables;
  std::vector<double> weights;

  /// coefficients[l] belongs to s^l; coefficients[1] is zero or one.
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
    // Depth first: `factors` still begins with the factors of the monomial's parent.
    for (const Monomial<double>& monomial : list_monomials<double>(d, coefficients)) {
      const auto num_factors = static_cast<size_t>(monomial.degree);
      if (num_factors == 2) factors[0] = monomial.parent_variable;
      factors[num_factors - 1] = monomial.variable;
      std::fill(factors.begin() + monomial.degree, factors.end(), one);
      append(monomial.weight);
    }
  }
};

}  // namespace heed::kernel
