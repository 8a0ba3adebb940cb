// Retention, gated linear attention, the delta rule, state-space duality, differential and latent attention
// against their formulas and known properties.
#include "heed/tests/attention/reference/decay.h"
#include "heed/core/settings_in_errors.h"

#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/tests/attention/reference/against.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using reference::Example;
using reference::head_of;
using reference::Matrix;
using reference::Values;

Tensor random(const Shape& shape, uint64_t seed, double low = 0, double high = 0) {
  Rng rng(seed);
  const Tensor x(shape, DType::f64);
  fill_normal(x, 0, 1, rng);
  if (low == high) return x;
  std::vector<double> values = x.to_doubles();
  for (double& value : values) value = low + (high - low) / (1 + std::exp(-value));
  return Tensor::of<double>(values, shape);
}

std::unique_ptr<Attention> made(const std::string& spec, const AttentionConfig& config) {
  Rng rng(5);
  auto attention = make_attention(spec, config, rng);
  convert(*attention, DType::f64);
  return attention;
}

MultiHeadAttention& multi_head(Attention& attention) { return dynamic_cast<MultiHeadAttention&>(attention); }

/// scale times the causal sums y_i = q_i . sum over j <= i of k_j v_j^T, one after another.
std::vector<double> causal_sums(const Tensor& q, const Tensor& k, const Tensor& v, double scale) {
  const std::vector<double> queries = q.to_doubles(), keys = k.to_doubles(), values = v.to_doubles();
  const auto length = static_cast<size_t>(q.extent(2)), width = static_cast<size_t>(q.extent(3)),
             out_width = static_cast<size_t>(v.extent(3));
  std::vector<double> y(values.size());
  for (size_t i = 0; i < y.size() / out_width; ++i) {
    for (size_t j = i / length * length; j <= i; ++j) {
      double dot = 0;
      for (size_t c = 0; c < width; ++c) dot += queries[i * width + c] * keys[j * width + c];
      for (size_t c = 0; c < out_width; ++c) y[i * out_width + c] += scale * dot * values[j * out_width + c];
    }
  }
  return y;
}

const Matrix nothing(0, 0);

/// Those that look back, and one that is longer than two chunks of the scan.
std::vector<Example> examples() {
  std::vector<Example> out;
  for (const Example& e : reference::usual_examples(true, false)) {
    if (e.causal) out.push_back(e);
  }
  out.push_back({.B = 1, .H = 2, .N = 37, .M = 37, .d = 3, .dv = 2, .causal = true});
  return out;
}

Matrix q_of(const Example& e, const Values& values, int64_t head) {
  return scaled(head_of(values.at("q"), head, e.N, e.d), 1 / std::sqrt(static_cast<double>(e.d)));
}
Matrix k_of(const Example& e, const Values& values, int64_t head) {
  return head_of(values.at("k"), head, e.M, e.d);
}

}  // namespace

TEST_CASE("reference: retention", "[retention]") {
  for (const Example& e : examples()) {
    for (const bool rotate : {true, false}) {
      for (const bool norm : {true, false}) {
        const std::string spec =
            text("retention:rotate=", rotate ? "true" : "false", ",norm=", norm ? "true" : "false");
        reference::against(
            spec, e,
            [=](const Example& x, const Values& values, int64_t b, int64_t h) {
              const int64_t head = b * x.H + h;
              const Matrix map = reference::retention(head_of(values.at("q"), head, x.N, x.d),
                                                      k_of(x, values, head), h, rotate, x.keys_of(b));
              return norm ? divided_by_size(map, head_of(values.at("v"), head, x.M, x.dv), 1e-6) : map;
            },
            {}, {}, 1e-8);
      }
    }
  }
}

TEST_CASE("reference: gla, with its gates and their gradients", "[gla]") {
  for (const Example& e : examples()) {
    for (const bool each : {true, false}) {
      const Shape shape = each ? Shape{e.B, e.H, e.N, e.d} : Shape{e.B, e.H, e.N};
      reference::against("gla", e,
                         [each](const Example& x, const Values& values, int64_t b, int64_t h) {
                           const int64_t head = b * x.H + h;
                           return faded(q_of(x, values, head), k_of(x, values, head),
                                        head_of(values.at("log_decay"), head, x.N, each ? x.d : 1), nothing,
                                        x.keys_of(b));
                         },
                         {"log_decay"}, {}, 1e-9, {{"log_decay", leaf(random(shape, 3, -2, 0))}});
    }
  }
}

TEST_CASE("reference: delta, with its gates and their gradients", "[delta]") {
  for (const Example& e : examples()) {
    for (const bool gated : {false, true}) {
      std::map<std::string, Tensor> put{{"beta", leaf(random(Shape{e.B, e.H, e.N}, 4, 0, 1))}};
      std::vector<std::string> trained{"beta"};
      if (gated) {
        put["log_decay"] = leaf(random(Shape{e.B, e.H, e.N}, 5, -1, 0));
        trained.emplace_back("log_decay");
      }
      reference::against(
          "delta", e,
          [gated](const Example& x, const Values& values, int64_t b, int64_t h) {
            const int64_t head = b * x.H + h;
            return faded(q_of(x, values, head), reference::unit_rows(k_of(x, values, head)),
                         gated ? head_of(values.at("log_decay"), head, x.N, 1) : nothing,
                         head_of(values.at("beta"), head, x.N, 1), x.keys_of(b));
          },
          trained, {}, 1e-9, put);
    }
  }
}

TEST_CASE("reference: ssd is L o C B^T", "[ssd]") {
  for (const Example& e : examples()) {
    reference::against("ssd", e,
                       [](const Example& x, const Values& values, int64_t b, int64_t h) {
                         const int64_t head = b * x.H + h;
                         const Matrix c = head_of(values.at("q"), head, x.N, x.d), k = k_of(x, values, head);
                         const Matrix logs = head_of(values.at("log_decay"), head, x.N, 1),
                                      steps = head_of(values.at("steps"), head, x.N, 1);
                         Matrix map(x.N, x.N);
                         for (int64_t i = 0; i < x.N; ++i) {
                           double passed = 0;
                           for (int64_t j = i; j >= 0; --j) {
                             if (j < x.keys_of(b))
                               map.at(i, j) = std::exp(passed) * reference::dot(c, i, k, j) * steps.at(j, 0);
                             passed += logs.at(j, 0);
                           }
                         }
                         return map;
                       },
                       {"log_decay", "steps"}, {}, 1e-9,
                       {{"log_decay", leaf(random(Shape{e.B, e.H, e.N}, 6, -1, 0))},
                        {"steps", leaf(random(Shape{e.B, e.H, e.N}, 7, 0, 2))}});
  }
}

TEST_CASE("reference: differential", "[differential]") {
  for (const bool norm : {true, false}) {
    for (const Example& e : reference::usual_examples(true, true)) {
      reference::against(
          text("differential:norm=", norm ? "true" : "false"), e,
          [norm](const Example& x, const Values& values, int64_t b, int64_t h) {
            const int64_t head = b * x.H + h, half = (x.d + 1) / 2;
            const Matrix q = head_of(values.at("q"), head, x.N, x.d), k = k_of(x, values, head);
            const auto allowed = [&](int64_t i, int64_t j) {
              return j < x.keys_of(b) && (!x.causal || j <= i + x.M - x.N);
            };
            const auto map = [&](int64_t first) {
              return normalised(reference::softmax(1 / std::sqrt(static_cast<double>(half)))(
                  columns(q, first, half), columns(k, first, half), allowed));
            };
            const auto dot = [&](const char* a, const char* c) {
              double sum = 0;
              for (size_t i = 0; i < values.at(a).size(); ++i) sum += values.at(a)[i] * values.at(c)[i];
              return sum;
            };
            const double lambda = std::exp(dot("lq1", "lk1")) - std::exp(dot("lq2", "lk2")) + 0.2;
            const Matrix one = map(0), two = map(x.d - half);
            Matrix both(x.N, x.M);
            for (size_t i = 0; i < both.values.size(); ++i)
              both.values[i] = one.values[i] - lambda * two.values[i];
            return norm ? divided_by_size(both, head_of(values.at("v"), head, x.M, x.dv), 1e-5, 0.8) : both;
          },
          {"lq1", "lk1", "lq2", "lk2"});
    }
  }
}

TEST_CASE("reference: differential of equal halves is softmax times one minus lambda", "[differential]") {
  const auto attention = made("differential:norm=false,lambda=0.3", {.d_model = 4, .cross = true});
  for (const char* name : {"lq1", "lk1", "lq2", "lk2"}) {
    for (const Named& one : tensors(*attention)) {
      if (one.name == name) *one.tensor = Tensor::zeros(Shape{2}, DType::f64);
    }
  }
  const Tensor q = random(Shape{1, 1, 5, 2}, 1), k = random(Shape{1, 1, 7, 2}, 2),
               v = random(Shape{1, 1, 7, 3}, 3);
  const auto twice = [](const Tensor& x) { return concat(std::vector<Tensor>{x, x}, 3); };
  const auto found = multi_head(*attention).on_heads({twice(q), twice(k), v}, {}).to_doubles();
  const auto plain = made("softmax", {.d_model = 2, .cross = true});
  const auto soft = multi_head(*plain).on_heads({q, k, v}, {}).to_doubles();
  for (size_t i = 0; i < soft.size(); ++i) CHECK(found[i] == Approx(0.7 * soft[i]).margin(1e-12));
}

TEST_CASE("reference: the layer of a differential head decides where lambda starts", "[differential]") {
  const Tensor x = random(Shape{1, 1, 6, 4}, 1);
  for (const int64_t layer : {0, 3}) {
    const auto by_layer = made("differential", {.d_model = 4, .cross = true, .layer = layer});
    const double start = 0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(layer));
    const auto given =
        made(text("differential:lambda=", detail::number(start)), {.d_model = 4, .cross = true});
    const auto a = multi_head(*by_layer).on_heads({x, x, x}, {}).to_doubles(),
               b = multi_head(*given).on_heads({x, x, x}, {}).to_doubles();
    for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-5));
  }
}

TEST_CASE("reference: gates that stay open make plain causal sums of all of them", "[gla][ssd][retention]") {
  const Tensor q = random(Shape{1, 2, 40, 4}, 1), k = random(Shape{1, 2, 40, 4}, 2),
               v = random(Shape{1, 2, 40, 3}, 3);
  const auto plain = causal_sums(q, k, v, 0.5);
  for (const std::string spec : {"gla", "ssd", "retention:rotate=false,norm=false"}) {
    CAPTURE(spec);
    const auto attention = made(spec, {.d_model = 8, .heads = 2, .causal = true});
    reference::put_in(*attention, "log_decay", Tensor::zeros(Shape{1, 2, 40}, DType::f64));
    const auto y = multi_head(*attention).on_heads({q, k, v}, {.mask = Mask::causal()}).to_doubles();
    for (size_t i = 0; i < y.size(); ++i)
      CHECK(y[i] * (spec == "ssd" ? 0.5 : 1) == Approx(plain[i]).margin(1e-10));
  }
}

TEST_CASE("reference: given heads need the gates that an input would make", "[gla][delta][ssd]") {
  const SettingsSourceScope program(SettingsSource::command_line);
  const Tensor x = random(Shape{1, 1, 3, 2}, 1);
  for (const std::string spec : {"gla", "delta", "ssd"}) {
    const auto attention = made(spec, {.d_model = 2, .causal = true});
    CHECK_THROWS_WITH(multi_head(*attention).on_heads({x, x, x}, {.mask = Mask::causal()}),
                      containing(spec == "delta" ? "--param beta=" : "--param log_decay="));
    CHECK_THROWS_WITH(multi_head(*attention).on_heads({x, x, x}, {}), containing("looks back only"));
    reference::put_in(*attention, spec == "delta" ? "beta" : "log_decay",
                      Tensor::zeros(Shape{1, 2, 3}, DType::f64));
    CHECK_THROWS_WITH(multi_head(*attention).on_heads({x, x, x}, {.mask = Mask::causal()}),
                      containing("[1, 1, 3]"));
  }
}

TEST_CASE("reference: options of those that fade leave steps and calls the same",
          "[delta][gla][ssd][retention]") {
  for (const std::string spec :
       {"delta:gated=true,norm=true,gate=true,unit_queries=true", "gla:norm=true,gate=true,rank=2",
        "ssd:norm=true,gate=true", "retention:gate=true,scale=0.3", "mla:rank=3,turned=4"}) {
    CAPTURE(spec);
    const auto attention = made(spec, {.d_model = 8, .heads = 2, .causal = true});
    const Tensor x = random(Shape{2, 21, 8}, 1);
    const NoGrad quiet;
    const auto whole = attention->forward({.queries = x, .keys = x, .mask = Mask::causal()}).to_doubles();
    const auto cache = attention->new_cache();
    std::vector<Tensor> rows;
    for (int64_t t = 0; t < 21; ++t) {
      const Tensor row = view::slice(x, 1, t, t + 1);
      rows.push_back(
          attention->forward({.queries = row, .keys = row, .mask = Mask::causal(), .cache = cache.get()}));
    }
    const auto stepped = concat(rows, 1).to_doubles();
    for (size_t i = 0; i < whole.size(); ++i) CHECK(stepped[i] == Approx(whole[i]).margin(1e-10));
  }
}

namespace {

Matrix matrix(const Tensor& x) {
  const int64_t width = x.extent(-1);
  return {x.size() / width, width, x.to_doubles()};
}

Tensor find(Module& module, const std::string& name) {
  for (const Named& named : tensors(module)) {
    if (named.name == name) return named.tensor->detach();
  }
  fail("no tensor ", name);
}

/// Halves of columns first to first + r turned by their row.
void turn_halves(Matrix& x, int64_t first, int64_t r) {
  for (int64_t t = 0; t < x.rows; ++t) {
    for (int64_t p = 0; p < r / 2; ++p) {
      const double angle =
          static_cast<double>(t) * std::pow(10000.0, -2 * static_cast<double>(p) / static_cast<double>(r));
      double &a = x.at(t, first + p), &b = x.at(t, first + p + r / 2);
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = turned;
    }
  }
}

}  // namespace

TEST_CASE("reference: mla, from the input on", "[mla]") {
  const int64_t d = 4, H = 2, r = 4, rank = 3, N = 17;
  for (const bool causal : {true, false}) {
    const auto attention = made("mla:rank=3,turned=4", {.d_model = d * H, .heads = H, .causal = causal});
    reference::put_in(*attention, "gain", leaf(random(Shape{rank}, 8)));
    const Tensor x = random(Shape{1, N, d * H}, 1);
    const auto y =
        attention->forward({.queries = x, .keys = x, .mask = causal ? Mask::causal() : Mask::none()})
            .to_doubles();
    const auto weights = [&](const char* name) { return matrix(find(*attention, name)); };
    const Matrix input = matrix(x), gain(1, rank, find(*attention, "gain").to_doubles());
    Matrix latent = project(input, weights("down.weight")),
           shared = project(input, weights("turned_key.weight")),
           queries = project(input, weights("query.weight"));
    for (int64_t t = 0; t < N; ++t) {
      const double size = std::sqrt(reference::dot(latent, t, latent, t) / static_cast<double>(rank) + 1e-6);
      for (int64_t c = 0; c < rank; ++c) latent.at(t, c) *= gain.at(0, c) / size;
    }
    turn_halves(shared, 0, r);
    const Matrix keys = project(latent, weights("up_key.weight")),
                 values = project(latent, weights("up_value.weight"));
    Matrix heads(N, d * H);
    for (int64_t h = 0; h < H; ++h) {
      Matrix q = columns(queries, h * (d + r), d + r), k(N, d + r);
      turn_halves(q, d, r);
      for (int64_t t = 0; t < N; ++t) {
        for (int64_t c = 0; c < d + r; ++c) k.at(t, c) = c < d ? keys.at(t, h * d + c) : shared.at(t, c - d);
      }
      const auto allowed = [&](int64_t i, int64_t j) { return !causal || j <= i; };
      const Matrix out =
          apply(normalised(reference::softmax(1 / std::sqrt(static_cast<double>(d + r)))(q, k, allowed)),
                columns(values, h * d, d));
      for (int64_t t = 0; t < N; ++t) {
        for (int64_t c = 0; c < d; ++c) heads.at(t, h * d + c) = out.at(t, c);
      }
    }
    const Matrix wanted = project(heads, weights("output.weight"));
    for (size_t i = 0; i < y.size(); ++i) CHECK(y[i] == Approx(wanted.values[i]).margin(1e-10));
  }
}

TEST_CASE("reference: mla remembers the latent vector and one turned key", "[mla]") {
  const NoGrad quiet;
  const auto attention = made("mla:rank=3,turned=2", {.d_model = 64, .heads = 8, .causal = true});
  const auto cache = attention->new_cache();
  const Tensor row = random(Shape{2, 1, 64}, 1);
  attention->forward({.queries = row, .keys = row, .mask = Mask::causal(), .cache = cache.get()});
  const auto& kept = dynamic_cast<KeyValueCache&>(*cache);
  CHECK((kept.keys.extent(1) == 1 && kept.keys.extent(3) == 2));
  CHECK((kept.values.extent(1) == 1 && kept.values.extent(3) == 3));
}

}  // namespace heed
