// heed attend: output, map and gradients of given tensors, in files.
#include <cmath>

#include "core/io.h"
#include "core/npy.h"
#include "tests/catch.h"
#include "tests/scratch.h"
#include "train/commands/verb.h"

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
      std::vector<double> numeric;
      for (double& x : *values) {
        const double before = x;
        x = before + 1e-5;
        const double up = files.loss(one.allowed);
        x = before - 1e-5;
        numeric.push_back((up - files.loss(one.allowed)) / 2e-5);
        x = before;
      }
      check_close(files.out(name), numeric, 1e-8);
    }
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
  CHECK(files.attend("strided") == 2);
  CHECK(files.attend("bigbird", {"--causal"}) == 2);
  // Nothing is written for a call that is refused.
  CHECK(!io::exists(files.scratch / "out/out.npy"));
}
