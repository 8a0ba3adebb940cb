// Formulas of a program applied to scores that are stored: the map of an attention that has them.
#pragma once

#include "heed/core/score_formula.h"
#include "heed/core/tensor.h"

namespace heed {

/// The formula of each pair applied to scores [B, H, Tq, Tk] on the CPU, in f32 or f64. `first_query` is the
/// position of query 0. attention() with AttentionParams::formulas does the same without storing the scores.
Tensor apply_formula(const Tensor& scores, const std::shared_ptr<const ScoreFormula>& formula,
                     int64_t first_query = 0);
/// Scores [B, H, Tq, Tk] on the CPU, in f32 or f64, with -infinity for the pairs that the formula hides.
Tensor apply_mask(const Tensor& scores, const std::shared_ptr<const MaskFormula>& formula,
                  int64_t first_query = 0);

}  // namespace heed
