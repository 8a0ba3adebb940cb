// All features of a polynomial of scores as lists of variables, for kernels that compute each feature on its
// own.
#pragma once

#include <cstdint>
#include <vector>

namespace heed::kernel {

/// Monomials of degree 0 to p in d variables, in the order of monomials.h behind those of degree 0 and 1,
/// which are left out where their coefficient is zero. Feature n is the product of the factors_per_monomial
/// variables from variables[n * factors_per_monomial] on, where d stands for the number one. Its weight in
/// f(x . y) is weights[n]; degree 1 has weight 1.
struct MonomialFactors {
  int factors_per_monomial = 1;
  std::vector<int32_t> variables;
  std::vector<double> weights;

  /// coefficients[l] is that of s^l, with that of degree 1 zero or one.
  MonomialFactors(int64_t d, const std::vector<double>& coefficients) {
    const auto degree = static_cast<int>(coefficients.size()) - 1;
    factors_per_monomial = degree > 1 ? degree : 1;
    const auto one = static_cast<int32_t>(d);
    const auto append = [&](const std::vector<int32_t>& monomial, double weight) {
      variables.insert(variables.end(), monomial.begin(), monomial.end());
      variables.insert(variables.end(), static_cast<size_t>(factors_per_monomial) - monomial.size(), one);
      weights.push_back(weight);
    };
    if (coefficients[0] != 0) append({}, coefficients[0]);
    for (int32_t a = 0; degree >= 1 && coefficients[1] != 0 && a < one; ++a) append({a}, 1);
    std::vector<int32_t> monomial;
    // `count` is l! / (a_1! ... a_d!) of the monomial, `run` the multiplicity of its last variable.
    const auto below = [&](const auto& self, int run, double count) -> void {
      const auto depth = static_cast<int>(monomial.size());
      for (int32_t variable = monomial.back(), last = variable; depth < degree && variable < one;
           ++variable) {
        const int longer = variable == last ? run + 1 : 1;
        const double multiplicity = count * (depth + 1) / longer;
        monomial.push_back(variable);
        append(monomial, multiplicity * coefficients[static_cast<size_t>(depth) + 1]);
        self(self, longer, multiplicity);
        monomial.pop_back();
      }
    };
    for (int32_t variable = 0; degree >= 2 && variable < one; ++variable) {
      monomial = {variable};
      below(below, 1, 1);
    }
  }
};

}  // namespace heed::kernel
