// h_transformer and hat against their formulas in plain loops, and their limits.
#include "heed/tests/attention/reference/hierarchical.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using reference::Attended;
using reference::Matrix;

struct Try {
  int64_t batch, heads, length, d, dv;
  bool causal, padded;
};

/// An attention without its projections, in f64, on leaves.
struct Alone {
  Alone(const std::string& spec, const Try& t) {
    Rng rng(1);
    made = make_attention(
        spec, {.d_model = t.heads * t.d, .heads = t.heads, .causal = t.causal, .max_length = t.length}, rng);
    convert(*made, DType::f64);
    const auto filled = [&](int64_t width) {
      const Tensor x(Shape{t.batch, t.heads, t.length, width}, DType::f64);
      fill_normal(x, 0, 1, rng);
      return x;
    };
    q = leaf(filled(t.d));
    k = leaf(filled(t.d));
    v = leaf(filled(t.dv));
    slope = filled(t.dv);
    if (t.causal) mask = Mask::causal();
    for (int64_t b = 0; b < t.batch; ++b)
      lengths.push_back(static_cast<int32_t>(t.padded ? t.length / (b + 1) : t.length));
    if (t.padded) mask = mask & Mask::lengths(Tensor::of<int32_t>(lengths, Shape{t.batch}));
    // Nobody asks what a padded query gets.
    double* at = slope.data<double>();
    for (int64_t n = 0; n < slope.size(); ++n) {
      const int64_t row = n / t.dv;
      if (row % t.length >= lengths[static_cast<size_t>(row / t.length / t.heads)]) at[n] = 0;
    }
  }
  Tensor operator()(const ForwardContext& context = {}) {
    return dynamic_cast<MultiHeadAttention&>(*made).on_heads({q, k, v}, {.mask = mask, .context = context});
  }
  Tensor field(const std::string& name) const {
    for (const Named& named : tensors(*made)) {
      if (named.name == name) return *named.tensor;
    }
    fail("no tensor ", name);
  }

  std::unique_ptr<Attention> made;
  Tensor q, k, v, slope;
  Mask mask;
  std::vector<int32_t> lengths;
};

/// One matrix of [..., rows, columns].
Matrix part(const Tensor& x, int64_t index) {
  const int64_t rows = x.extent(-2), columns = x.extent(-1);
  const std::vector<double> all = x.to_doubles();
  return {
      rows, columns,
      std::vector<double>(all.begin() + index * rows * columns, all.begin() + (index + 1) * rows * columns)};
}

/// The largest difference in the first `rows` rows.
double apart(const Matrix& expected, const Matrix& found, int64_t rows) {
  double worst = 0;
  for (int64_t n = 0; n < rows * expected.columns; ++n) {
    const double one = expected.values[static_cast<size_t>(n)], other = found.values[static_cast<size_t>(n)];
    const double error = std::abs(one - other) / std::max(1.0, std::abs(one));
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

const std::vector<Try> tries{
    {1, 1, 1, 1, 1, false, false},  {1, 1, 1, 1, 1, true, false},  {2, 2, 2, 1, 3, true, false},
    {1, 2, 17, 3, 3, false, false}, {1, 2, 17, 3, 5, true, false}, {3, 2, 17, 2, 4, false, true},
    {3, 1, 17, 2, 4, true, true},   {2, 1, 64, 2, 2, false, true}, {1, 1, 57, 2, 2, true, false}};

}  // namespace

TEST_CASE("reference: h_transformer", "[h_transformer]") {
  for (const int64_t block : {2, 4, 16}) {
    for (const Try& t : tries) {
      CAPTURE(block, t.batch, t.heads, t.length, t.d, t.dv, t.causal, t.padded);
      Alone one(text("h_transformer:block=", block), t);
      MapRecorder recorder;
      const Tensor y = one({.recorder = &recorder});
      REQUIRE(recorder.maps.size() == 1);
      backward(y, one.slope);
      for (int64_t at = 0; at < t.batch * t.heads; ++at) {
        const int64_t length = one.lengths[static_cast<size_t>(at / t.heads)];
        const auto own = [at](const Tensor& x) { return part(x.detach(), at); };
        const Attended expected = reference::Clusters(block, length, t.causal)(
            own(one.q), own(one.k), own(one.v), own(one.slope), 1 / std::sqrt(static_cast<double>(t.d)));
        CHECK(apart(expected.out, own(y), length) < 1e-11);
        CHECK(apart(expected.map, own(recorder.maps[0].weights), length) < 1e-11);
        CHECK(apart(expected.dq, own(grad_of(one.q)), t.length) < 1e-10);
        CHECK(apart(expected.dk, own(grad_of(one.k)), t.length) < 1e-10);
        CHECK(apart(expected.dv, own(grad_of(one.v)), t.length) < 1e-10);
      }
    }
  }
}

TEST_CASE("reference: h_transformer with a bias of each level and distance", "[h_transformer]") {
  for (const int64_t block : {2, 4}) {
    for (const Try& t : tries) {
      CAPTURE(block, t.batch, t.heads, t.length, t.d, t.dv, t.causal, t.padded);
      Alone one(text("h_transformer:bias=true,block=", block), t);
      const Tensor bias = one.field("bias");
      Rng rng(7);
      fill_normal(bias.detach(), 0, 1, rng);
      MapRecorder recorder;
      const Tensor y = one({.recorder = &recorder});
      backward(y, one.slope);
      const std::vector<double> slopes = grad_of(bias).to_doubles(), values = bias.to_doubles();
      const int64_t levels = bias.extent(0), columns = 4 * block - 1;
      REQUIRE(bias.shape() == Shape{levels, t.heads, columns});
      const auto of_head = [&](const std::vector<double>& all, int64_t h) {
        Matrix out(levels, columns);
        for (int64_t n = 0; n < levels * columns; ++n)
          out.values[static_cast<size_t>(n)] =
              all[static_cast<size_t>((n / columns * t.heads + h) * columns + n % columns)];
        return out;
      };
      for (int64_t h = 0; h < t.heads; ++h) {
        Matrix dbias(levels, columns);
        for (int64_t b = 0; b < t.batch; ++b) {
          const int64_t at = b * t.heads + h, length = one.lengths[static_cast<size_t>(b)];
          const auto own = [at](const Tensor& x) { return part(x.detach(), at); };
          const Attended expected = reference::Clusters(block, length, t.causal)(
              own(one.q), own(one.k), own(one.v), own(one.slope), 1 / std::sqrt(static_cast<double>(t.d)),
              of_head(values, h));
          CHECK(apart(expected.out, own(y), length) < 1e-11);
          CHECK(apart(expected.map, own(recorder.maps.at(0).weights), length) < 1e-11);
          CHECK(apart(expected.dq, own(grad_of(one.q)), t.length) < 1e-10);
          CHECK(apart(expected.dk, own(grad_of(one.k)), t.length) < 1e-10);
          CHECK(apart(expected.dv, own(grad_of(one.v)), t.length) < 1e-10);
          for (size_t n = 0; n < dbias.values.size(); ++n) dbias.values[n] += expected.dbias.values[n];
        }
        CHECK(apart(dbias, of_head(slopes, h), levels) < 1e-10);
      }
    }
  }
  Rng rng(1);
  CHECK_THROWS_WITH(make_attention("h_transformer:bias=true", {.d_model = 4}, rng),
                    containing("Set max_length"));
  Alone one("h_transformer:bias=true,block=2", {1, 1, 4, 2, 2, false, false});
  one.q = one.k = one.v = Tensor::zeros(Shape{1, 1, 9, 2}, DType::f64);
  CHECK_THROWS_WITH(one(), containing("9 keys") && containing("Raise max_length"));
}

TEST_CASE("h_transformer: two blocks are softmax", "[h_transformer]") {
  for (const int64_t length : {1, 9, 16, 17, 32}) {
    for (const bool causal : {false, true}) {
      for (const bool padded : {false, true}) {
        CAPTURE(length, causal, padded);
        const Try t{2, 2, length, 3, 4, causal, padded};
        Alone clusters("h_transformer:block=16", t), exact("softmax", t);
        const Tensor y = clusters(), z = exact();
        for (int64_t at = 0; at < 4; ++at)
          CHECK(apart(part(z, at), part(y, at), clusters.lengths[static_cast<size_t>(at / 2)]) < 1e-12);
      }
    }
  }
  // A third block is not.
  const Try t{1, 1, 33, 3, 4, false, false};
  Alone clusters("h_transformer:block=16", t), exact("softmax", t);
  CHECK(apart(part(exact(), 0), part(clusters(), 0), 33) > 1e-3);
}

TEST_CASE("h_transformer: each pair meets once, and constant values come back", "[h_transformer]") {
  for (const int64_t block : {2, 6, 8}) {
    for (const int64_t length : {5, 31, 32, 33, 100, 129}) {
      for (const bool causal : {false, true}) {
        CAPTURE(block, length, causal);
        const Try t{1, 1, length, 2, 2, causal, false};
        Alone one(text("h_transformer:block=", block), t);
        one.v = Tensor::full(one.v.shape(), 3, DType::f64);
        for (const double value : one().to_doubles()) CHECK(value == Approx(3).epsilon(1e-12));
        one.q =
            Tensor::zeros(one.q.shape(), DType::f64);  // all scores alike: what meets once has a share of one
        MapRecorder recorder;
        one({.recorder = &recorder});
        const Matrix map = part(recorder.maps.at(0).weights, 0);
        double worst = 0;
        for (int64_t i = 0; i < length; ++i) {
          const int64_t open = causal ? i + 1 : length;
          for (int64_t j = 0; j < length; ++j)
            worst = std::max(worst, std::abs(map.at(i, j) * static_cast<double>(open) - (j < open ? 1 : 0)));
        }
        CHECK(worst < 1e-12);
      }
    }
  }
}

TEST_CASE("h_transformer: scores far below those of other keys are not lost", "[h_transformer]") {
  // One offset for all rows would leave nothing of the first row's weights.
  const Try t{1, 1, 64, 1, 1, false, false};
  Alone one("h_transformer:block=4", t);
  double* q = one.q.data<double>();
  for (int64_t i = 0; i < 64; ++i) q[i] = i < 8 ? -2000 : 2000;
  for (int64_t j = 0; j < 64; ++j) one.k.data<double>()[j] = 1;
  one.v = Tensor::full(one.v.shape(), 2, DType::f64);
  for (const double value : one().to_doubles()) CHECK(value == Approx(2).epsilon(1e-9));
}

TEST_CASE("h_transformer: padding does not outweigh scores far below zero", "[h_transformer]") {
  const Try t{2, 1, 64, 1, 1, false, true};
  Alone one("h_transformer:block=4", t);
  one.q = Tensor::full(one.q.shape(), -2000, DType::f64);
  one.k = Tensor::full(one.k.shape(), 1, DType::f64);
  one.v = Tensor::full(one.v.shape(), 2, DType::f64);
  const std::vector<double> y = one().to_doubles();
  for (size_t i = 0; i < 64 + 32; ++i) CHECK(y[i] == Approx(2).epsilon(1e-9));
}

TEST_CASE("h_transformer: what it cannot do is refused", "[h_transformer]") {
  const Try t{1, 1, 4, 2, 2, false, false};
  CHECK_THROWS_WITH(Alone("h_transformer:block=3", t), containing("It must be even"));
  CHECK_THROWS_WITH(Alone("h_transformer:block=0", t), containing("from 2 to"));
  Alone one("h_transformer", t);
  one.q = view::slice(one.q.detach(), 2, 0, 3);
  CHECK_THROWS_WITH(one(), containing("3 queries for 4 keys"));
}

TEST_CASE("reference: hat", "[hat]") {
  for (const bool cross : {true, false}) {
    for (const Try& t : tries) {
      if (t.causal || (cross && t.dv != t.d)) continue;
      for (const int64_t segment : {1, 5, 64}) {
        CAPTURE(cross, segment, t.batch, t.heads, t.length, t.d, t.dv, t.padded);
        Alone one(text("hat:segment=", segment, ",cross=", cross ? "true" : "false"), t);
        MapRecorder recorder;
        const Tensor y = one({.recorder = &recorder});
        REQUIRE(recorder.maps.size() == (cross ? 2 : 1));
        backward(y, one.slope);
        const double scale = 1 / std::sqrt(static_cast<double>(t.d));
        const int64_t width = t.heads * t.d, segments = (t.length + segment - 1) / segment;
        const auto segmentwise = [&](int64_t at, const Matrix& slope) {
          const int64_t length = one.lengths[static_cast<size_t>(at / t.heads)];
          return attend_softmax(
              part(one.q.detach(), at), part(one.k.detach(), at), part(one.v.detach(), at), slope,
              [&](int64_t i, int64_t j) { return i / segment == j / segment && j < length; }, scale);
        };
        Matrix dquery(width, width), dvalue(width, width), dpositions(segments, width);
        for (int64_t b = 0; b < t.batch; ++b) {
          const int64_t length = one.lengths[static_cast<size_t>(b)];
          std::vector<Matrix> out, slopes;
          for (int64_t h = 0; h < t.heads; ++h) {
            slopes.push_back(part(one.slope, b * t.heads + h));
            out.push_back(segmentwise(b * t.heads + h, slopes.back()).out);
          }
          if (cross) {
            const Matrix positions = part(one.field("cross.positions").detach(), 0);
            const Matrix wq = part(one.field("cross.query").detach(), 0),
                         wk = part(one.field("cross.key").detach(), 0),
                         wv = part(one.field("cross.value").detach(), 0);
            Matrix x(segments, width), dx(segments, width);
            for (int64_t s = 0; s < segments; ++s) {
              for (int64_t c = 0; c < width; ++c)
                x.at(s, c) = out[static_cast<size_t>(c / t.d)].at(s * segment, c % t.d) + positions.at(s, c);
            }
            const Matrix q = project(x, wq), k = project(x, wk), v = project(x, wv);
            for (int64_t h = 0; h < t.heads; ++h) {
              Matrix slope(segments, t.d);
              for (int64_t s = 0; s < segments; ++s) {
                for (int64_t c = 0; c < t.d; ++c)
                  slope.at(s, c) = slopes[static_cast<size_t>(h)].at(s * segment, c);
              }
              const Attended met = attend_softmax(
                  columns(q, h * t.d, t.d), columns(k, h * t.d, t.d), columns(v, h * t.d, t.d), slope,
                  [&](int64_t, int64_t g) { return g * segment < length; }, scale);
              const Matrix map = part(recorder.maps[1].weights, b * t.heads + h);
              double worst = 0;
              for (int64_t i = 0; i < t.length; ++i) {
                for (int64_t j = 0; j < t.length; ++j) {
                  const bool both = i % segment == 0 && j % segment == 0;
                  worst = std::max(
                      worst, std::abs(map.at(i, j) - (both ? met.map.at(i / segment, j / segment) : 0)));
                }
              }
              CHECK(worst < 1e-11);
              for (int64_t s = 0; s < segments; ++s) {
                for (int64_t c = 0; c < t.d; ++c) {
                  out[static_cast<size_t>(h)].at(s * segment, c) += met.out.at(s, c);
                  for (int64_t w = 0; w < width; ++w) {
                    const int64_t row = h * t.d + c;
                    dx.at(s, w) += met.dq.at(s, c) * wq.at(row, w) + met.dk.at(s, c) * wk.at(row, w) +
                                   met.dv.at(s, c) * wv.at(row, w);
                    dquery.at(row, w) += met.dq.at(s, c) * x.at(s, w);
                    dvalue.at(row, w) += met.dv.at(s, c) * x.at(s, w);
                  }
                }
              }
            }
            for (int64_t s = 0; s < segments; ++s) {
              for (int64_t c = 0; c < width; ++c) {
                slopes[static_cast<size_t>(c / t.d)].at(s * segment, c % t.d) += dx.at(s, c);
                dpositions.at(s, c) += dx.at(s, c);
              }
            }
          }
          for (int64_t h = 0; h < t.heads; ++h) {
            const int64_t at = b * t.heads + h;
            const Attended expected = segmentwise(at, slopes[static_cast<size_t>(h)]);
            CHECK(apart(out[static_cast<size_t>(h)], part(y, at), length) < 1e-11);
            CHECK(apart(expected.map, part(recorder.maps[0].weights, at), length) < 1e-11);
            CHECK(apart(expected.dq, part(grad_of(one.q), at), t.length) < 1e-10);
            CHECK(apart(expected.dk, part(grad_of(one.k), at), t.length) < 1e-10);
            CHECK(apart(expected.dv, part(grad_of(one.v), at), t.length) < 1e-10);
          }
        }
        if (!cross) continue;
        CHECK(apart(dquery, part(grad_of(one.field("cross.query")), 0), width) < 1e-10);
        CHECK(apart(dvalue, part(grad_of(one.field("cross.value")), 0), width) < 1e-10);
        CHECK(apart(dpositions, part(grad_of(one.field("cross.positions")), 0), segments) < 1e-10);
      }
    }
  }
}

TEST_CASE("hat: one segment is softmax", "[hat]") {
  const Try t{2, 2, 17, 3, 3, false, true};
  Alone segments("hat:segment=17,cross=false", t), exact("softmax", t);
  const Tensor y = segments(), z = exact();
  for (int64_t at = 0; at < 4; ++at)
    CHECK(apart(part(z, at), part(y, at), segments.lengths[static_cast<size_t>(at / 2)]) < 1e-13);
  // Across one segment only its first token has more to add.
  Alone across("hat:segment=17", t);
  across.q = segments.q;
  across.k = segments.k;
  across.v = segments.v;
  const Tensor w = across();
  for (int64_t at = 0; at < 2; ++at) {
    const Matrix one = part(view::slice(z, 2, 1, 17), at), other = part(view::slice(w, 2, 1, 17), at);
    CHECK(apart(one, other, 16) < 1e-13);
  }
}

TEST_CASE("hat: first tokens meet in every third layer and in the last", "[hat]") {
  const auto meets = [](const std::string& spec, int64_t layer, int64_t layers) {
    Rng rng(1);
    const auto made =
        make_attention(spec, {.d_model = 4, .max_length = 8, .layer = layer, .layers = layers}, rng);
    const std::vector<Named> all = tensors(*made);
    const bool listed =
        std::any_of(all.begin(), all.end(), [](const Named& one) { return one.name == "cross.positions"; });
    const Tensor x(Shape{1, 8, 4});
    fill_normal(x, 0, 1, rng);
    MapRecorder recorder;
    const NoGrad quiet;
    made->forward({.queries = x, .keys = x, .context = {.recorder = &recorder}});
    CHECK(recorder.maps.size() == (listed ? 2 : 1));
    return listed;
  };
  const std::vector<bool> published{false, false, true, false, false, true};
  for (int64_t layer = 0; layer < 6; ++layer) {
    CHECK(meets("hat:segment=4", layer, 6) == published[static_cast<size_t>(layer)]);
    CHECK(meets("hat:segment=4,every=1", layer, 6));
    CHECK(!meets("hat:segment=4,cross=false", layer, 6));
  }
  CHECK(meets("hat:segment=4", 1, 2));
  CHECK(!meets("hat:segment=4", 0, 2));
}

TEST_CASE("hat: what it cannot do is refused", "[hat]") {
  const Try t{1, 1, 9, 2, 2, false, false};
  CHECK_THROWS_WITH(Alone("hat:segment=0", t), containing("segment = 0"));
  CHECK_THROWS_WITH(Alone("hat:every=0", t), containing("every = 0"));
  Alone many("hat:segment=2,segments=4", t);
  CHECK_THROWS_WITH(many(), containing("5 segments of 2") && containing("Set segments=5"));
  Alone wide("hat", {1, 1, 9, 2, 3, false, false});
  CHECK_THROWS_WITH(wide(), containing("Set cross=false"));
}

}  // namespace heed
