// Reorders the sequences of a cache.
#include "heed/nn/attention_cache.h"

#include "heed/autograd/ops.h"

namespace heed {
namespace {

class Reorder final : public Fields {
 public:
  explicit Reorder(const Tensor& order) : order_(order) {}

 private:
  void on(const char*, Tensor& tensor) override {
    Shape shape = tensor.shape();
    shape[0] = order_.size();
    const Tensor rows = reshape(tensor, Shape{tensor.extent(0), -1});
    tensor = reshape(embedding(rows, order_.to(tensor.device())), shape);
  }
  Tensor order_;
};

}  // namespace

void reorder(AttentionCache& cache, const Tensor& order) {
  if (order.dtype() != DType::i32 || order.rank() != 1) {
    fail("reorder: the order is ", order.dtype(), " ", order.shape(),
         "; it must be i32 [B], one row a hypothesis.");
  }
  Reorder visitor(order);
  cache.fields(visitor);
}

}  // namespace heed
