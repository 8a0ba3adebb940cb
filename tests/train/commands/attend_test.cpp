// heed attend: output, map and gradients of given tensors, in files.
#include <algorithm>
#include <array>
#include <cmath>

#include "heed/core/io/files.h"
#include "heed/core/io/npy.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/shell.h"
#include "heed/train/commands/attend_modifiers.h"

using namespace heed;

namespace {

struct Files {
  Scratch scratch;
  std::vector<double> q, k, v, g;  // [1, 2, 5, 3], [1, 2, 5, 3], [1, 2, 5, 2], [1, 2, 5, 2]

  Files() {
    const auto fill = [](size_t count, double step) {
      std::vector<double> out;
      for (size_t i = 0; i < count; ++i) out.push_back(std::sin(step * static_cast<double>(i + 1)));
      return out;
    };
    q = fill(30, 0.7), k = fill(30, 1.3), v = fill(20, 0.9), g = fill(20, 2.1);
    put("q", {1, 2, 5, 3}, q), put("k", {1, 2, 5, 3}, k), put("v", {1, 2, 5, 2}, v),
        put("g", {1, 2, 5, 2}, g);
  }

  std::string file(const std::string& name) const { return (scratch / (name + ".npy")).string(); }
  void put(const std::string& name, std::vector<int64_t> shape, const std::vector<double>& values) const {
    write_npy(file(name), Array::of<double>(std::move(shape), values));
  }
  std::vector<double> out(const std::string& name) const {
    return read_npy(scratch / ("out/" + name + ".npy")).values<double>();
  }
  int attend(const std::string& spec, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"heed",
                                   "attend",
                                   spec,
                                   "--q",
                                   file("q"),
                                   "--k",
                                   file("k"),
                                   "--v",
                                   file("v"),
                                   "--out",
                                   (scratch / "out").string()};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    return run_program(static_cast<int>(arguments.size()), arguments.data());
  }

  /// sum of g . output where query i of head h may look at key j, with an additive attention's scores or dot
  /// products.
  double loss(const std::function<bool(int, int)>& allowed, std::vector<double>* map = nullptr) const {
    double total = 0;
    for (int h = 0; h < 2; ++h) {
      for (int i = 0; i < 5; ++i) {
        double weight[5] = {}, sum = 0;
        for (int j = 0; j < 5; ++j) {
          double score = 0;
          for (int c = 0; c < 3; ++c) score += at(q, 3, h, i, c) * at(k, 3, h, j, c);
          if (allowed(i, j)) sum += weight[j] = std::exp(score / std::sqrt(3.0));
        }
        for (int j = 0; j < 5; ++j) {
          if (map != nullptr) map->push_back(weight[j] / sum);
          for (int c = 0; c < 2; ++c) total += weight[j] / sum * at(v, 2, h, j, c) * at(g, 2, h, i, c);
        }
      }
    }
    return total;
  }

 private:
  static double at(const std::vector<double>& x, int width, int h, int i, int c) {
    return x[static_cast<size_t>((h * 5 + i) * width + c)];
  }
};

/// The gradient of a loss for each of the values that it reads, by central differences.
template <class Loss>
std::vector<double> numeric_gradient(std::vector<double>& values, const Loss& loss) {
  constexpr double step = 1e-5;
  std::vector<double> gradient;
  for (double& x : values) {
    const double before = x;
    x = before + step;
    const double up = loss();
    x = before - step;
    gradient.push_back((up - loss()) / (2 * step));
    x = before;
  }
  return gradient;
}

void check_close(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < tolerance);
}

}  // namespace

TEST_CASE("attend: the map and the gradients of the formula, for each mask that files can give") {
  Files files;
  const std::vector<uint8_t> pattern{1, 0, 0, 0, 1, 0, 1, 1, 0, 0, 1, 1, 1,
                                     1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1};
  write_npy(files.file("pattern"), Array::of<uint8_t>({5, 5}, pattern));
  const std::vector<int64_t> lengths{3};
  write_npy(files.file("lengths"), Array::of<int64_t>({1}, lengths));
  struct Case {
    std::vector<std::string> options;
    std::function<bool(int, int)> allowed;
  };
  const std::vector<Case> cases{{{}, [](int, int) { return true; }},
                                {{"--causal"}, [](int i, int j) { return j <= i; }},
                                {{"--pattern", files.file("pattern")},
                                 [&](int i, int j) { return pattern[static_cast<size_t>(5 * i + j)] != 0; }},
                                {{"--key-lengths", files.file("lengths")}, [](int, int j) { return j < 3; }}};
  for (Case one : cases) {
    one.options.insert(one.options.end(), {"--grad-out", files.file("g")});
    REQUIRE(files.attend("softmax", one.options) == 0);
    std::vector<double> map;
    files.loss(one.allowed, &map);
    check_close(files.out("map"), map, 1e-14);
    for (auto [name, values] : {std::pair{"dq", &files.q}, {"dk", &files.k}, {"dv", &files.v}}) {
      check_close(files.out(name), numeric_gradient(*values, [&] { return files.loss(one.allowed); }), 1e-8);
    }
  }
}

TEST_CASE("attend: padding may hold anything") {
  Files files;
  const std::vector<int64_t> lengths{3};
  write_npy(files.file("lengths"), Array::of<int64_t>({1}, lengths));
  const std::vector<std::string> options{"--key-lengths", files.file("lengths"), "--grad-out",
                                         files.file("g")};
  const auto real = [&](const char* name, const std::vector<double>& all) {  // rows 0, 1, 2 of each head
    std::vector<double> out;
    const size_t row = all.size() / 10;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i / row % 5 < 3) out.push_back(all[i]);
    }
    CAPTURE(name);
    CHECK(std::all_of(out.begin(), out.end(), [](double x) { return std::isfinite(x); }));
    return out;
  };
  for (double& x : files.g) x = 1;
  for (size_t i = 0; i < files.g.size(); ++i) {
    if (i / 2 % 5 >= 3) files.g[i] = 0;  // a loss ignores padded queries
  }
  files.put("g", {1, 2, 5, 2}, files.g);
  for (const char* spec : {"softmax", "efficient", "performer", "linformer:k=4", "retention"}) {
    CAPTURE(spec);
    auto more = options;
    if (spec == std::string("retention")) more.push_back("--causal");
    const auto run = [&] {
      files.put("q", {1, 2, 5, 3}, files.q), files.put("k", {1, 2, 5, 3}, files.k);
      files.put("v", {1, 2, 5, 2}, files.v);
      REQUIRE(files.attend(spec, more) == 0);
      std::vector<std::vector<double>> found;
      for (const char* name : {"out", "dq", "dk", "dv"}) found.push_back(real(name, files.out(name)));
      return found;
    };
    const auto clean = run();
    const auto before = std::array{files.q, files.k, files.v};
    for (const double garbage : {std::nan(""), -HUGE_VAL}) {
      for (auto* values : {&files.q, &files.k, &files.v}) {
        const size_t row = values->size() / 10;
        for (size_t i = 0; i < values->size(); ++i) {
          if (i / row % 5 >= 3) (*values)[i] = garbage;
        }
      }
      const auto dirty = run();
      for (size_t n = 0; n < clean.size(); ++n) check_close(dirty[n], clean[n], 1e-12);
    }
    files.q = before[0], files.k = before[1], files.v = before[2];
  }
}

TEST_CASE("attend: Fortran order reads as the same numbers, and f32 computes in f32") {
  Files files;
  REQUIRE(files.attend("softmax") == 0);
  const std::vector<double> plain = files.out("out");
  std::string bytes = io::read(files.file("q"));  // by hand: NumPy's header with the other order
  std::vector<double> turned;
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < 5; ++i) {
      for (int h = 0; h < 2; ++h) turned.push_back(files.q[static_cast<size_t>((h * 5 + i) * 3 + c)]);
    }
  }
  const size_t word = bytes.find("False");
  REQUIRE(word != std::string::npos);
  bytes.replace(word, 5, "True ");
  std::memcpy(bytes.data() + bytes.size() - turned.size() * 8, turned.data(), turned.size() * 8);
  io::write(files.file("q"), bytes);
  REQUIRE(files.attend("softmax") == 0);
  CHECK(files.out("out") == plain);
  REQUIRE(files.attend("softmax", {"--dtype", "f32"}) == 0);
  const std::vector<float> single = read_npy(files.scratch / "out/out.npy").values<float>();
  for (size_t i = 0; i < plain.size(); ++i) CHECK(std::abs(single[i] - plain[i]) < 1e-6);
}

TEST_CASE("attend: parameters are written, may be given, and have gradients") {
  Files files;
  REQUIRE(files.attend("additive:hidden=4", {"--grad-out", files.file("g")}) == 0);
  const std::vector<double> first = files.out("out"), units = files.out("units");
  CHECK(files.out("dunits").size() == units.size());
  REQUIRE(files.attend("additive:hidden=4", {"--seed", "2"}) == 0);
  CHECK(files.out("out") != first);
  std::vector<double> other = units;
  for (double& x : other) x = 0;  // scores that are all zero: each row is the mean of the values
  files.put("units", {2, 4}, other);
  REQUIRE(files.attend("additive:hidden=4", {"--param", "units=" + files.file("units")}) == 0);
  for (const double weight : files.out("map")) CHECK(std::abs(weight - 0.2) < 1e-15);
}

TEST_CASE("attend: what does not fit is refused") {
  Files files;
  files.put("short", {1, 2, 4, 3}, std::vector<double>(24));
  write_npy(files.file("pattern"), Array::of<uint8_t>({5, 4}, std::vector<uint8_t>(20)));
  write_npy(files.file("lengths"), Array::of<int32_t>({1}, std::vector<int32_t>{6}));
  CHECK(files.attend("sotfmax") == 2);
  const auto refused = [&](const std::string& spec, const std::string& why) {
    check_refused(Shell(),
                  {"attend", spec, "--q", files.file("q"), "--k", files.file("k"), "--v", files.file("v"),
                   "--out", "out"},
                  2, {why});
  };
  refused("delta", "looks back only. Add --causal.");
  refused("lstmn", "has no form on tensors that are given");  // --causal would not help
  CHECK(files.attend("softmax", {"--pattern", files.file("pattern")}) == 2);
  CHECK(files.attend("softmax", {"--key-lengths", files.file("lengths")}) == 2);
  CHECK(files.attend("softmax", {"--k", files.file("short")}) == 2);
  CHECK(files.attend("softmax", {"--grad-out", files.file("q")}) == 2);
  write_npy(files.file("whole"), Array::of<uint8_t>({5, 5}, std::vector<uint8_t>(25, 1)));
  CHECK(files.attend("linear", {"--pattern", files.file("whole")}) == 2);
  CHECK(files.attend("softmax", {"--param", "units=" + files.file("q")}) == 2);
  CHECK(files.attend("additive", {"--param", "units=" + files.file("q")}) == 2);
  CHECK(files.attend("softmax", {"--q", files.file("none")}) == 5);
  CHECK(files.attend("softmax", {"--dtype", "bf16"}) == 2);
  CHECK(files.attend("retention") == 2);
  CHECK(files.attend("bigbird", {"--causal"}) == 2);
  // Nothing is written for a call that is refused.
  CHECK(!io::exists(files.scratch / "out/out.npy"));
}

namespace {

using Row = std::array<double, 4>;
using Numbers = std::vector<double>;

Numbers waves(size_t count, double step) {
  Numbers out;
  for (size_t i = 0; i < count; ++i) out.push_back(std::sin(step * static_cast<double>(i + 1)));
  return out;
}

/// Row i of head h of [1, H, 5, 4], or of [rows, 4] with h = 0.
Row row(const Numbers& x, int h, int i) {
  Row out{};
  for (int c = 0; c < 4; ++c) out[static_cast<size_t>(c)] = x[static_cast<size_t>((h * 5 + i) * 4 + c)];
  return out;
}

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (size_t c = 0; c < 4; ++c) sum += a[c] * b[c];
  return sum;
}

/// One modifier, or several, as formulas over 2 heads of 5 positions of width 4.
struct Modified {
  std::vector<std::string> options;
  std::map<std::string, std::pair<std::vector<int64_t>, Numbers>> given = {};  // parameters
  bool causal = false;
  std::function<Row(Row x, int h, int t, bool query)> ready = [](Row x, int, int, bool) { return x; };
  /// What becomes of q . k / 2, for the ready query.
  std::function<double(double s, const Row& q, int h, int i, int j)> score = [](double s, const Row&, int,
                                                                                int, int) { return s; };
  std::function<double(int h)> sink = [](int) { return 0.0; };  // exp of it, beside the keys
  std::function<Row(Row v, int i, int j)> value = [](Row v, int, int) { return v; };

  /// [1, 2, 5, 4], and the map.
  std::pair<Numbers, Numbers> output(const Numbers& q, const Numbers& k, const Numbers& v) const {
    Numbers out(40), map(50);
    for (int h = 0; h < 2; ++h) {
      for (int i = 0; i < 5; ++i) {
        const Row query = ready(row(q, h, i), h, i, true);
        double weight[5] = {}, sum = sink(h);
        for (int j = 0; j < 5; ++j) {
          if (causal && j > i) continue;
          const double s = dot(query, ready(row(k, h, j), h, j, false)) / 2;
          sum += weight[j] = std::exp(score(s, query, h, i, j));
        }
        for (int j = 0; j < 5; ++j) {
          const double share = map[static_cast<size_t>((h * 5 + i) * 5 + j)] = weight[j] / sum;
          const Row one = value(row(v, h, j), i, j);
          for (int c = 0; c < 4; ++c)
            out[static_cast<size_t>((h * 5 + i) * 4 + c)] += share * one[static_cast<size_t>(c)];
        }
      }
    }
    return {out, map};
  }
};

Row turned(Row x, int t, double base, bool halves) {
  Row y{};
  for (size_t p = 0; p < 2; ++p) {
    const double angle = t * std::pow(base, -static_cast<double>(p) / 2);
    const size_t a = halves ? p : 2 * p, b = halves ? p + 2 : 2 * p + 1;
    y[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
    y[b] = x[a] * std::sin(angle) + x[b] * std::cos(angle);
  }
  return y;
}

std::vector<Modified> modified() {
  const Numbers gain = waves(4, 0.4), other = waves(4, 0.3), heads{0.5, -1.5}, buckets = waves(8, 0.6),
                vectors = waves(20, 0.8), more = waves(20, 1.1);
  const auto rms = [=](Row x, int, int, bool query) {
    const double size = std::sqrt(dot(x, x) / 4 + 1e-6);
    for (size_t c = 0; c < 4; ++c) x[c] *= (query ? gain : other)[c] / size;
    return x;
  };
  const auto l2 = [=](Row x, int h, int, bool query) {
    const double size = std::sqrt(dot(x, x) + 1e-6);
    for (double& c : x) c *= (query ? heads[static_cast<size_t>(h)] : 1) / size;
    return x;
  };
  const auto alibi = [](double s, int h, int i, int j) {
    return s - std::abs(i - j) * (h == 0 ? 1.0 / 16 : 1.0 / 256);
  };
  const auto t5 = [=](double s, const Row&, int h, int i, int j) {
    const int bucket[] = {0, 1, 2, 3, 3};  // two exact ones, two that grow
    return s + buckets[static_cast<size_t>(bucket[i - j] * 2 + h)];
  };
  const auto at = [](int i, int j) { return std::clamp(j - i, -2, 2) + 2; };
  const auto to_keys = [=](double s, const Row& q, int, int i, int j) {
    return s + dot(q, row(vectors, 0, at(i, j))) / 2;
  };
  const auto to_values = [=](Row v, int i, int j) {
    for (size_t c = 0; c < 4; ++c) v[c] += row(more, 0, at(i, j))[c];
    return v;
  };
  const auto rope = [](double base, bool halves) {
    return [=](Row x, int, int t, bool) { return turned(x, t, base, halves); };
  };
  using Pair = std::pair<std::vector<int64_t>, Numbers>;
  const Pair of_distances{{5, 4}, vectors};
  return {{.options = {"--position", "rope"}, .ready = rope(10000, true)},
          {.options = {"--position", "rope_interleaved", "--position-base", "9", "--causal"},
           .causal = true,
           .ready = rope(9, false)},
          {.options = {"--qk-norm", "rms"},
           .given = {{"query_gain", {{4}, gain}}, {"key_gain", {{4}, other}}},
           .ready = rms},
          {.options = {"--qk-norm", "l2"}, .given = {{"query_gain", {{2, 1, 1}, heads}}}, .ready = l2},
          {.options = {"--position", "alibi", "--softcap", "0.3"},
           .score = [=](double s, const Row&, int h, int i,
                        int j) { return alibi(0.3 * std::tanh(s / 0.3), h, i, j); }},
          {.options = {"--position", "t5", "--position-buckets", "4", "--position-span", "4", "--causal"},
           .given = {{"position_bias", {{4, 2}, buckets}}},
           .causal = true,
           .score = t5},
          {.options = {"--position", "shaw_keys", "--position-span", "2"},
           .given = {{"position_vectors", of_distances}},
           .score = to_keys},
          {.options = {"--position", "shaw", "--position-span", "2"},
           .given = {{"position_vectors", of_distances}, {"value_vectors", {{5, 4}, more}}},
           .score = to_keys,
           .value = to_values},
          {.options = {"--sink", "zero"}, .sink = [](int) { return 1.0; }},
          {.options = {"--sink", "learned"}, .given = {{"sink", {{2}, heads}}}, .sink = [=](int h) {
             return std::exp(heads[static_cast<size_t>(h)]);
           }}};
}

}  // namespace

TEST_CASE("attend: modifiers act on queries, keys and scores as their formulas say") {
  Files files;
  Numbers q = waves(40, 0.7), k = waves(40, 1.3), v = waves(40, 0.9);
  const Numbers g = waves(40, 2.1);
  for (const auto& [name, values] : {std::pair{"q", &q}, {"k", &k}, {"v", &v}})
    files.put(name, {1, 2, 5, 4}, *values);
  files.put("g", {1, 2, 5, 4}, g);
  for (const Modified& one : modified()) {
    CAPTURE(one.options);
    std::vector<std::string> options = one.options;
    options.insert(options.end(), {"--grad-out", files.file("g")});
    for (const auto& [name, tensor] : one.given) {
      files.put(name, tensor.first, tensor.second);
      options.insert(options.end(), {"--param", name + "=" + files.file(name)});
    }
    REQUIRE(files.attend("softmax", options) == 0);
    const auto [out, map] = one.output(q, k, v);
    check_close(files.out("out"), out, 1e-13);
    if (one.options[1] != "shaw") check_close(files.out("map"), map, 1e-13);
    const auto loss = [&] {
      const Numbers y = one.output(q, k, v).first;
      double total = 0;
      for (size_t i = 0; i < y.size(); ++i) total += g[i] * y[i];
      return total;
    };
    for (auto [name, values] : {std::pair{"dq", &q}, {"dk", &k}, {"dv", &v}}) {
      check_close(files.out(name), numeric_gradient(*values, loss), 1e-7);
    }
  }
}

TEST_CASE("attend: modifiers that cannot act are refused") {
  Files files;
  const auto refused = [](const std::string& option, const std::string& value) {
    ParsedArguments arguments;
    arguments.options[option] = {value};
    try {
      read_modifiers(arguments);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK(refused("sink", "learned") == "none");
  CHECK_THAT(refused("position", "sinusoid"), containing("--position: 'sinusoid'") && containing("alibi"));
  CHECK_THAT(refused("position", "alby"), containing("--position: position = 'alby'") && containing("alibi"));
  CHECK_THAT(refused("softcap", "-1"), containing("--softcap = -1. It must"));
  CHECK_THAT(refused("position-buckets", "3"), containing("--position-buckets = 3. It must"));
  CHECK(files.attend("linear", {"--softcap", "2"}) == 2);       // has no scores
  CHECK(files.attend("softmax", {"--position", "rope"}) == 2);  // heads are 3 wide
  CHECK(files.attend("location", {"--qk-norm", "rms"}) == 2);   // looks at no keys
  files.put("k", {1, 2, 4, 3}, waves(24, 1));
  files.put("v", {1, 2, 4, 2}, waves(16, 1));
  CHECK(files.attend("softmax", {"--position", "alibi"}) == 2);  // two inputs
  CHECK(!io::exists(files.scratch / "out/out.npy"));
}

TEST_CASE("attend: longformer takes what its global projections give") {
  Files files;
  Numbers q = waves(12, 0.37), k = waves(15, 0.53), v = waves(20, 0.71);  // k has one head for both
  files.put("q'", {1, 2, 2, 3}, q), files.put("k'", {1, 1, 5, 3}, k), files.put("v'", {1, 2, 5, 2}, v);
  const auto output = [&] {
    Numbers out;
    for (int h = 0; h < 2; ++h) {
      for (int i = 0; i < 5; ++i) {
        const bool global = i < 2;
        double sum = 0, y[2] = {};
        for (int j = 0; j < 5; ++j) {
          if (!global && j >= 2 && std::abs(i - j) > 1) continue;
          double s = 0;
          for (int c = 0; c < 3; ++c) {
            const auto at = [c](int r) { return static_cast<size_t>(r * 3 + c); };
            s += global ? q[at(h * 2 + i)] * k[at(j)] : files.q[at(h * 5 + i)] * files.k[at(h * 5 + j)];
          }
          const double weight = std::exp(s / std::sqrt(3.0));
          sum += weight;
          for (int c = 0; c < 2; ++c)
            y[c] += weight * (global ? v : files.v)[static_cast<size_t>((h * 5 + j) * 2 + c)];
        }
        for (const double c : y) out.push_back(c / sum);
      }
    }
    return out;
  };
  const auto given = [&](const std::string& name, const std::string& file) {
    return std::vector<std::string>{"--param", name + "=" + files.file(file)};
  };
  std::vector<std::string> options{"--grad-out", files.file("g")};
  for (const auto& [name, file] :
       {std::pair{"global_queries", "q'"}, {"global_keys", "k'"}, {"global_values", "v'"}}) {
    for (const std::string& word : given(name, file)) options.push_back(word);
  }
  const std::string spec = "longformer:window=1,global=2";
  REQUIRE(files.attend(spec, options) == 0);
  check_close(files.out("out"), output(), 1e-14);
  const auto loss = [&] {
    const Numbers y = output();
    double total = 0;
    for (size_t i = 0; i < y.size(); ++i) total += files.g[i] * y[i];
    return total;
  };
  for (auto [name, values] : {std::pair{"dglobal_queries", &q},
                              {"dglobal_keys", &k},
                              {"dglobal_values", &v},
                              {"dq", &files.q},
                              {"dk", &files.k},
                              {"dv", &files.v}}) {
    CAPTURE(name);
    check_close(files.out(name), numeric_gradient(*values, loss), 1e-8);
  }
  // Another number of them, and the layer's own projections, which nothing here could use.
  CHECK(files.attend(spec, given("global_queries", "k'")) == 2);
  files.put("w", {6, 6}, waves(36, 0.3));
  CHECK(files.attend(spec, given("query_global.weight", "w")) == 2);
}
