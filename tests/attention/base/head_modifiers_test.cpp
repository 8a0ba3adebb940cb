// Tests attention/base/head_modifiers.h: positions in attention, shared keys, caps and sinks, against known
// results.
#include "heed/attention/base/head_modifiers.h"
#include "heed/attention/base/grouped_query.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/tests/attention/battery/battery.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

Tensor random(const Shape& shape, uint64_t seed, DType dtype = DType::f64) {
  Rng rng(seed);
  const Tensor x(shape, dtype);
  fill_normal(x, 0, 1, rng);
  return x;
}

std::unique_ptr<Attention> made(AttentionConfig config, const std::string& spec = "softmax") {
  Rng rng(4);
  auto out = make_attention(spec, config, rng);
  convert(*out, DType::f64);
  return out;
}

MultiHeadAttention& multi_head(Attention& attention) { return dynamic_cast<MultiHeadAttention&>(attention); }

std::vector<double> map_of(Attention& attention, const Tensor& x, const Mask& mask) {
  const NoGrad quiet;
  MapRecorder recorder;
  attention.forward({.queries = x, .keys = x, .mask = mask, .context = {.recorder = &recorder}});
  return recorder.maps.at(0).weights.to_doubles();
}

double at(const Tensor& x, int64_t row, int64_t column) {
  return x.to_doubles()[static_cast<size_t>(row * x.extent(-1) + column)];
}

}  // namespace

TEST_CASE("modified: products of turned vectors depend on their distance only") {
  Rng rng(1);
  for (const PositionKind kind : {PositionKind::rope, PositionKind::rope_interleaved}) {
    const HeadModifiers modifiers({.d_model = 6, .heads = 1, .modifiers = {.position = kind}}, rng);
    const Tensor q = expand(random(Shape{1, 1, 1, 6}, 2), Shape{1, 1, 40, 6}),
                 k = expand(random(Shape{1, 1, 1, 6}, 3), Shape{1, 1, 40, 6});
    const Tensor products = matmul(modifiers.normalize_and_rotate_query(q, 0),
                                   transpose(modifiers.normalize_and_rotate_key(k, 0), 2, 3));
    for (int64_t i = 0; i + 1 < 40; ++i) {
      for (int64_t j = 0; j + 1 < 40; ++j)
        CHECK(at(products, i + 1, j + 1) == Approx(at(products, i, j)).margin(1e-12));
    }
    CHECK(at(products, 7, 0) != Approx(at(products, 0, 7)).margin(1e-3));
    const Tensor later = modifiers.normalize_and_rotate_query(slice(q, 2, 0, 3), 30);
    const auto part = modifiers.normalize_and_rotate_query(q, 0).to_doubles(), found = later.to_doubles();
    for (size_t n = 0; n < 18; ++n) CHECK(found[n] == part[30 * 6 + n]);
    for (size_t n = 0; n < 6; ++n) CHECK(part[n] == q.to_doubles()[n]);  // position 0 stays
  }
}

TEST_CASE("modified: angles of rope are position times base^(-2 i / d), in both layouts") {
  Rng rng(1);
  const Tensor ones = Tensor::full(Shape{1, 1, 4, 4}, 1, DType::f64);
  for (const bool halves : {true, false}) {
    const HeadModifiers modifiers(
        {.d_model = 4,
         .modifiers = {.position = halves ? PositionKind::rope : PositionKind::rope_interleaved,
                       .position_base = 100}},
        rng);
    const auto y = modifiers.normalize_and_rotate_key(ones, 0).to_doubles();
    for (size_t t = 0; t < 4; ++t) {
      for (size_t pair = 0; pair < 2; ++pair) {
        const double angle = static_cast<double>(t) * (pair == 0 ? 1 : 0.1);
        const size_t a = t * 4 + (halves ? pair : 2 * pair), b = a + (halves ? 2 : 1);
        CHECK(y[a] == Approx(std::cos(angle) - std::sin(angle)));
        CHECK(y[b] == Approx(std::cos(angle) + std::sin(angle)));
      }
    }
  }
}

TEST_CASE("modified: slopes of alibi") {
  CHECK(alibi_slopes(8) ==
        std::vector<double>{0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625});
  CHECK(alibi_slopes(1) == std::vector<double>{1.0 / 256});
  CHECK(alibi_slopes(6) == std::vector<double>{0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125});
  // Equal queries and keys: the weights are those of the bias alone.
  for (const bool causal : {true, false}) {
    const auto attention =
        made({.d_model = 4, .heads = 2, .causal = causal, .modifiers = {.position = PositionKind::alibi}});
    multi_head(*attention).query.weight = Tensor::zeros(Shape{4, 4}, DType::f64);
    const auto map = map_of(*attention, random(Shape{1, 70, 4}, 1), causal ? Mask::causal() : Mask::none());
    for (int64_t h = 0; h < 2; ++h) {
      for (const int64_t i : {0, 3, 69}) {
        const auto weight = [&](int64_t j) { return map[static_cast<size_t>((h * 70 + i) * 70 + j)]; };
        const double slope = h == 0 ? 1.0 / 16 : 1.0 / 256;
        for (int64_t j = 0; j < 70; ++j) {
          const double expected =
              causal && j > i ? 0 : std::exp(-slope * std::abs(static_cast<double>(i - j)));
          CHECK(weight(j) / weight(i) == Approx(expected).margin(1e-12));
        }
      }
    }
  }
}

TEST_CASE("modified: buckets of t5") {
  const auto causal = [](int64_t distance) { return t5_bucket(distance, true, 32, 128); };
  for (int64_t n = 0; n < 16; ++n) CHECK(causal(-n) == n);
  CHECK(causal(5) == 0);
  CHECK(causal(-16) == 16);
  CHECK(causal(-64) == 26);  // 16 + floor(16 log 4 / log 8)
  CHECK(causal(-127) == 31);
  CHECK(causal(-100000) == 31);
  const auto both = [](int64_t distance) { return t5_bucket(distance, false, 32, 128); };
  CHECK(both(0) == 0);
  CHECK(both(-7) == 7);
  CHECK(both(7) == 16 + 7);
  CHECK(both(-8) == 8);
  CHECK(both(500) == 31);
  CHECK(both(-500) == 15);
}

TEST_CASE("modified: a bias of t5 is that of its bucket, a vector of shaw meets its query") {
  const Tensor x = random(Shape{1, 9, 4}, 5);
  const auto biased =
      made({.d_model = 4,
            .heads = 2,
            .modifiers = {.position = PositionKind::t5, .position_buckets = 8, .position_span = 6}});
  multi_head(*biased).query.weight = Tensor::zeros(Shape{4, 4}, DType::f64);
  Tensor table, vectors;
  for (const Named& one : tensors(*biased)) {
    if (one.name == "position_bias") table = *one.tensor = leaf(random(Shape{8, 2}, 6));
  }
  REQUIRE(table);
  const auto map = map_of(*biased, x, Mask::none());
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t i = 0; i < 9; ++i) {
      for (int64_t j = 0; j < 9; ++j) {
        const auto weight = [&](int64_t key) { return map[static_cast<size_t>((h * 9 + i) * 9 + key)]; };
        const auto bias = [&](int64_t key) { return at(table, t5_bucket(key - i, false, 8, 6), h); };
        CHECK(std::log(weight(j) / weight(0)) == Approx(bias(j) - bias(0)).margin(1e-10));
      }
    }
  }
  const auto shifted =
      made({.d_model = 2, .causal = true, .modifiers = {.position = PositionKind::shaw, .position_span = 2}});
  multi_head(*shifted).key.weight = Tensor::zeros(Shape{2, 2}, DType::f64);
  for (const Named& one : tensors(*shifted)) {
    if (one.name == "position_vectors") vectors = *one.tensor = leaf(random(Shape{5, 2}, 7));
  }
  const Tensor y = random(Shape{1, 6, 2}, 8);
  const Tensor q = multi_head(*shifted).query(y);
  const auto shaw = map_of(*shifted, y, Mask::causal());
  for (int64_t i = 0; i < 6; ++i) {
    const auto score = [&](int64_t j) {
      const int64_t row = std::max<int64_t>(j - i, -2) + 2;
      return (at(q, i, 0) * at(vectors, row, 0) + at(q, i, 1) * at(vectors, row, 1)) / std::sqrt(2.0);
    };
    for (int64_t j = 0; j <= i; ++j) {
      const double ratio = shaw[static_cast<size_t>(i * 6 + j)] / shaw[static_cast<size_t>(i * 6)];
      CHECK(std::log(ratio) == Approx(score(j) - score(0)).margin(1e-10));
    }
  }
}

TEST_CASE("modified: shaw adds a vector to the value of each pair too, by its distance") {
  for (const bool causal : {false, true}) {
    const AttentionConfig config{.d_model = 4,
                                 .heads = 2,
                                 .causal = causal,
                                 .modifiers = {.position = PositionKind::shaw, .position_span = 2}};
    const auto shaw = made(config);
    Tensor vectors;
    for (const Named& one : tensors(*shaw)) {
      if (one.name == "value_vectors") vectors = *one.tensor = leaf(random(Shape{5, 2}, 9));
      if (one.name == "position_vectors") *one.tensor = leaf(random(Shape{5, 2}, 10));
    }
    REQUIRE(vectors);
    const Tensor q = random(Shape{2, 2, 7, 2}, 1), k = random(Shape{2, 2, 7, 2}, 2),
                 v = random(Shape{2, 2, 7, 2}, 3);
    MapRecorder recorder;
    const Mask mask = causal ? Mask::causal() : Mask::none();
    const Tensor y = multi_head(*shaw).on_heads({.q = q, .k = k, .v = v},
                                                {.mask = mask, .context = {.recorder = &recorder}});
    const auto found = y.to_doubles(), map = recorder.maps.at(0).weights.to_doubles(),
               values = v.to_doubles();
    for (size_t head = 0; head < 4; ++head) {
      for (size_t i = 0; i < 7; ++i) {
        for (size_t c = 0; c < 2; ++c) {
          double wanted = 0;
          for (size_t j = 0; j < 7; ++j) {
            const auto row =
                std::clamp<int64_t>(static_cast<int64_t>(j) - static_cast<int64_t>(i), -2, 2) + 2;
            wanted += map[(head * 7 + i) * 7 + j] *
                      (values[(head * 7 + j) * 2 + c] + at(vectors, row, static_cast<int64_t>(c)));
          }
          CHECK(found[(head * 7 + i) * 2 + c] == Approx(wanted).margin(1e-12));
        }
      }
    }
    const Tensor wide = random(Shape{2, 2, 7, 3}, 3);
    CHECK_THROWS_WITH(multi_head(*shaw).on_heads({.q = q, .k = k, .v = wide}, {}),
                      containing("use shaw_keys"));
  }
}

TEST_CASE("modified: as many key heads as heads is what there was, tied groups are repeated heads") {
  const Tensor x = random(Shape{2, 75, 8}, 1);
  for (const std::string spec : {"softmax", "additive", "linear"}) {
    CAPTURE(spec);
    const auto plain = made({.d_model = 8, .heads = 4, .causal = true}, spec),
               same = made({.d_model = 8, .heads = 4, .kv_heads = 4, .causal = true}, spec),
               few = made({.d_model = 8, .heads = 4, .kv_heads = 2, .causal = true}, spec);
    const auto run = [&](Attention& one) {
      return one.forward({.queries = x, .keys = x, .mask = Mask::causal()});
    };
    CHECK(run(*same).to_doubles() == run(*plain).to_doubles());
    // Heads 0, 1 share key head 0; heads 2, 3 share key head 1.
    const auto spread_rows = [](const Tensor& weight) {
      std::vector<Tensor> rows;
      for (const int64_t from : {0, 0, 2, 2}) rows.push_back(slice(weight.detach(), 0, from, from + 2));
      return leaf(concat(rows, 0));
    };
    multi_head(*plain).key.weight = spread_rows(multi_head(*few).key.weight);
    multi_head(*plain).value.weight = spread_rows(multi_head(*few).value.weight);
    const Tensor direction = random(x.shape(), 9);
    const Tensor y = run(*few), expected = run(*plain);
    const auto found = y.to_doubles(), wanted = expected.to_doubles();
    for (size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(wanted[i]).margin(1e-12));
    backward(y, direction);
    backward(expected, direction);
    for (const bool keys : {true, false}) {
      const auto weight = [&](Attention& one) {
        return keys ? multi_head(one).key.weight : multi_head(one).value.weight;
      };
      const Tensor summed = grad_of(weight(*few)), apart = grad_of(weight(*plain));
      for (int64_t row = 0; row < 4; ++row) {
        for (int64_t c = 0; c < 8; ++c) {
          const int64_t first = row / 2 * 4 + row % 2;
          CHECK(at(summed, row, c) == Approx(at(apart, first, c) + at(apart, first + 2, c)).margin(1e-10));
        }
      }
    }
  }
}

TEST_CASE("modified: a memory keeps the key heads there are") {
  const NoGrad quiet;
  for (const std::string spec : {"softmax", "additive"}) {
    const auto attention = made({.d_model = 8, .heads = 4, .kv_heads = 1, .causal = true}, spec);
    const auto cache = attention->new_cache();
    const Tensor row = random(Shape{3, 1, 8}, 2);
    attention->forward({.queries = row, .keys = row, .mask = Mask::causal(), .cache = cache.get()});
    CHECK(dynamic_cast<KeyValueCache&>(*cache).keys.extent(1) == 1);
  }
}

TEST_CASE("modified: a sink of zero is softmax off by one, a cap that is far away does nothing") {
  const Tensor x = random(Shape{1, 5, 2}, 3);
  const auto sunk = made({.d_model = 2, .modifiers = {.sink = Sink::zero}}), plain = made({.d_model = 2}),
             capped = made({.d_model = 2, .modifiers = {.softcap = 1e7}}),
             low = made({.d_model = 2, .modifiers = {.softcap = 0.01}});
  const Tensor q = multi_head(*plain).query(x), k = multi_head(*plain).key(x);
  const auto with = map_of(*sunk, x, Mask::none()), without = map_of(*plain, x, Mask::none()),
             far = map_of(*capped, x, Mask::none()), near = map_of(*low, x, Mask::none());
  for (int64_t i = 0; i < 5; ++i) {
    double total = 1;
    std::vector<double> exponentials;
    for (int64_t j = 0; j < 5; ++j) {
      exponentials.push_back(
          std::exp((at(q, i, 0) * at(k, j, 0) + at(q, i, 1) * at(k, j, 1)) / std::sqrt(2.0)));
      total += exponentials.back();
    }
    for (int64_t j = 0; j < 5; ++j) {
      const auto n = static_cast<size_t>(i * 5 + j);
      CHECK(with[n] == Approx(exponentials[static_cast<size_t>(j)] / total));
      CHECK(far[n] == Approx(without[n]).epsilon(1e-6));
      CHECK(near[n] == Approx(0.2).epsilon(0.03));
    }
  }
}

TEST_CASE("modified: normalised queries and keys do not know how long they were") {
  const Tensor x = random(Shape{1, 6, 8}, 3);
  for (const QkNorm norm : {QkNorm::rms, QkNorm::l2}) {
    const auto attention = made({.d_model = 8, .heads = 2, .modifiers = {.qk_norm = norm}});
    const auto before = map_of(*attention, x, Mask::none());
    multi_head(*attention).query.weight = multi_head(*attention).query.weight.detach() * 100;
    multi_head(*attention).key.weight = multi_head(*attention).key.weight.detach() * 3;
    const auto after = map_of(*attention, x, Mask::none());
    for (size_t n = 0; n < before.size(); ++n) CHECK(after[n] == Approx(before[n]).epsilon(1e-4));
    for (const double weight : before) CHECK(weight * 6 < std::exp(2 * std::sqrt(4.0)) * (1 + 1e-9));
  }
}

TEST_CASE("modified: the map that softmax shows is that of its fused products, whatever modifies them") {
  const Variant softmax = variant_named("softmax");
  for (const Modifiers& modifiers :
       {Modifiers{.position = PositionKind::rope}, Modifiers{.position = PositionKind::alibi, .softcap = 0.7},
        Modifiers{.position = PositionKind::t5, .sink = Sink::learned},
        Modifiers{.position = PositionKind::shaw_keys},
        Modifiers{.qk_norm = QkNorm::rms, .softcap = 2, .sink = Sink::zero}}) {
    for (const battery::Mode mode : {battery::Mode::self, battery::Mode::causal}) {
      Variant shown = softmax;
      if (modifiers.sink != Sink::none) shown.traits.map = MapKind::signed_;
      CHECK(battery::map({.variant = shown, .mode = mode, .modifiers = modifiers}).empty());
      CHECK(battery::devices({.variant = shown, .mode = mode, .modifiers = modifiers}).empty());
    }
  }
}

TEST_CASE("modified: what makes no sense is refused with the reason") {
  const auto refused = [](const std::string& spec, const AttentionConfig& config) -> std::string {
    Rng rng(1);
    try {
      make_attention(spec, config, rng);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(refused("softmax", {.d_model = 8, .cross = true, .modifiers = {.position = PositionKind::rope}}),
             containing("positions in two inputs have no distance"));
  CHECK_THAT(refused("linear", {.d_model = 8, .modifiers = {.position = PositionKind::alibi}}),
             containing("no bias by position"));
  CHECK_THAT(refused("linear", {.d_model = 8, .modifiers = {.softcap = 5}}), containing("no softcap"));
  CHECK_THAT(refused("linear", {.d_model = 8, .modifiers = {.sink = Sink::zero}}), containing("no sink"));
  CHECK_THAT(refused("softmax", {.d_model = 6, .heads = 2, .modifiers = {.position = PositionKind::rope}}),
             containing("3 wide"));
  CHECK_THAT(refused("softmax", {.d_model = 8, .heads = 4, .kv_heads = 3}), containing("3 key heads"));
  CHECK(
      refused("linear", {.d_model = 8, .modifiers = {.position = PositionKind::rope, .qk_norm = QkNorm::rms}})
          .empty());
}

TEST_CASE("modified: given heads may share keys too") {
  const auto attention = made({.d_model = 8, .heads = 4});
  const Tensor q = random(Shape{1, 4, 5, 2}, 1), k = random(Shape{1, 2, 6, 2}, 2),
               v = random(Shape{1, 2, 6, 3}, 3);
  const auto few = multi_head(*attention).on_heads({.q = q, .k = k, .v = v}, {}).to_doubles(),
             many = multi_head(*attention)
                        .on_heads({.q = q, .k = repeat_heads(k, 4), .v = repeat_heads(v, 4)}, {})
                        .to_doubles();
  REQUIRE(few.size() == 60);
  for (size_t i = 0; i < few.size(); ++i) CHECK(few[i] == Approx(many[i]).margin(1e-12));
  const Tensor three = random(Shape{1, 3, 6, 2}, 2);
  CHECK_THROWS_WITH(multi_head(*attention).on_heads({.q = q, .k = three, .v = three}, {}),
                    containing("divide"));
}

}  // namespace heed
