// Muon: steps of matrices along the orthogonal matrix nearest to their momentum.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/nn/options.h"

namespace heed {

/// The factor that makes Muon's steps of matrices of different shapes comparable.
enum class MuonScaling {
  match_rms_adamw,  ///< 0.2 sqrt(max(rows, columns)): steps as large as those of AdamW (arXiv 2502.16982)
  original          ///< sqrt(max(1, rows / columns)), of Jordan et al. 2024
};

/// Settings of Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon), for matrices between hidden
/// states: see hidden_matrices(). They are those of torch.optim.Muon, and its Nesterov momentum is always on.
/// OptimizerOptions::hidden_rate is their rate beside that of AdamW's parameters.
struct MuonOptions {
  double momentum = 0.95;                              ///< decay of the running mean of gradients
  int64_t newton_schulz_steps = 5;                     ///< iterations of NewtonSchulz::run()
  MuonScaling scaling = MuonScaling::match_rms_adamw;  ///< factor by the shape of a matrix
  void fields(Fields& f);  ///< names every field with its help: settings of [train]
  void check() const;      ///< fails at a number out of its range
};

/// Adjacent matrices of one shape in the arena of an optimizer.
struct MatrixRun {
  int64_t begin;      ///< first element of the first matrix
  int64_t rows;       ///< rows of each matrix
  int64_t columns;    ///< columns of each matrix
  int64_t stride;     ///< elements from one matrix to the next
  int64_t count = 1;  ///< number of matrices
  /// The first element behind the run.
  int64_t end() const { return begin + count * stride; }
};

/// Buffers in which matrices are made orthogonal, so that a step allocates nothing.
class NewtonSchulz {
 public:
  NewtonSchulz() = default;  ///< has no buffers
  /// Buffers for the largest of the runs.
  NewtonSchulz(const std::vector<MatrixRun>& runs, DType dtype, Device device);
  /// [count, stride]: the buffer of a run's matrices, each followed by its padding. The caller writes the
  /// matrices into it.
  Tensor input(const MatrixRun& run) const;
  /// Replaces each matrix U S V^T of input(run), of rank r, by about U V^T: all r singular values become
  /// about 1, from 0.68 to 1.21 after five steps where they are at least 0.002 of the root of the sum of
  /// their squares. Divides the matrix by that root, then does X = a X + (b X X^T + c (X X^T)^2) X with (a,
  /// b, c) = (3.4445, -4.7750, 2.0315) `steps` times. Computes in f32 or f64, where PyTorch's Muon rounds to
  /// bf16. Returns [count, stride], which the next call overwrites.
  Tensor run(const MatrixRun& run, int64_t steps) const;
  /// Bytes of the buffers.
  int64_t bytes() const;

 private:
  Tensor matrices_[2], grams_[2], squares_;
};

/// The factor of a step by the shape of its matrix.
double muon_scale(MuonScaling scaling, int64_t rows, int64_t columns);

}  // namespace heed
