// Tests nn/weight_transfer.h: weights for a model whose attention is another.
#include "heed/nn/weight_transfer.h"
#include "heed/core/io/safetensors.h"

#include "heed/tests/catch.h"
#include "heed/tests/nn/plain_attention.h"

using namespace heed;

namespace {

/// Plain attention with a table of its own beside its projections.
struct TableAttention final : Attention {
  TableAttention(const AttentionConfig& config, Rng& rng)
      : plain(config, rng), table(leaf(Tensor(Shape{3}))) {
    fill_normal(table.detach(), 0, 1, rng);
  }
  Tensor forward(const AttentionInput& input) override { return plain.forward(input); }
  void fields(Fields& f) override {
    plain.fields(f);
    f("table", table);
  }
  PlainAttention plain;
  Tensor table;
};

template <class Kind>
struct Model final : Module {
  Model(int64_t width, uint64_t seed) : Model(width, Rng(seed)) {}
  Model(int64_t width, Rng rng) : attention({.d_model = width, .heads = 2}, rng), last(width, 4, rng) {}
  void fields(Fields& f) override {
    f("attention", attention);
    f("last", last);
  }
  Kind attention;
  Linear last;
};

using Plain = Model<PlainAttention>;
using Table = Model<TableAttention>;

std::vector<float> numbers(Module& module, const std::string& name) {
  for (const Named& named : tensors(module)) {
    if (named.name == name) return named.tensor->to_host();
  }
  FAIL("no tensor " << name);
  return {};
}

}  // namespace

TEST_CASE("weight transfer: shared tensors are copied, those of one attention alone stay") {
  Plain from(8, 1);
  Table to(8, 2);
  const std::vector<float> own = numbers(to, "attention.table");
  const WeightTransfer done = transfer_weights(to, SafeTensors::parse(save_bytes(from), "file"));
  CHECK(done.initialised == std::vector<std::string>{"attention.table"});
  CHECK(done.unused.empty());
  CHECK(done.copied.size() == tensors(from).size());
  CHECK(numbers(to, "attention.table") == own);
  for (const Named& named : tensors(from)) CHECK(numbers(to, named.name) == named.tensor->to_host());

  Plain back(8, 3);
  const WeightTransfer returned = transfer_weights(back, SafeTensors::parse(save_bytes(to), "file"));
  CHECK(returned.initialised.empty());
  CHECK(returned.unused == std::vector<std::string>{"attention.table"});
  CHECK(save_bytes(back) == save_bytes(from));
}

TEST_CASE("weight transfer: other shapes are refused by name, and nothing is changed") {
  Plain from(8, 1), to(6, 2);
  const std::string before = save_bytes(to);
  CHECK_THROWS_WITH(transfer_weights(to, SafeTensors::parse(save_bytes(from), "file")),
                    containing("attention.query.weight is f32 [8, 8] there and f32 [6, 6] here") &&
                        containing("last.weight"));
  CHECK(save_bytes(to) == before);
}

TEST_CASE("weight transfer: only attentions may lack a tensor") {
  Linear alone(8, 4, *std::make_unique<Rng>(uint64_t{1}));
  Plain to(8, 2);
  CHECK_THROWS_WITH(
      transfer_weights(to, SafeTensors::parse(save_bytes(alone), "file")),
      containing("last.weight [4, 8] is missing there") && containing("weight f32 [4, 8] is missing here"));
}
