// Generic tests of every op in the table: value and gradient, in both float types, on views, on every device,
// with any number of threads.
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "heed/autograd/gradcheck.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/autograd/op_case.h"
#include "heed/tests/device.h"
#include "heed/tests/source_paths.h"

namespace heed::plain {
namespace {

std::vector<OpCase> all_cases() {
  std::vector<OpCase> all;
  for (auto family : {arithmetic_cases, shape_cases, row_cases, attention_cases, score_cases, position_cases,
                      scan_cases, recurrence_cases, tree_cases, fastmax_cases, packed_cases, dropout_cases}) {
    for (OpCase& row : family()) all.push_back(std::move(row));
  }
  return all;
}

std::string label(const OpCase& row, const Shapes& shapes) {
  std::string out = row.op + (row.note.empty() ? "" : ", " + row.note) + " on";
  for (const Shape& shape : shapes) out += " " + to_string(shape);
  return out;
}

/// A number in [0, 1) from two others.
double mixed(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15U + b + 1;
  for (const int shift : {30, 27, 31}) x = (x ^ (x >> shift)) * 0xBF58476D1CE4E5B9U;
  return static_cast<double>(x >> 40) / static_cast<double>(1 << 24);
}

Kind kind_of(const OpCase& row, size_t input) {
  const Kind kind = input < row.kinds.size() ? row.kinds[input] : Kind{};
  const bool targets = row.op.starts_with("cross_entropy") && input == 1;
  return targets ? ids_below(kind.count) : kind;
}

/// Floats, so that both types compute on the same numbers.
Plain filled(const Kind& kind, const Shape& shape, uint64_t seed) {
  Plain out(shape);
  for (int64_t i = 0; i < out.size(); ++i) {
    const double chance = mixed(seed, static_cast<uint64_t>(i));
    double value = 0;
    switch (kind.what) {
      case Kind::What::real:
        value = kind.low + chance * (kind.high - kind.low);
        if (std::abs(value) < kind.gap) value += value < 0 ? -kind.gap : kind.gap;
        break;
      case Kind::What::distinct:
        value = static_cast<double>((i * 7919 + 13) % 65521 % 4096) / 16 + kind.shift;
        break;
      case Kind::What::ids:
        value = std::floor(chance * static_cast<double>(kind.count));
        break;
      case Kind::What::mask:
        value = chance < 0.6 ? 1 : 0;
        break;
    }
    out[i] = static_cast<float>(value);
  }
  return out;
}

Plains filled(const OpCase& row, const Shapes& shapes) {
  Plains out;
  for (size_t i = 0; i < shapes.size(); ++i) out.push_back(filled(kind_of(row, i), shapes[i], i + 1));
  return out;
}

Tensor tensor(const Kind& kind, const Plain& x, DType dtype, Device device) {
  const DType own = kind.what == Kind::What::ids    ? DType::i32
                    : kind.what == Kind::What::mask ? DType::u8
                                                    : dtype;
  const Tensor wide = Tensor::of<double>(x.values, x.shape, device);
  const Tensor out(x.shape, own, device);
  launch<kernel::Copy>(device, wide, out);
  return out;
}

std::vector<Tensor> tensors(const OpCase& row, const Plains& x, DType dtype, Device device) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < x.size(); ++i) out.push_back(tensor(kind_of(row, i), x[i], dtype, device));
  return out;
}

/// The largest difference relative to max(1, |b|); infinite where the sizes or the NaNs differ.
double worst(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i]));
    if (!(error <= out)) out = std::isnan(error) ? HUGE_VAL : error;
  }
  return out;
}

/// The values of a call, and its gradients along a fixed direction.
struct Swept {
  std::vector<double> value;
  std::vector<std::vector<double>> gradients;
};

Tensor direction(const Tensor& y) {
  return tensor({}, filled(between(0.5, 1.5), y.shape(), 99), y.dtype(), y.device());
}

/// Floats become leaves: a view stays the view it is.
Swept swept(const OpCase& row, std::vector<Tensor> x,
            const std::function<Tensor(const Tensor&)>& along = direction) {
  for (Tensor& input : x) {
    if (is_float(input.dtype())) input = leaf(input);
  }
  const Tensor y = row.apply(x);
  Swept out{.value = y.to_doubles(), .gradients = {}};
  backward(y, along(y));
  for (const Tensor& input : x) {
    if (!is_float(input.dtype())) continue;
    const Tensor gradient = grad_of(input);
    REQUIRE(gradient);
    CHECK(gradient.shape() == input.shape());
    CHECK(gradient.contiguous());
    out.gradients.push_back(gradient.to_doubles());
  }
  return out;
}

void same(const Swept& a, const Swept& b, double maximum) {
  CHECK(worst(a.value, b.value) <= maximum);
  REQUIRE(a.gradients.size() == b.gradients.size());
  for (size_t i = 0; i < a.gradients.size(); ++i) CHECK(worst(a.gradients[i], b.gradients[i]) <= maximum);
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

/// A copy whose numbers lie in memory with gaps: every second element of a larger block.
Tensor with_gaps(const Tensor& x) {
  Shape shape = x.shape();
  shape.push_back(2);
  const Tensor block = Tensor::full(shape, 1, x.dtype(), x.device());
  const Tensor view = block.seen_as(
      x.shape(),
      [&] {
        Strides strides = Strides::contiguous(shape);
        strides.erase(strides.rank() - 1);
        return strides;
      }(),
      1);
  launch<kernel::Copy>(x.device(), x, view);
  return view;
}

/// A copy with two axes swapped in memory.
Tensor turned(const Tensor& x, int64_t a, int64_t b) {
  Shape shape = x.shape();
  std::swap(shape[a], shape[b]);
  const Tensor block(shape, x.dtype(), x.device());
  const Tensor view = view::transpose(block, a, b);
  launch<kernel::Copy>(x.device(), x, view);
  return view;
}

/// A window in a larger block: rows that are dense, with something else around them.
Tensor window(const Tensor& x) {
  Shape shape = x.shape();
  shape[-1] += 3;
  shape[0] += x.rank() > 1 ? 1 : 0;
  const Tensor block = Tensor::full(shape, 1, x.dtype(), x.device());
  Tensor view = view::slice(block, -1, 2, 2 + x.extent(-1));
  if (x.rank() > 1) view = view::slice(view, 0, 1, 1 + x.extent(0));
  launch<kernel::Copy>(x.device(), x, view);
  return view;
}

std::vector<Tensor> views_of(const Tensor& x) {
  if (x.rank() == 0) return {};
  std::vector<Tensor> out = {window(x)};
  if (x.rank() < Extents::max_rank) out.push_back(with_gaps(x));
  if (x.rank() > 1) {
    out.push_back(turned(x, 0, -1));
    out.push_back(turned(x, -1, -2));
  }
  return out;
}

Tensor dense(const Tensor& x) {
  const Tensor out = empty_like(x);
  launch<kernel::Copy>(x.device(), x, out);
  return out;
}

/// Calls f(row, shapes) on every small call of every row, and on the large ones too where that is asked for.
/// What one throws does not hide the others.
template <class F>
void each_call(bool with_large, F&& f) {
  for (const OpCase& row : all_cases()) {
    std::vector<Shapes> calls = row.shapes;
    if (with_large) calls.push_back(row.large);
    for (const Shapes& shapes : calls) {
      INFO(label(row, shapes));
      try {
        f(row, shapes);
      } catch (const Error& error) {
        FAIL_CHECK(error.what());
      }
    }
  }
}

double gradient_tolerance(const OpCase& row) { return 4e-6 * row.looser_gradient; }

TEST_CASE("ops: the value is that of plain double loops, in both float types, on every device") {
  const Device device = any_device();
  each_call(true, [&](const OpCase& row, const Shapes& shapes) {
    const Plains x = filled(row, shapes);
    const Plain expected = row.reference(x);
    for (const DType dtype : {DType::f64, DType::f32}) {
      INFO(to_string(dtype));
      const Tensor y = row.apply(tensors(row, x, dtype, device));
      CHECK(y.shape() == expected.shape);
      CHECK_FALSE(y.node());
      CHECK(worst(y.to_doubles(), expected.values) <= row.looser * tolerance(dtype));
    }
  });
}

TEST_CASE("ops: the gradient is that of central differences, and the same at each sweep") {
  const Device device = any_device();
  each_call(false, [&](const OpCase& row, const Shapes& shapes) {
    const GradcheckReport report =
        gradcheck(row.apply, tensors(row, filled(row, shapes), DType::f64, device));
    INFO(to_string(report));
    CHECK(report.repeats);
    CHECK(report.relative <= 1e-6);
    int64_t elements = 0;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const Kind::What what = kind_of(row, i).what;
      if (what == Kind::What::real || what == Kind::What::distinct) elements += shapes[i].size();
    }
    CHECK(report.checked == elements);
  });
}

TEST_CASE("ops: gradients in f32 are those in f64") {
  const Device device = any_device();
  each_call(true, [&](const OpCase& row, const Shapes& shapes) {
    const Plains x = filled(row, shapes);
    const Swept narrow = swept(row, tensors(row, x, DType::f32, device));
    const Swept wide = swept(row, tensors(row, x, DType::f64, device));
    for (size_t i = 0; i < wide.gradients.size(); ++i) {
      INFO("float input " << i);
      CHECK(worst(narrow.gradients[i], wide.gradients[i]) <= gradient_tolerance(row));
    }
  });
}

TEST_CASE("ops: an input that is a view gives what a dense one gives") {
  const Device device = any_device();
  each_call(false, [&](const OpCase& row, const Shapes& shapes) {
    const std::vector<Tensor> x = tensors(row, filled(row, shapes), DType::f64, device);
    const Swept expected = swept(row, x);
    for (size_t i = 0; i < x.size(); ++i) {
      for (const Tensor& view : views_of(x[i])) {
        INFO("input " << i << " with strides " << to_string(view.strides()));
        std::vector<Tensor> seen = x;
        seen[i] = view;
        same(swept(row, seen), expected, 1e-12);
      }
      for (int64_t axis = 0; axis < x[i].rank(); ++axis) {
        if (x[i].extent(axis) == 0) continue;
        INFO("input " << i << " repeated along axis " << axis);
        std::vector<Tensor> repeated = x;
        repeated[i] = view::expand(view::slice(x[i], axis, 0, 1), x[i].shape());
        const Swept seen = swept(row, repeated);
        repeated[i] = dense(repeated[i]);
        same(seen, swept(row, repeated), 1e-12);
      }
    }
  });
}

TEST_CASE("ops: a gradient that arrives as a view is read as such") {
  const Device device = any_device();
  each_call(false, [&](const OpCase& row, const Shapes& shapes) {
    const std::vector<Tensor> x = tensors(row, filled(row, shapes), DType::f64, device);
    const Swept expected = swept(row, x);
    const size_t ways = views_of(row.apply(x)).size();
    for (size_t way = 0; way < ways; ++way) {
      INFO("way " << way);
      same(swept(row, x, [way](const Tensor& y) { return views_of(direction(y))[way]; }), expected, 1e-12);
    }
    const auto ones = [](const Tensor& y) { return Tensor::full(y.shape(), 1, y.dtype(), y.device()); };
    const auto repeated = [](const Tensor& y) {
      return view::expand(Tensor::full(Shape{}, 1, y.dtype(), y.device()), y.shape());
    };
    same(swept(row, x, repeated), swept(row, x, ones), 1e-12);
  });
}

TEST_CASE("ops: the number of threads changes no bit") {
  const Device device = any_device();
  const int before = threads();
  for (const OpCase& row : all_cases()) {
    INFO(label(row, row.large));
    const std::vector<Tensor> x = tensors(row, filled(row, row.large), DType::f32, device);
    set_threads(1);
    const Swept one = swept(row, x);
    for (const int count : {2, 3, 4, 8}) {
      INFO(count << " threads");
      set_threads(count);
      const Swept more = swept(row, x);
      CHECK(same_bits(more.value, one.value));
      for (size_t i = 0; i < one.gradients.size(); ++i) CHECK(same_bits(more.gradients[i], one.gradients[i]));
    }
    set_threads(before);
  }
}

TEST_CASE("ops: ids and masks may be anything but take no gradient") {
  const Tensor weight = leaf(Tensor::full(Shape{4, 2}, 1));
  const std::vector<int32_t> ids = {0, 3, 3};
  backward(sum(embedding(weight, Tensor::of<int32_t>(ids, Shape{3}))));
  CHECK(grad_of(weight).to_host() == std::vector<float>{1, 1, 0, 0, 0, 0, 2, 2});
  CHECK_THROWS_WITH(leaf(Tensor::of<int32_t>(ids, Shape{3})), containing("i32 has no gradient"));
}

/// "affine(x, scale, shift)" from a declaration's name and parameters.
std::string signature(const std::string& name, const std::string& parameters) {
  std::string out = name + "(";
  std::stringstream parts(parameters);
  std::string part;
  for (bool first = true; std::getline(parts, part, ','); first = false) {
    part = part.substr(0, part.find('='));
    part.erase(part.find_last_not_of(' ') + 1);
    out += (first ? "" : ", ") + part.substr(part.find_last_of(" *&") + 1);
  }
  return out + ")";
}

TEST_CASE("ops: every op declared in autograd/ops.h has a row") {
  std::ifstream file(source_folder() + "/autograd/ops.h");
  REQUIRE(file);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::set<std::string> declared, tested;
  for (const std::string result : {"Tensor ", "NormalisedSum ", "std::vector<Tensor> "}) {
    for (size_t at = text.find(result); at != std::string::npos; at = text.find(result, at + 1)) {
      const size_t line = text.rfind('\n', at) + 1, name = at + result.size();
      const std::string before = text.substr(line, at - line);
      if (!before.empty() && before != "inline ") continue;
      const size_t open = text.find('(', at), close = text.find(')', open);
      declared.insert(signature(text.substr(name, open - name), text.substr(open + 1, close - open - 1)));
    }
  }
  for (const OpCase& row : all_cases()) tested.insert(row.op);
  CHECK(declared.size() > 40);
  CHECK(declared == tested);
}

}  // namespace
}  // namespace heed::plain
