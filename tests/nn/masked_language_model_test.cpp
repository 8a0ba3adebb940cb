// The model of masked language modelling: its parts, padding, types and loss.
#include "heed/nn/masked_language_model.h"

#include <functional>

#include "heed/autograd/gradcheck.h"
#include "heed/autograd/in_place.h"
#include "heed/tests/nn/plain_attention.h"
#include "heed/tests/nn/sequences.h"

namespace heed {
namespace {

TransformerConfig masked_config(Tie tie) {
  TransformerConfig out{.d_model = 8, .heads = 2, .d_ff = 12, .layers = 2, .max_length = 8};
  out.dropout = 0;
  out.norm = NormPlace::post;
  out.position = PositionKind::learned;
  out.tie_embeddings = tie;
  out.tied_output_bias = tie == Tie::output;
  return out;
}

MaskedLanguageModel masked_model(int64_t token_types = 2, Tie tie = Tie::output) {
  Rng rng(1);
  return {masked_config(tie), {.vocabulary = 9, .token_types = token_types}, plain_attention, rng};
}

}  // namespace

TEST_CASE("masked model: padding does not change the tokens of a sequence, packed or not") {
  const MaskedLanguageModel model = masked_model();
  const NoGrad no_grad;
  const Tensor alone = model.hidden(test::ids({1, 2, 3}, 1), {}, {});
  CHECK(alone.shape() == Shape{1, 3, 8});
  for (const bool packs : {true, false}) {
    const Tensor both =
        model.hidden(test::ids({1, 2, 3, 0, 0, 4, 5, 6, 7, 8}, 2), test::lengths({3, 5}), {.packs = packs});
    CHECK(both.shape() == Shape{2, 5, 8});
    CHECK(test::apart(slice(slice(both, 0, 0, 1), 1, 0, 3), alone) < 1e-5);
  }
}

TEST_CASE("masked model: the loss depends on each tensor, and its gradients are those of differences") {
  for (const Tie tie : {Tie::output, Tie::none}) {
    MaskedLanguageModel model = masked_model(2, tie);
    convert(model, DType::f64);
    const Tensor ids = test::ids({1, 2, 3, 4, 0, 0}, 2), lengths = test::lengths({3, 1}),
                 rows = test::lengths({0, 2, 3}), targets = test::lengths({5, 1, 2});
    std::vector<Tensor> leaves;
    for (const Named& named : parameters(model)) leaves.push_back(*named.tensor);
    const auto loss = [&] {
      const Tensor hidden = model.hidden(ids, lengths, {});
      return cross_entropy(model.logits(embedding(reshape(hidden, Shape{6, 8}), rows)), targets);
    };
    const GradcheckReport report = gradcheck(loss, leaves, {.samples = 12});
    INFO(to_string(report));
    CHECK(report.passed);
    CHECK_NOTHROW(check_listed(model, loss()));
  }
}

TEST_CASE("masked model: every token is of the first type, and embeddings are normalised") {
  MaskedLanguageModel model = masked_model();
  const NoGrad no_grad;
  const Tensor ids = test::ids({1, 2, 3}, 1);
  const auto change = [&](const std::string& part, const std::function<double(size_t i, double x)>& to) {
    const Tensor before = model.hidden(ids, {}, {});
    visit_tensors(model, [&](const std::string& name, Tensor& x) {
      if (name != part) return;
      std::vector<float> numbers = x.to_host();
      for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(to(i, numbers[i]));
      copy_(x.detach(), Tensor::of<float>(numbers, x.shape()));
    });
    return test::apart(model.hidden(ids, {}, {}), before);
  };
  const auto one_more = [](size_t, double x) { return x + 1; };
  CHECK(change("types.weight", [](size_t i, double x) { return i < 8 ? x : x + 1; }) == 0);
  CHECK(change("types.weight", [](size_t i, double x) { return i == 0 ? x + 1 : x; }) > 1e-3);
  CHECK(change("types.weight", one_more) < 1e-5);  // the norm subtracts the mean
  CHECK(change("embedding_norm.bias", [](size_t i, double x) { return i == 0 ? x + 1 : x; }) > 1e-3);
}

TEST_CASE("masked model: the loss is the cross entropy of the logits") {
  const MaskedLanguageModel model = masked_model();
  const NoGrad no_grad;
  const Tensor hidden = model.hidden(test::ids({1, 2, 3, 4}, 1), {}, {});
  const Tensor rows = reshape(hidden, Shape{4, 8}), targets = test::lengths({4, 3, 2, 1});
  CHECK(model.token_loss(rows, targets).item() ==
        Approx(cross_entropy(model.logits(rows), targets).item()).epsilon(1e-6));
  CHECK_THROWS_WITH(masked_model(0), containing("Embedding: vocabulary"));
}

}  // namespace heed
