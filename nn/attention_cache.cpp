// Counts and reorders the sequences of a cache.
#include "heed/nn/attention_cache.h"

#include "heed/autograd/ops.h"

namespace heed {
namespace {

class Reorder final : public Fields {
 public:
  explicit Reorder(const Tensor& order) : order_(order) {}

 private:
  void on(const char*, Tensor& tensor) override { tensor = rows_in_order(tensor, order_); }
  Tensor order_;
};

class CountSequences final : public Fields {
 public:
  int64_t count = 0;

 private:
  void on(const char*, Tensor& tensor) override { count = tensor ? tensor.extent(0) : count; }
};

}  // namespace

int64_t sequences_of(AttentionCache& cache) {
  CountSequences visitor;
  cache.fields(visitor);
  return visitor.count;
}

Tensor rows_in_order(const Tensor& x, const Tensor& order) {
  Shape shape = x.shape();
  shape[0] = order.size();
  return reshape(embedding(reshape(x, Shape{x.extent(0), -1}), order.to(x.device())), shape);
}

void reorder(AttentionCache& cache, const Tensor& order) {
  if (order.dtype() != DType::i32 || order.rank() != 1) {
    fail("reorder: the order is ", order.dtype(), " ", order.shape(),
         "; it must be i32 [B], one row a hypothesis.");
  }
  Reorder visitor(order);
  cache.fields(visitor);
}

}  // namespace heed
