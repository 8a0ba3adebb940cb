// Checks the closed formulas of the Casinoformer paper numerically.
#include "heed/train/experiments/tree_claims.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/attention/support/random_projections.h"

namespace heed {
namespace {

using std::numbers::pi;

constexpr double claim_angle = 1.0 / 9;  // theta of sections 4.4 and 4.5, in radians

/// The mean of (w . q)_+ (w . k)_+ over random w on the sphere of radius sqrt(D), for unit vectors q and k
/// with q . k = rho.
double sampled_relu_kernel(double rho, int64_t num_draws) {
  constexpr int64_t d = 16;
  Rng rng(3, Device::cpu);
  const std::vector<double> w =
      random_projection(num_draws, d, {.orthogonal = false, .equal = true}, rng).to_doubles();
  double sum = 0;
  for (int64_t r = 0; r < num_draws; ++r) {
    // q is the first axis, k lies in the plane of the first two.
    const double wq = w[static_cast<size_t>(r * d)];
    const double wk = rho * wq + std::sqrt(1 - rho * rho) * w[static_cast<size_t>(r * d + 1)];
    sum += std::max(wq, 0.0) * std::max(wk, 0.0);
  }
  return sum / static_cast<double>(num_draws);
}

/// The smallest and the largest value of f(angle) for angles from pi / 2 - theta to pi / 2 + theta.
template <class F>
std::pair<double, double> range_over_angles(double theta, const F& f) {
  double low = INFINITY, high = -INFINITY;
  constexpr int steps = 2000;
  for (int i = 0; i <= steps; ++i) {
    const double value = f(pi / 2 - theta + 2 * theta * i / steps);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  return {low, high};
}

Claim equation_3() {
  const double b = 0.99;
  const int l = 100, s = 20, t = 40;
  double sum = 0;  // position p has the weight b^(l - 1 - p)
  for (int k = l - t - 1; k <= l - s - 1; ++k) sum += std::pow(b, k);
  const double published = (std::pow(b, l - s - 1) - std::pow(b, l - t)) / (1 - b);
  return {"equation 3, mass of positions 20 to 40 of 100 by decay 0.99", picture::fixed(published, 3),
          picture::fixed(sum, 3), "exponents are swapped: (b^(l - t - 1) - b^(l - s)) / (1 - b) is the sum"};
}

Claim equation_8() {
  double worst = 0, sampled = 0;
  for (int i = 0; i <= 200; ++i) {
    const double rho = -1 + i / 100.0;
    worst = std::max(worst, std::abs(relu_kernel_approximation(rho) - relu_kernel(rho)));
  }
  for (const double rho : {-0.5, 0.0, 0.5, 1.0})
    sampled = std::max(sampled, std::abs(sampled_relu_kernel(rho, 200000) - relu_kernel(rho)));
  return {
      "equation 8, kernel of FAVOR+ReLU for unit vectors: largest error of the approximation; of 200,000 "
      "draws",
      "", text(picture::fixed(worst, 4), "; ", picture::fixed(sampled, 4)),
      text("holds within ", picture::fixed(100 * worst / relu_kernel(1), 1),
           " % of the value at equal vectors")};
}

Claim equation_10(double size) {
  const double width = 64;
  const auto [low, high] = range_over_angles(
      claim_angle, [&](double angle) { return size * size * std::cos(angle) / std::sqrt(width); });
  const double formula = 2 * std::sin(claim_angle) * size * size / std::sqrt(width);
  return {text("equation 10, log of the dynamic range, theta 1/9, N ", size, ", D 64"),
          picture::fixed(formula, 4), picture::fixed(high - low, 4), "holds"};
}

Claim equation_11(double size) {
  const double width = 64;
  const auto [low, high] = range_over_angles(claim_angle, [&](double angle) {
    return (2 * size * size + 2 * size * size * std::cos(angle)) / std::sqrt(width);
  });
  const double range = 2 * std::sin(claim_angle) * size * size / std::sqrt(width);
  return {text("equation 11, log of the largest exp((q + k)^2 / sqrt(D)), N ", size),
          picture::fixed((1 / std::sin(claim_angle) + 1) * range, 4), picture::fixed(high, 4),
          text("holds; a range of 100 needs more than 10^",
               picture::fixed(2 * (1 / std::sin(claim_angle) + 1), 1), " features, as section 4.4 says")};
}

Claim section_4_5() {
  const double rho = std::sin(claim_angle);
  return {"section 4.5, dynamic range of FAVOR+ReLU at theta 1/9", "1.44",
          text(picture::fixed(relu_kernel_approximation(rho) / relu_kernel_approximation(-rho), 3),
               " by the approximation, ", picture::fixed(relu_kernel(rho) / relu_kernel(-rho), 3),
               " by the kernel"),
          "1.44 is the approximation's; the kernel's own range is narrower"};
}

Claim figure_4(double cosine) {
  const ClampedFourier found = clamped_fourier(cosine, 500, 1);
  return {text("figure 4, clamped RFF of 500 draws, cosine ", picture::fixed(cosine, 2),
               ": mean; deviation / mean"),
          text("exact ", picture::fixed(found.exact, 3)),
          text(picture::fixed(found.mean, 1), "; ", picture::fixed(found.deviation, 2)),
          cosine > 0.9
              ? "exact for equal vectors"
              : text("clamping biases the mean by a factor of ",
                     picture::fixed(found.mean / found.exact, found.mean / found.exact < 10 ? 1 : 0))};
}

}  // namespace

double relu_kernel(double rho) {
  const double sine = std::sqrt(std::max(0.0, 1 - rho * rho));
  const double g = 2 / pi * (sine + rho * std::atan2(rho, sine));
  return (rho + g) / 4;
}

double relu_kernel_approximation(double rho) { return std::pow(rho + 1, std::log2(pi)) / (2 * pi); }

ClampedFourier clamped_fourier(double cosine, int samples, unsigned seed) {
  constexpr int64_t d = 64, directions = 32;
  const double square = 8;  // |x'|^2 of x' = x D^(-1/4), the scaled queries and keys
  Rng rng(seed, Device::cpu);
  double sum = 0, squares = 0;
  for (int n = 0; n < samples; ++n) {
    const std::vector<double> w = random_projection(directions, d, {}, rng).to_doubles();
    double estimate = 0;
    for (int64_t r = 0; r < directions; ++r) {
      // sin a sin b + cos a cos b = cos(w . (q' - k')), in the plane of q' and k'.
      const double along = std::sqrt(square) * (1 - cosine),
                   across = -std::sqrt(square) * std::sqrt(1 - cosine * cosine);
      estimate +=
          std::cos(w[static_cast<size_t>(r * d)] * along + w[static_cast<size_t>(r * d + 1)] * across);
    }
    estimate = std::max(0.0, std::exp(square) * estimate / static_cast<double>(directions));
    sum += estimate;
    squares += estimate * estimate;
  }
  const double mean = sum / samples;
  return {std::exp(square * cosine), mean, std::sqrt(std::max(0.0, squares / samples - mean * mean)) / mean};
}

std::vector<Claim> tree_claims() {
  return {equation_3(), equation_8(),  equation_10(8), equation_11(8), section_4_5(),
          figure_4(1),  figure_4(0.5), figure_4(0),    figure_4(-0.5)};
}

std::string claims_text(const std::vector<Claim>& claims) {
  std::string out =
      "## The paper's equations, computed again\n\n| statement | paper | here | verdict "
      "|\n|---|---|---|---|\n";
  for (const Claim& claim : claims)
    out += text("| ", claim.what, " | ", claim.published, " | ", claim.ours, " | ", claim.verdict, " |\n");
  return out;
}

}  // namespace heed
