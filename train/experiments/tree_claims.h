// Equations and figures of the Casinoformer paper that need no model, computed again.
#pragma once

#include <string>
#include <vector>

namespace heed {

/// A statement of the paper, and the number that this program computes for it.
struct Claim {
  std::string what;       ///< equation, figure or section, and its statement
  std::string published;  ///< the paper's number; empty: none
  std::string ours;       ///< the computed number, in the same unit
  std::string verdict;    ///< one sentence that compares both
};

/// E[(w . q)_+ (w . k)_+] for unit vectors of cosine similarity `rho`, w uniform on the sphere of radius
/// sqrt(D): (rho + g(rho)) / 4 of equation 8.
double relu_kernel(double rho);
/// The paper's approximation of relu_kernel(): (rho + 1)^(log2 pi) / (2 pi).
double relu_kernel_approximation(double rho);

/// The estimate of exp(q . k / sqrt(D)) by random Fourier features, clamped at zero, over many draws.
struct ClampedFourier {
  double exact = 0;      ///< exp(q . k / sqrt(D))
  double mean = 0;       ///< mean of the clamped estimates
  double deviation = 0;  ///< standard deviation of the clamped estimates, divided by their mean
};
/// Figure 4's setting, D = R = 64 and |q| = |k| = 8: R / 2 random directions, `samples` draws from `seed`.
ClampedFourier clamped_fourier(double cosine, int samples, unsigned seed);

/// Computes equations 3, 8, 10 and 11, section 4.5 and figure 4.
std::vector<Claim> tree_claims();
/// The claims as a section of a page, in Markdown.
std::string claims_text(const std::vector<Claim>& claims);

}  // namespace heed
