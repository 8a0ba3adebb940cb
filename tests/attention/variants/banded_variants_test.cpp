// Tests variants with a band: projections of a softmax map, and maps independent of the input.
#include <algorithm>
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/tests/attention/battery/kit.h"
#include "heed/tests/attention/reference/projections.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using reference::Entry;
using test::distance;

struct Sizes {
  int64_t B, H, N, d, dv;
};
const std::vector<Sizes> sizes{
    {1, 1, 1, 1, 1}, {2, 2, 2, 3, 2}, {2, 2, 17, 4, 3}, {1, 1, 17, 1, 2}, {1, 3, 40, 8, 8}};

struct Made {
  std::unique_ptr<Attention> attention;
  Heads heads;
  Tensor direction;

  Made(const std::string& spec, const Sizes& s, bool causal) {
    Rng rng(1);
    attention =
        make_attention(spec, {.d_model = s.H * s.d, .heads = s.H, .causal = causal, .max_length = s.N}, rng);
    convert(*attention, DType::f64);
    heads = {leaf(test::heads(s.B, s.H, s.N, s.d, DType::f64, 1)),
             leaf(test::heads(s.B, s.H, s.N, s.d, DType::f64, 2)),
             leaf(test::heads(s.B, s.H, s.N, s.dv, DType::f64, 3))};
    direction = test::heads(s.B, s.H, s.N, s.dv, DType::f64, 4);
  }
  MultiHeadAttention& multi_head() const { return dynamic_cast<MultiHeadAttention&>(*attention); }
  Tensor run(const Mask& mask = {}) const {
    const Tensor y = multi_head().on_heads(heads, {.mask = mask});
    backward(sum(y * direction));
    return y;
  }
  Tensor& place(const std::string& name) const {
    for (const Named& named : tensors(*attention)) {
      if (named.name == name) return *named.tensor;
    }
    fail("no tensor ", name);
  }
  std::vector<double> map(const Mask& mask = {}) const {
    MapRecorder recorder;
    const NoGrad quiet;
    multi_head().on_heads(heads, {.mask = mask, .context = {.recorder = &recorder}});
    return recorder.maps.at(0).weights.to_doubles();
  }
};

/// What becomes of the weight a of a pair, and the slope of that.
using EntryOf = std::function<Entry(const Made&, const Sizes&)>;

void compare(const std::string& spec, const EntryOf& entry_of) {
  for (const Sizes& s : sizes) {
    for (const bool causal : {false, true}) {
      for (const bool padded : {false, true}) {
        CAPTURE(spec, s.N, causal, padded);
        const Made made(spec, s, causal);
        std::vector<int32_t> lengths(static_cast<size_t>(s.B), static_cast<int32_t>(s.N));
        if (padded) lengths.back() = static_cast<int32_t>(s.N / 2);
        Mask mask = causal ? Mask::causal() : Mask::none();
        if (padded) mask = mask & Mask::lengths(Tensor::of<int32_t>(lengths, Shape{s.B}));
        const Tensor y = made.run(mask);
        const auto want = reference::projected(
            made.heads.q, made.heads.k, made.heads.v, made.direction, 1 / std::sqrt(static_cast<double>(s.d)),
            [&](int64_t b, int64_t i, int64_t j) {
              return (!causal || j <= i) && j < lengths[static_cast<size_t>(b)];
            },
            entry_of(made, s));
        CHECK(distance(y, want.out) < 1e-12);
        CHECK(distance(grad_of(made.heads.q), want.dq) < 1e-12);
        CHECK(distance(grad_of(made.heads.k), want.dk) < 1e-12);
        CHECK(distance(grad_of(made.heads.v), want.dv) < 1e-12);
      }
    }
  }
}

std::vector<double> sums_of_rows(const std::vector<double>& map, int64_t keys) {
  std::vector<double> out(map.size() / static_cast<size_t>(keys));
  for (size_t at = 0; at < map.size(); ++at) out[at / static_cast<size_t>(keys)] += map[at];
  return out;
}

}  // namespace

TEST_CASE("banded: band_project keeps the band of softmax's map and no more", "[band_project]") {
  const auto band = [](int64_t w) {
    return [w](const Made&, const Sizes&) -> Entry {
      return [w](int64_t, int64_t i, int64_t j, double a) {
        return std::abs(i - j) <= w ? std::pair{a, 1.0} : std::pair{0.0, 0.0};
      };
    };
  };
  compare("band_project:width=3", band(3));
  compare("band_project:width=0", band(0));
  compare("band_project:width=50", band(50));
}

TEST_CASE("banded: renormalised, it is the band softmax", "[band_project][window]") {
  for (const Sizes& s : sizes) {
    for (const bool causal : {false, true}) {
      const Mask mask = causal ? Mask::causal() : Mask::none();
      const Made projected("band_project:width=3,renormalise=true", s, causal),
          window("window:left=3,right=3", s, causal), bare("band_project:width=3", s, causal);
      const Tensor y = projected.run(mask), z = window.run(mask);
      CHECK(distance(y, z.to_doubles()) < 1e-12);
      CHECK(distance(grad_of(projected.heads.q), grad_of(window.heads.q).to_doubles()) < 1e-12);
      CHECK(distance(grad_of(projected.heads.k), grad_of(window.heads.k).to_doubles()) < 1e-12);
      CHECK(distance(grad_of(projected.heads.v), grad_of(window.heads.v).to_doubles()) < 1e-12);
      // The map is the kept part of the other map, divided by its sum.
      const auto divided = projected.map(mask), kept = bare.map(mask);
      const auto sums = sums_of_rows(kept, s.N);
      for (size_t at = 0; at < kept.size(); ++at)
        CHECK(divided[at] == Approx(kept[at] / sums[at / static_cast<size_t>(s.N)]).margin(1e-12));
      for (const double sum : sums) CHECK((sum > 0 && sum <= 1 + 1e-12));
    }
  }
  const Made narrow("band_project:width=2", {1, 1, 17, 4, 4}, false);
  for (const double sum : sums_of_rows(narrow.map(), 17)) CHECK(sum < 1);
}

TEST_CASE("banded: band_sparse_error keeps the band, and cut entries at its places", "[band_sparse_error]") {
  const auto entries = [](const Made& made, const Sizes& s) -> Entry {
    std::vector<bool> support(static_cast<size_t>(s.N * s.N));
    if (s.N > 1) {
      for (const double n : made.place("places").to_doubles()) support[static_cast<size_t>(n)] = true;
    }
    return [support, N = s.N](int64_t, int64_t i, int64_t j, double a) {
      if (std::abs(i - j) <= 2) return std::pair{a, 1.0};
      if (!support[static_cast<size_t>(i * N + j)]) return std::pair{0.0, 0.0};
      return a < 0.03 ? std::pair{a, 1.0} : std::pair{0.03, 0.0};
    };
  };
  compare("band_sparse_error:width=2,eps=0.03,density=0.4", entries);
  const auto wide = [](const Made&, const Sizes&) -> Entry {
    return [](int64_t, int64_t i, int64_t j, double a) {
      return std::pair{a * (std::abs(i - j) <= 1 || i != j), 1.0};
    };
  };
  // With every place and no bound it is softmax.
  compare("band_sparse_error:width=0,eps=1,density=1", wide);
}

TEST_CASE("banded: places of errors are as many as asked for, apart, and off the diagonal",
          "[band_sparse_error][structured]") {
  const auto places = [](const std::string& options, int64_t N, uint64_t seed = 1) {
    Rng rng(seed);
    const auto made = make_attention("band_sparse_error:" + options, {.d_model = 4, .max_length = N}, rng);
    for (const Named& named : tensors(*made)) {
      if (named.name == "places") return named.tensor->to_doubles();
    }
    return std::vector<double>();
  };
  const auto few = places("density=0.1", 30);
  CHECK(few.size() == 90);
  for (size_t n = 0; n < few.size(); ++n) {
    CHECK(static_cast<int64_t>(few[n]) % 31 != 0);
    CHECK((few[n] >= 0 && few[n] < 900));
    if (n > 0) CHECK(few[n] > few[n - 1]);
  }
  CHECK(places("density=0", 30).size() == 30);
  CHECK(places("density=1", 30).size() == 870);
  CHECK(places("density=0.1", 30, 2) != few);
}

/// P of a band [H, N, 2 w + 1] written out as [H, N, N].
std::vector<double> written_out(const std::vector<double>& band, int64_t H, int64_t N, int64_t w) {
  std::vector<double> all(static_cast<size_t>(H * N * N));
  for (int64_t row = 0; row < H * N; ++row) {
    for (int64_t c = 0; c < 2 * w + 1; ++c) {
      const int64_t j = row % N + c - w;
      if (j >= 0 && j < N)
        all[static_cast<size_t>(row * N + j)] = band[static_cast<size_t>(row * (2 * w + 1) + c)];
    }
  }
  return all;
}
/// The band of [H, N, N].
std::vector<double> cut_out(const std::vector<double>& all, int64_t H, int64_t N, int64_t w) {
  std::vector<double> band(static_cast<size_t>(H * N * (2 * w + 1)));
  for (int64_t row = 0; row < H * N; ++row) {
    for (int64_t c = 0; c < 2 * w + 1; ++c) {
      const int64_t j = row % N + c - w;
      if (j >= 0 && j < N)
        band[static_cast<size_t>(row * (2 * w + 1) + c)] = all[static_cast<size_t>(row * N + j)];
    }
  }
  return band;
}

TEST_CASE("banded: structured is its matrix, row by row over the sum of what may be seen", "[structured]") {
  for (const Sizes& s : sizes) {
    for (const bool causal : {false, true}) {
      for (const std::string start : {"band", "diagonal", "uniform"}) {
        CAPTURE(s.N, causal, start);
        const Made made("structured:width=3,eps=0.2,density=0.3,start=" + start, s, causal);
        const int64_t w = start == "band" ? std::min<int64_t>(3, s.N - 1) : 0;
        const bool whole = start == "uniform";
        Rng rng(8);
        fill_normal(made.place("structure").detach(), 0, 1, rng);
        const bool errors = s.N > 1;
        if (errors) fill_normal(made.place("error").detach(), 0, 0.3, rng);
        REQUIRE(made.place("structure").shape() == Shape{s.H, s.N, whole ? s.N : 2 * w + 1});
        const auto given = made.place("structure").to_doubles(),
                   structure = whole ? given : written_out(given, s.H, s.N, w);
        std::vector<double> error(structure.size());
        std::vector<size_t> at;
        std::vector<double> values;
        if (errors) {
          for (const double place : made.place("places").to_doubles())
            at.push_back(static_cast<size_t>(place));
          values = made.place("error").to_doubles();
          for (int64_t h = 0; h < s.H; ++h) {
            for (size_t n = 0; n < at.size(); ++n)
              error[static_cast<size_t>(h * s.N * s.N) + at[n]] =
                  std::clamp(values[static_cast<size_t>(h) * at.size() + n], -0.2, 0.2);
          }
        }
        const auto want = reference::structured(made.heads.v, made.direction, structure, error,
                                                [&](int64_t i, int64_t j) { return !causal || j <= i; });
        const Tensor y = made.run(causal ? Mask::causal() : Mask::none());
        CHECK(distance(y, want.out) < 1e-12);
        CHECK(distance(grad_of(made.heads.v), want.dv) < 1e-12);
        CHECK(distance(grad_of(made.place("structure")),
                       whole ? want.dstructure : cut_out(want.dstructure, s.H, s.N, w)) < 1e-11);
        std::vector<double> derror;
        for (size_t n = 0; n < values.size(); ++n) {
          const size_t head = n / at.size() * static_cast<size_t>(s.N * s.N);
          derror.push_back(std::abs(values[n]) < 0.2 ? want.derror[head + at[n % at.size()]] : 0);
        }
        if (errors) CHECK(distance(grad_of(made.place("error")), derror) < 1e-11);
      }
    }
  }
}

TEST_CASE("banded: what is kept is all that a step holds", "[structured][band_project][band_sparse_error]") {
  const battery::WithThreads two(2);  // each holds a tile of its own
  // Bytes of a training step: twice the length takes twice as much, with one error a row too.
  const auto bytes = [](const std::string& spec, int64_t length) {
    Rng rng(1);
    const auto made = make_attention(spec, {.d_model = 16, .max_length = length}, rng);
    const Tensor x = leaf(test::tensor(test::numbers(length * 16, 3), {1, length, 16}, DType::f32));
    const int64_t before = memory_use().live;
    reset_peak();
    backward(sum(made->forward({.queries = x, .keys = x})));
    return static_cast<double>(memory_use().peak - before);
  };
  for (const char* spec : {"structured:width=8", "structured:width=8,eps=0.1", "structured:start=diagonal",
                           "band_project:width=8", "band_sparse_error:width=8"}) {
    CAPTURE(spec);
    const double held = bytes(spec, 4096), one_map = 4096.0 * 4096.0 * 4;
    CHECK(held < 3 * bytes(spec, 2048));  // 4, if pairs were held
    CHECK(held < one_map / 4);
  }
}

TEST_CASE("banded: a decoder with a band of its own remembers no more than the band", "[structured]") {
  Rng rng(1);
  const auto made =
      make_attention("structured:width=5", {.d_model = 4, .causal = true, .max_length = 200}, rng);
  const auto cache = made->new_cache();
  const NoGrad quiet;
  const Tensor x = test::tensor(test::numbers(800, 3), {1, 200, 4}, DType::f32);
  const Tensor full = made->forward({.queries = x, .keys = x, .mask = Mask::causal()});
  for (int64_t t = 0; t < 200; ++t) {
    const Tensor row = view::slice(x, 1, t, t + 1);
    const Tensor y =
        made->forward({.queries = row, .keys = row, .mask = Mask::causal(), .cache = cache.get()});
    CHECK(distance(y, view::slice(full, 1, t, t + 1).to_doubles()) < 2e-6);
  }
  CHECK(dynamic_cast<KeyValueCache&>(*cache).keys.extent(2) <= 16);
}

TEST_CASE("banded: structured starts as a band, a diagonal or the mean, and does not look at the input",
          "[structured]") {
  const Sizes s{1, 1, 9, 4, 4};
  const auto uniform = Made("structured:start=uniform", s, false).map(),
             diagonal = Made("structured:start=diagonal", s, false).map(),
             band = Made("structured:width=1", s, false).map();
  for (size_t i = 0; i < 9; ++i) {
    for (size_t j = 0; j < 9; ++j) {
      CHECK(uniform[i * 9 + j] == Approx(1.0 / 9));
      CHECK(diagonal[i * 9 + j] == Approx(i == j ? 1 : 0));
      const double near = i > j ? static_cast<double>(i - j) : static_cast<double>(j - i);
      CHECK(band[i * 9 + j] == Approx(near > 1 ? 0 : i == 0 || i == 8 ? 0.5 : 1.0 / 3));
    }
  }
  for (const double sum : sums_of_rows(band, 9)) CHECK(sum == Approx(1));
  Made one("structured", s, false);
  const auto before = one.map();
  one.heads.q = test::heads(1, 1, 9, 4, DType::f64, 77);
  one.heads.k = test::heads(1, 1, 9, 4, DType::f64, 78);
  CHECK(one.map() == before);
  CHECK(count_parameters(*Made("structured:learn=false", s, false).attention) == 2 * 16);
  CHECK(count_parameters(*Made("structured:start=uniform", s, false).attention) == 2 * 16 + 81);
  CHECK(count_parameters(*Made("structured:width=2", s, false).attention) == 2 * 16 + 9 * 5);
  CHECK(count_parameters(*Made("structured", s, false).attention) == 2 * 16 + 9 * 17);
}

TEST_CASE("banded: what cannot be is refused", "[band_project][band_sparse_error][structured]") {
  const auto refused = [](const std::string& spec, const std::string& why, int64_t longest = 10) {
    Rng rng(1);
    CAPTURE(spec);
    CHECK_THROWS_WITH(make_attention(spec, {.d_model = 4, .max_length = longest}, rng), containing(why));
  };
  refused("band_project:width=-1", "width = -1");
  refused("band_sparse_error:eps=-0.5", "eps = -0.5");
  refused("band_sparse_error:density=1.5", "density = 1.5");
  refused("band_sparse_error", "not known here", 0);
  refused("structured", "not known here", 0);
  refused("structured:width=-2", "width = -2");
  for (const char* spec : {"structured", "band_sparse_error"}) {
    Rng rng(1);
    const auto made = make_attention(spec, {.d_model = 4, .max_length = 10}, rng);
    const Tensor x = test::tensor(test::numbers(44, 1), {1, 11, 4}, DType::f32);
    CHECK_THROWS_WITH(made->forward({.queries = x, .keys = x}), containing("11 tokens"));
  }
}

}  // namespace heed
