// Calls cblas_sgemm matrix by matrix.
#include "heed/train/bench/blas.h"

#include <cblas.h>

namespace heed::bench {

void blas_product(const Product& p, const Tensor& a, const Tensor& b, const Tensor& c) {
  openblas_set_num_threads(1);
  for (int64_t i = 0; i < p.batch; ++i) {
    cblas_sgemm(CblasRowMajor, p.a_turned ? CblasTrans : CblasNoTrans, p.b_turned ? CblasTrans : CblasNoTrans,
                static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), 1.0F,
                a.data<float>() + i * p.m * p.k, static_cast<int>(p.a_turned ? p.m : p.k),
                b.data<float>() + i * p.k * p.n, static_cast<int>(p.b_turned ? p.k : p.n), 0.0F,
                c.data<float>() + i * p.m * p.n, static_cast<int>(p.n));
  }
}

}  // namespace heed::bench
