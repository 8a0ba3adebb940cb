// Tests attention/variants/hard.cpp: sampling, learning from rewards, and the baseline.
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

Tensor normal(const Shape& shape, uint64_t seed, DType dtype = DType::f64) {
  Rng rng(seed);
  const Tensor x(shape, dtype);
  fill_normal(x, 0, 1, rng);
  return x;
}

std::unique_ptr<Attention> made(const std::string& spec, int64_t width, DType dtype = DType::f64) {
  Rng rng(3);
  auto attention = make_attention(spec, {.d_model = width, .cross = true}, rng);
  convert(*attention, dtype);
  return attention;
}

MultiHeadAttention& multi_head(const std::unique_ptr<Attention>& attention) {
  return dynamic_cast<MultiHeadAttention&>(*attention);
}

struct Choose final : Fields {
  explicit Choose(const Tensor& keys) : keys_(keys) {}
  void on(const char* name, Tensor& x) override { on_empty(name, x); }
  void on_empty(const char* name, Tensor& x) override {
    if (std::string(name) == "choices") x = keys_;
  }
  Tensor keys_;
};

Tensor& buffer(Module& module, const std::string& name) {
  for (const Named& named : tensors(module)) {
    if (named.name == name) return *named.tensor;
  }
  fail("no tensor ", name);
}

Tensor ones(int64_t batch) { return Tensor::full(Shape{batch}, 1, DType::f64); }

constexpr int64_t queries = 2, keys = 4, width = 3;

/// log p of what comes out, [1]: anything that is not linear.
Tensor log_likelihood(const Tensor& y) {
  const Tensor target = normal(y.shape(), 77);
  return reshape(sum(square(y - target)) * -0.3 - sum(y * square(target)) * 0.2, Shape{1});
}

/// E over all choices of -log p / weight, from plain numbers.
double expected_loss(const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v,
                     double weight) {
  double chance[queries][keys];
  for (int64_t i = 0; i < queries; ++i) {
    double total = 0;
    for (int64_t j = 0; j < keys; ++j) {
      double dot = 0;
      for (int64_t c = 0; c < width; ++c)
        dot += q[static_cast<size_t>(i * width + c)] * k[static_cast<size_t>(j * width + c)];
      total += chance[i][j] = std::exp(dot);
    }
    for (double& share : chance[i]) share /= total;
  }
  const NoGrad quiet;
  double expected = 0;
  for (int64_t a = 0; a < keys; ++a) {
    for (int64_t b = 0; b < keys; ++b) {
      std::vector<double> y;
      for (const int64_t j : {a, b}) {
        for (int64_t c = 0; c < width; ++c) y.push_back(v[static_cast<size_t>(j * width + c)]);
      }
      const Tensor out = Tensor::of<double>(y, Shape{1, 1, queries, width});
      expected -= chance[0][a] * chance[1][b] * log_likelihood(out).item() / weight;
    }
  }
  return expected;
}

}  // namespace

TEST_CASE("hard: REINFORCE over all choices is the gradient of the expected loss", "[hard]") {
  const double weight = 5, baseline = GENERATE(0.0, 3.0);
  const auto attention = made("hard:score=dot,reward=1,entropy=0", width);
  buffer(*attention, "baseline") = Tensor::of<double>(std::vector<double>{baseline, 1}, Shape{2});
  const Tensor q = leaf(normal(Shape{1, 1, queries, width}, 1)),
               k = leaf(normal(Shape{1, 1, keys, width}, 2)), v = leaf(normal(Shape{1, 1, keys, width}, 4));
  Tensor total;
  double chances = 0;
  std::vector<Tensor> expected{Tensor(), Tensor(), Tensor()};
  for (int32_t a = 0; a < keys; ++a) {
    for (int32_t b = 0; b < keys; ++b) {
      Choose choose(Tensor::of<int32_t>(std::vector<int32_t>{a, b}, Shape{1, 1, queries}));
      attention->fields(choose);
      AuxiliaryLosses terms;
      terms.dry_run = true;
      MapRecorder recorder;
      const Tensor y =
          multi_head(attention).on_heads({q, k, v}, {.context = {.recorder = &recorder, .losses = &terms}});
      const Tensor log_p = log_likelihood(y);
      terms.resolve({log_p.detach(), Tensor::full(Shape{}, weight, DType::f64), ones(1)});
      const std::vector<double> drawn = recorder.maps.at(0).drawn.to_doubles();
      CHECK(drawn[static_cast<size_t>(a)] == 1);
      CHECK(drawn[static_cast<size_t>(keys + b)] == 1);
      // The chance of these choices, from the same scores.
      const Tensor soft = softmax(matmul(q.detach(), transpose(k.detach(), 2, 3)));
      const std::vector<double> weights = soft.to_doubles();
      const double chance = weights[static_cast<size_t>(a)] * weights[static_cast<size_t>(keys + b)];
      chances += chance;
      for (const Tensor* x : {&q, &k, &v}) x->node()->grad = Tensor();
      backward(sum(log_p) * (-1 / weight) + terms.sum());
      const Tensor* all[] = {&q, &k, &v};
      for (size_t n = 0; n < 3; ++n) {
        const Tensor part = grad_of(*all[n]).detach() * chance;
        expected[n] = expected[n] ? expected[n] + part : part;
      }
    }
  }
  CHECK(chances == Approx(1));
  std::vector<double> numbers[] = {q.to_doubles(), k.to_doubles(), v.to_doubles()};
  for (size_t n = 0; n < 3; ++n) {
    const std::vector<double> found = expected[n].to_doubles();
    for (size_t i = 0; i < found.size(); ++i) {
      const double before = numbers[n][i], step = 1e-5;
      numbers[n][i] = before + step;
      const double above = expected_loss(numbers[0], numbers[1], numbers[2], weight);
      numbers[n][i] = before - step;
      const double below = expected_loss(numbers[0], numbers[1], numbers[2], weight);
      numbers[n][i] = before;
      CAPTURE(n, i);
      CHECK(found[i] == Approx((above - below) / (2 * step)).margin(1e-8));
    }
  }
}

TEST_CASE("hard: the mean of what samples give is the soft output", "[hard]") {
  constexpr int64_t draws = 20000;
  const auto attention = made("hard:score=dot,soft=0", 2);
  const Tensor one = normal(Shape{1, 1, 1, 2}, 5), k = normal(Shape{1, 1, 5, 2}, 6), v = normal(k.shape(), 7);
  const Tensor q = contiguous(expand(one, Shape{1, 1, draws, 2}));
  const NoGrad quiet;
  Rng noise(8);
  MapRecorder recorder;
  const auto drawn = multi_head(attention)
                         .on_heads({q, k, v}, {.context = {.rng = &noise, .recorder = &recorder}})
                         .to_doubles();
  const auto soft = multi_head(attention).on_heads({one, k, v}, {}).to_doubles();
  for (size_t c = 0; c < 2; ++c) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < draws; ++i) {
      mean += drawn[2 * i + c] / draws;
      square += drawn[2 * i + c] * drawn[2 * i + c] / draws;
    }
    CHECK(std::abs(mean - soft[c]) <= 4 * std::sqrt((square - mean * mean) / draws));
    CHECK(mean != soft[c]);
  }
  // The probe sees the weights and what was drawn from them.
  const auto picked = recorder.maps.at(0).drawn.to_doubles(),
             weights = recorder.maps.at(0).weights.to_doubles();
  double share = 0;
  for (size_t i = 0; i < draws; ++i) share += picked[5 * i] / draws;
  CHECK(share == Approx(weights[0]).margin(4 * std::sqrt(weights[0] * (1 - weights[0]) / draws)));
}

TEST_CASE("hard: a coin for each batch decides between sample and expectation", "[hard]") {
  const auto attention = made("hard:score=dot,soft=0.25", 2);
  const Tensor q = normal(Shape{1, 1, 3, 2}, 5), k = normal(Shape{1, 1, 5, 2}, 6);
  const NoGrad quiet;
  const auto soft = multi_head(attention).on_heads({q, k, k}, {}).to_doubles();
  Rng noise(8);
  int expectations = 0;
  for (int batch = 0; batch < 400; ++batch) {
    if (multi_head(attention).on_heads({q, k, k}, {.context = {.rng = &noise}}).to_doubles() == soft)
      ++expectations;
    noise.advance();
  }
  CHECK(std::abs(expectations - 100) <= 4 * std::sqrt(400 * 0.25 * 0.75));
}

TEST_CASE("hard: a high temperature is the likeliest key, and argmax takes it", "[hard]") {
  const Tensor q = normal(Shape{2, 1, 6, 3}, 5), k = normal(Shape{2, 1, 7, 3}, 6), v = normal(k.shape(), 7);
  const NoGrad quiet;
  const auto hot = multi_head(made("hard:score=dot,temperature=1e5", 3)).on_heads({q, k, v}, {}).to_doubles();
  const auto best = multi_head(made("hard:score=dot,mode=argmax", 3)).on_heads({q, k, v}, {}).to_doubles();
  const auto tested = multi_head(made("hard:score=dot,test=argmax", 3)).on_heads({q, k, v}, {}).to_doubles();
  CHECK(best == tested);
  for (size_t i = 0; i < hot.size(); ++i) CHECK(hot[i] == Approx(best[i]).margin(1e-9));
  const auto soft = multi_head(made("hard:score=dot,mode=expect", 3)).on_heads({q, k, v}, {}).to_doubles();
  const auto dot = multi_head(made("dot", 3)).on_heads({q, k, v}, {}).to_doubles();
  for (size_t i = 0; i < soft.size(); ++i) CHECK(soft[i] == Approx(dot[i]).margin(1e-9));
}

TEST_CASE("hard: straight through, one key comes out and the soft gradient goes back", "[hard]") {
  const Tensor q = leaf(normal(Shape{1, 1, 4, 3}, 5)), k = leaf(normal(Shape{1, 1, 6, 3}, 6)),
               v = normal(Shape{1, 1, 6, 3}, 7), slope = normal(Shape{1, 1, 4, 3}, 8);
  const auto gradients = [&](const char* spec, Tensor& y) {
    for (const Tensor* x : {&q, &k}) x->node()->grad = Tensor();
    Rng noise(2);
    y = multi_head(made(spec, 3)).on_heads({q, k, v}, {.context = {.rng = &noise}});
    backward(y, slope);
    return std::pair(grad_of(q).to_doubles(), grad_of(k).to_doubles());
  };
  Tensor soft, drawn, best;
  const auto wanted = gradients("hard:score=dot,mode=expect", soft);
  for (const auto& found : {gradients("hard:score=dot,mode=straight_through", drawn),
                            gradients("hard:score=dot,mode=argmax", best)}) {
    for (size_t i = 0; i < found.first.size(); ++i)
      CHECK(found.first[i] == Approx(wanted.first[i]).margin(1e-12));
    for (size_t i = 0; i < found.second.size(); ++i)
      CHECK(found.second[i] == Approx(wanted.second[i]).margin(1e-12));
  }
  // Every row is one of the values.
  const auto rows = drawn.to_doubles(), values = v.to_doubles();
  for (size_t row = 0; row < 4; ++row) {
    bool found = false;
    for (size_t j = 0; j < 6; ++j) {
      double off = 0;
      for (size_t c = 0; c < 3; ++c) off = std::max(off, std::abs(rows[row * 3 + c] - values[j * 3 + c]));
      found = found || off < 1e-9;
    }
    CHECK(found);
  }
}

TEST_CASE("hard: entropy and coverage count as they say, over what the loss is a mean over", "[hard]") {
  const auto attention = made("hard:score=dot,soft=0,reward=0,entropy=0.5,coverage=0.25", 2);
  const Tensor q = leaf(normal(Shape{2, 1, 3, 2}, 5)), k = normal(Shape{2, 1, 4, 2}, 6);
  AuxiliaryLosses terms;
  Rng noise(1);
  MapRecorder recorder;
  multi_head(attention).on_heads({q, k, k},
                                 {.context = {.rng = &noise, .recorder = &recorder, .losses = &terms}});
  CHECK(terms.list.empty());
  CHECK_THROWS_WITH(terms.sum(), containing("'hard'") && containing("resolve_auxiliary_losses"));
  terms.resolve({Tensor::zeros(Shape{2}, DType::f64), Tensor::full(Shape{}, 6, DType::f64), ones(2)});
  const auto map = recorder.maps.at(0).weights.to_doubles();
  double wanted = 0;
  for (size_t b = 0; b < 2; ++b) {
    for (size_t j = 0; j < 4; ++j) {
      double looked = 0;
      for (size_t i = 0; i < 3; ++i) {
        const double share = map[(b * 3 + i) * 4 + j];
        looked += share;
        wanted += 0.5 * share * std::log(share);
      }
      wanted += 0.25 * (1 - looked) * (1 - looked);
    }
  }
  CHECK(terms.sum().item() == Approx(wanted / 6));
}

TEST_CASE("hard: the baseline follows the reward, but not in a dry run", "[hard]") {
  const auto attention = made("hard:score=dot,soft=0,reward=1,entropy=0,decay=0.75", 2);
  const Tensor q = leaf(normal(Shape{2, 1, 3, 2}, 5)), k = normal(Shape{2, 1, 4, 2}, 6);
  const auto value = [&](double first, double second, bool dry_run) {
    Choose choose(Tensor::of<int32_t>(std::vector<int32_t>{0, 1, 2, 3, 2, 1}, Shape{2, 1, 3}));
    attention->fields(choose);
    AuxiliaryLosses terms;
    terms.dry_run = dry_run;
    multi_head(attention).on_heads({q, k, k}, {.context = {.losses = &terms}});
    terms.resolve({Tensor::of<double>(std::vector<double>{first, second}, Shape{2}),
                   Tensor::full(Shape{}, 1, DType::f64), ones(2)});
    return terms.sum().item();
  };
  const auto soft = softmax(matmul(q.detach(), transpose(k, 2, 3))).to_doubles();
  double log_chance[2] = {};
  const size_t picks[] = {0, 1, 2, 3, 2, 1};
  for (size_t i = 0; i < 6; ++i) log_chance[i / 3] += std::log(soft[i * 4 + picks[i]]);
  const auto wanted = [&](double first, double second, double baseline) {
    return -(first - baseline) * log_chance[0] - (second - baseline) * log_chance[1];
  };
  CHECK(value(-4, -8, true) == Approx(wanted(-4, -8, 0)));
  CHECK(value(-4, -8, false) == Approx(wanted(-4, -8, 0)));
  CHECK(value(-1, -2, false) == Approx(wanted(-1, -2, -6)));  // the first mean, in full
  const double second = (0.75 * 0.25 * -6 + 0.25 * -1.5) / (0.75 * 0.25 + 0.25);
  CHECK(value(-3, -3, true) == Approx(wanted(-3, -3, second)));
  CHECK(buffer(*attention, "baseline").to_doubles()[0] == Approx(0.75 * 0.25 * -6 + 0.25 * -1.5));
}

TEST_CASE("hard: sequences that fill a batch up, and padding, change neither loss nor baseline", "[hard]") {
  const int64_t lengths[] = {3, 2};
  const auto found = [&](int64_t batch, int64_t columns) {  // [loss, baseline, gradients of real queries]
    Rng rng(3);
    const auto attention = make_attention("hard:score=dot,coverage=0.5", {.d_model = 2}, rng);
    convert(*attention, DType::f64);
    const auto real = normal(Shape{2, 3, 2}, 5).to_doubles();
    auto rows = normal(Shape{batch, columns, 2}, 6).to_doubles();
    std::vector<int32_t> choices(static_cast<size_t>(batch * columns), 0);
    std::vector<int32_t> counts(static_cast<size_t>(batch), 1);
    for (int64_t b = 0; b < 2; ++b) {
      counts[static_cast<size_t>(b)] = static_cast<int32_t>(lengths[b]);
      for (int64_t i = 0; i < lengths[b]; ++i) {
        choices[static_cast<size_t>(b * columns + i)] = static_cast<int32_t>((i + b) % 2);
        for (int64_t c = 0; c < 2; ++c)
          rows[static_cast<size_t>((b * columns + i) * 2 + c)] =
              real[static_cast<size_t>((b * 3 + i) * 2 + c)];
      }
    }
    const Tensor x = Tensor::of<double>(rows, Shape{batch, 1, columns, 2});
    Choose choose(Tensor::of<int32_t>(choices, Shape{batch, 1, columns}));
    attention->fields(choose);
    const Tensor q = leaf(x);
    AuxiliaryLosses terms;
    multi_head(attention).on_heads(
        {q, x, x},
        {.mask = Mask::lengths(Tensor::of<int32_t>(counts, Shape{batch})), .context = {.losses = &terms}});
    std::vector<double> reward(static_cast<size_t>(batch), 0), there(static_cast<size_t>(batch), 0);
    reward[0] = -4, reward[1] = -7, there[0] = there[1] = 1;
    terms.resolve({Tensor::of<double>(reward, Shape{batch}), Tensor::full(Shape{}, 5, DType::f64),
                   Tensor::of<double>(there, Shape{batch})});
    const Tensor loss = terms.sum();
    backward(loss);
    std::vector<double> all{loss.item(), buffer(*attention, "baseline").to_doubles()[0]};
    for (int64_t b = 0; b < 2; ++b) {
      const auto slopes =
          contiguous(view::slice(view::slice(grad_of(q).detach(), 0, b, b + 1), 2, 0, lengths[b]))
              .to_doubles();
      all.insert(all.end(), slopes.begin(), slopes.end());
    }
    return all;
  };
  const auto alone = found(2, 3), filled = found(5, 9);
  for (size_t i = 0; i < alone.size(); ++i) CHECK(filled[i] == Approx(alone[i]).margin(1e-12));
}

TEST_CASE("hard: a sequence of which no target counts is not real", "[hard]") {
  const Tensor logits = normal(Shape{3, 2, 4}, 1);
  const Tensor targets = Tensor::of<int32_t>(std::vector<int32_t>{1, -1, -1, -1, 0, 3}, Shape{3, 2});
  AuxiliaryLosses terms;
  terms.add("t", [&](const Likelihood& of) {
    CHECK(of.has_targets.to_doubles() == std::vector<double>{1, 0, 1});
    CHECK(of.weight.item() == 3);
    CHECK(of.log_likelihood.to_doubles()[1] == 0);
    return of.weight;
  });
  resolve_auxiliary_losses(&terms, logits, targets);
  CHECK(terms.list.size() == 1);
}

TEST_CASE("hard: masked keys are never drawn, and rows without keys give zeros", "[hard]") {
  const auto attention = made("hard:score=dot,soft=0", 2);
  const Tensor q = leaf(normal(Shape{2, 1, 400, 2}, 5)), k = normal(Shape{2, 1, 6, 2}, 6);
  Rng noise(1);
  MapRecorder recorder;
  AuxiliaryLosses terms;
  const Mask mask = Mask::lengths(Tensor::of<int32_t>(std::vector<int32_t>{3, 0}, Shape{2}));
  const Tensor y = multi_head(attention).on_heads(
      {q, k, k}, {.mask = mask, .context = {.rng = &noise, .recorder = &recorder, .losses = &terms}});
  const auto drawn = recorder.maps.at(0).drawn.to_doubles(), out = y.to_doubles();
  for (size_t i = 0; i < drawn.size(); ++i) {
    if (i / 2400 == 1 || i % 6 >= 3) CHECK(drawn[i] == 0);
  }
  for (size_t i = 800; i < 1600; ++i) CHECK(out[i] == 0);
  terms.resolve({Tensor::full(Shape{2}, -1, DType::f64), Tensor::full(Shape{}, 1, DType::f64), ones(2)});
  backward(sum(y) * 0 + terms.sum());
  for (const double slope : grad_of(q).to_doubles()) CHECK(std::isfinite(slope));
}

TEST_CASE("hard: choices that do not fit are refused", "[hard]") {
  const auto attention = made("hard:score=dot", 2);
  const Tensor q = normal(Shape{1, 1, 2, 2}, 5), k = normal(Shape{1, 1, 3, 2}, 6);
  const auto with = [&](std::vector<int32_t> picks) {
    Choose choose(Tensor::of<int32_t>(picks, Shape{static_cast<int64_t>(picks.size())}));
    attention->fields(choose);
    multi_head(attention).on_heads({q, k, k}, {});
  };
  CHECK_THROWS_WITH(with({0, 1, 2}), containing("[B, H, Tq]"));
  CHECK_THROWS_WITH(with({0, 3}), containing("choice 3") && containing("3 keys"));
}

}  // namespace heed
