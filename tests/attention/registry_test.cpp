// Attentions that a program registers.
#include "heed/attention/base/scored_attention.h"
#include "heed/attention/variant.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

/// A dot product with a factor, which is an option.
struct Options {
  double factor = 1;
  void fields(Fields& f) { f("factor", factor, "multiplies each score"); }
};

class Scaled final : public ScoredAttention {
 public:
  Scaled(const AttentionConfig& config, const Options& options, Rng& rng)
      : ScoredAttention(config, rng), factor_(options.factor) {}

 private:
  Tensor score(const Tensor& q, const Tensor& k, const AttentionInput&) const override {
    return matmul(q, transpose(k, 2, 3)) * factor_;
  }
  double factor_;
};

Variant scaled(const char* name, const char* alias = "") {
  return describe<Scaled, Options>({.name = name,
                                    .alias = alias,
                                    .paper = "made up for this test",
                                    .summary = "A scaled dot product.",
                                    .time = {2, 1},
                                    .memory = {2, 0},
                                    .causal = true,
                                    .cross = true,
                                    .steps = true,
                                    .map = MapKind::exact});
}

}  // namespace

TEST_CASE("registry: an attention of a program's own works by its name, beside ours") {
  const std::span<const Variant> before = variants();
  const Variant& softmax = variant_named("softmax");
  const size_t count = before.size();
  register_attention(scaled("own_scaled", "own_alias"));
  REQUIRE(variants().size() == count + 1);
  CHECK(&before[0] != &variants()[0]);
  CHECK(std::string(before[0].traits.name) == variants()[0].traits.name);  // both are there
  CHECK(std::string(softmax.traits.name) == "softmax");
  CHECK(full_spec("own_scaled") == "own_scaled:factor=1");
  CHECK(std::string(variant_named("own_alias").traits.name) == "own_scaled");

  Rng rng(1);
  const AttentionConfig config{.d_model = 8, .heads = 2};
  const auto make = [&](const std::string& spec) {
    Rng same(1);
    return attention_factory(spec)(config, same);
  };
  Tensor x(Shape{1, 5, 8});
  fill_normal(x, 0, 1, rng);
  const auto output = [&](const std::string& spec) {
    return make(spec)->forward({.queries = x, .keys = x}).to_doubles();
  };
  CHECK(output("own_scaled:factor=0.5") == output("own_alias:factor=0.5"));
  CHECK(output("own_scaled:factor=0.5") != output("own_scaled"));
  CHECK_THROWS_WITH(attention_factory("own_scaled:factr=1"), containing("factor"));

  // Names in conflict are refused. In the same test: what is registered stays for the whole process.
  CHECK_THROWS_WITH(register_attention(scaled("softmax")),
                    containing("the name 'softmax' of 'softmax' is taken by the attention 'softmax'"));
  CHECK_THROWS_WITH(register_attention(scaled("own_scaled")), containing("is taken"));
  CHECK_THROWS_WITH(register_attention(scaled("own_alias")),
                    containing("taken by the attention 'own_scaled'"));
  CHECK_THROWS_WITH(register_attention(scaled("other", "linear")),
                    containing("the name 'linear' of 'other' is taken by the attention 'linear'"));
  CHECK_THROWS_WITH(register_attention(scaled("Own")), containing("'Own' cannot name an attention"));
  CHECK_THROWS_WITH(register_attention(scaled("")), containing("cannot name an attention"));
  Variant empty = scaled("empty");
  empty.make = nullptr;
  CHECK_THROWS_WITH(register_attention(empty), containing("has no factory"));
  CHECK(variants().size() == count + 1);
}
