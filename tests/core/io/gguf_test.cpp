// GGUF files: metadata, tensors, quantised blocks, and every kind of malformed file.
#include "heed/core/io/gguf.h"

#include <cmath>
#include <numeric>

#include "heed/core/io/files.h"
#include "heed/core/random.h"
#include "heed/tests/catch.h"
#include "heed/tests/core/io/gguf_bytes.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

GgufBytes small_gguf() {
  GgufBytes out;
  out.word("general.architecture", "llama").whole("llama.block_count", 2).real("scale", 0.1f);
  out.words("names", {"a", "bc", ""}).raw("flag", 7, "\1").raw("low", 11, GgufBytes::number(int64_t{-5}));
  out.floats("m", {2, 3}, {1, 2, 3, 4, 5, 6}).floats("v", {2}, {-1, 0.5f});
  return out;
}

void refuses_gguf(const std::string& bytes, const std::string& reason) {
  INFO(reason);
  CHECK(fault_of([&] { GgufFile::parse(bytes, "m.gguf"); }) == Fault::data);
  CHECK_THROWS_WITH(GgufFile::parse(bytes, "m.gguf"),
                    containing("m.gguf") && containing("at byte ") && containing(reason));
}

/// A block of bytes 11, 48, 85, ...; at `halves`: 0.25 and about -0.175 in half precision.
std::string block_bytes(int64_t size, const std::vector<size_t>& halves) {
  std::string out;
  for (int64_t i = 0; i < size; ++i) out += static_cast<char>(i * 37 + 11);
  const uint16_t values[] = {0x3400, 0xB19A};
  for (size_t i = 0; i < halves.size(); ++i) {
    out[halves[i]] = static_cast<char>(values[i] & 255);
    out[halves[i] + 1] = static_cast<char>(values[i] >> 8);
  }
  return out;
}

}  // namespace

TEST_CASE("gguf: metadata and tensors come back, shapes row-major") {
  const Scratch scratch;
  io::write(scratch / "m.gguf", small_gguf().bytes());
  const GgufFile file = GgufFile::read(scratch / "m.gguf");
  CHECK(file.metadata().at("general.architecture").text() == "llama");
  CHECK(file.metadata().at("llama.block_count").integer() == 2);
  CHECK(file.metadata().at("scale").real() == static_cast<double>(0.1f));
  CHECK(file.metadata().at("names").list().at(1).text() == "bc");
  CHECK(file.metadata().at("flag").boolean());
  CHECK(file.metadata().at("low").integer() == -5);
  REQUIRE(file.tensors().size() == 2);
  CHECK(file.tensors()[0].shape == std::vector<int64_t>{2, 3});
  CHECK(file.tensors()[0].type == "f32");
  CHECK(file.values(file.tensors()[0]) == std::vector<float>{1, 2, 3, 4, 5, 6});
  REQUIRE(file.find("v") != nullptr);
  CHECK(file.values(*file.find("v")) == std::vector<float>{-1, 0.5f});
  CHECK(file.find("w") == nullptr);
}

TEST_CASE("gguf: what is written is read back") {
  const Json metadata = Json::object({{"name", "a"},
                                      {"count", 7},
                                      {"below", -3},
                                      {"far", int64_t{1} << 40},
                                      {"base", 1e4},
                                      {"flag", true},
                                      {"words", Json::List{"x", ""}},
                                      {"kinds", Json::List{1, -1}}});
  const std::vector<float> m{1, 2, 3, 4, 5, 6}, v{0.5f};
  const GgufFloats tensors[] = {{"m", {3, 2}, m}, {"v", {1}, v}};
  const GgufFile file = GgufFile::parse(encode_gguf(metadata, tensors), "m.gguf");
  CHECK(file.metadata().dump() == metadata.dump());
  REQUIRE(file.tensors().size() == 2);
  CHECK(file.tensors()[0].shape == std::vector<int64_t>{3, 2});
  CHECK(file.values(file.tensors()[0]) == m);
  CHECK(file.values(*file.find("v")) == v);
  const GgufFloats wrong[] = {{"m", {2, 2}, m}};
  CHECK(fault_of([&] { encode_gguf(metadata, wrong); }) == Fault::usage);
  CHECK_THROWS_WITH(encode_gguf(metadata, wrong), containing("m has 6 numbers, which do not fit"));
}

TEST_CASE("gguf: blocks of all types give the numbers of the package gguf of Python") {
  struct Golden {
    uint32_t code;
    std::vector<size_t> halves;  // where scales lie
    double first, second, beyond_half, last, sum;
  };
  // gguf.quants.dequantize(), gguf 0.19
  const Golden goldens[] = {
      {2, {0}, -0.75, 0.5, 1, 0, -5.25},
      {3, {0, 2}, 3.574951171875, 0.824951171875, -0.175048828125, 2.824951171875, 55.6484375},
      {6, {0}, 2.25, -0.5, 1.25, 0.25, 3.75},
      {7, {0, 2}, 4.574951171875, 5.824951171875, 6.324951171875, 1.074951171875, 120.6484375},
      {8, {0}, 21.25, 30.5, 5, -12, -44},
      {12, {0, 2}, 94.177490234375, 8.927490234375, 99.6005859375, 22.626708984375, 16144.8125},
      {13, {0, 2}, 218.177490234375, 8.927490234375, 99.6005859375, 37.626708984375, 31588.8125},
      {14, {208}, -357.75, 424, -32.5, -15, 1153},
  };
  for (const Golden& golden : goldens) {
    const auto type = std::ranges::find(gguf_types(), golden.code, &GgufType::code);
    REQUIRE(type != gguf_types().end());
    CAPTURE(type->name);
    GgufBytes made;
    made.tensor("x", {type->numbers}, golden.code, block_bytes(type->bytes, golden.halves));
    const GgufFile file = GgufFile::parse(made.bytes(), "m.gguf");
    const std::vector<float> x = file.values(file.tensors().at(0));
    REQUIRE(static_cast<int64_t>(x.size()) == type->numbers);
    CHECK(static_cast<double>(x[0]) == golden.first);
    CHECK(static_cast<double>(x[1]) == golden.second);
    CHECK(static_cast<double>(x[x.size() / 2 + 3]) == golden.beyond_half);
    CHECK(static_cast<double>(x.back()) == golden.last);
    CHECK(std::accumulate(x.begin(), x.end(), 0.0) == golden.sum);
  }
}

TEST_CASE("gguf: half precision and bf16 are exact, and what is not finite is refused") {
  const std::vector<std::pair<uint16_t, float>> halves{
      {0x3C00, 1.f},     {0xC000, -2.f}, {0x0001, 0x1p-24f},       {0x83FF, -1023 * 0x1p-24f},
      {0x7BFF, 65504.f}, {0x0000, 0.f},  {0x3555, 0.333251953125f}};
  for (const auto& [bits, value] : halves) {
    GgufBytes made;
    made.tensor("x", {1}, 1, GgufBytes::number(bits));
    const GgufFile file = GgufFile::parse(made.bytes(), "m.gguf");
    CHECK(file.values(file.tensors()[0])[0] == value);
  }
  GgufBytes brain;
  brain.tensor("x", {2}, 30, GgufBytes::number(uint16_t{0xC040}) + GgufBytes::number(uint16_t{0x3F80}));
  const GgufFile file = GgufFile::parse(brain.bytes(), "m.gguf");
  CHECK(file.values(file.tensors()[0]) == std::vector<float>{-3, 1});
  for (const uint16_t bits : {uint16_t{0x7C00}, uint16_t{0x7E01}}) {
    GgufBytes made;
    made.tensor("x", {2}, 1, GgufBytes::number(uint16_t{0}) + GgufBytes::number(bits));
    const GgufFile bad = GgufFile::parse(made.bytes(), "m.gguf");
    CHECK(fault_of([&] { bad.values(bad.tensors()[0]); }) == Fault::numeric);
    CHECK_THROWS_WITH(bad.values(bad.tensors()[0]), containing("tensor x is not finite at number 1"));
  }
}

TEST_CASE("gguf: files that lie are refused by name and place") {
  const std::string good = small_gguf().bytes();
  refuses_gguf("", "does not begin with GGUF");
  refuses_gguf("GGUF", "a number has 4 bytes, but only 0 follow");
  std::string bytes = good;
  bytes[4] = 1;
  refuses_gguf(bytes, "its version is 1; 2 and 3 can be read");
  bytes = good;
  bytes[14] = 1;  // 2^48 tensors more
  refuses_gguf(bytes, "more than the 32768 allowed");
  bytes = good;
  bytes[22] = 1;
  refuses_gguf(bytes, "keys, more than the 65536 allowed");
  refuses_gguf(good.substr(0, good.size() - 33), "the file ends before");
  const auto with = [](auto&& change) {
    GgufBytes made = small_gguf();
    change(made);
    return made.bytes();
  };
  const auto list = [](uint32_t type, uint64_t count) {
    return GgufBytes::number(type) + GgufBytes::number(count);
  };
  refuses_gguf(with([](auto& g) { g.whole("scale", 1); }), "the key 'scale' twice");
  refuses_gguf(with([](auto& g) { g.raw("x", 13, ""); }), "'x' has the type 13");
  refuses_gguf(with([&](auto& g) { g.raw("x", 9, list(9, 1)); }), "'x' has a list of lists");
  refuses_gguf(with([&](auto& g) { g.raw("x", 9, list(0, uint64_t{1} << 60)); }), "claims a list of");
  refuses_gguf(with([](auto& g) { g.raw("x", 8, GgufBytes::number(~uint64_t{0})); }), "the text of 'x' has");
  refuses_gguf(with([](auto& g) { g.raw("x", 10, GgufBytes::number(~uint64_t{0})); }), "above 2^63");
  refuses_gguf(with([](auto& g) { g.whole("general.alignment", 3); }), "general.alignment is 3");
  refuses_gguf(with([](auto& g) { g.floats("m", {1}, {1}); }), "the tensor 'm' twice");
  refuses_gguf(with([](auto& g) { g.tensor("q", {32}, 4, "x"); }), "'q' has the type 4; f32, f16, q4_0");
  refuses_gguf(with([](auto& g) {
                 g.tensor("q", {2, 33}, 2, "x");
               }),
               "have 33 numbers, and q4_0 has blocks of 32");
  refuses_gguf(with([](auto& g) {
                 g.tensor("q", {int64_t{1} << 30, int64_t{1} << 30}, 0, "x");
               }),
               "too many numbers");
  refuses_gguf(with([](auto& g) { g.tensor("q", {1, 1, 1, 1, 1}, 0, "x"); }), "has 5 extents, more than 4");
  bytes = with([](auto& g) { g.floats("w", {1}, {1}); });
  bytes.replace(bytes.find(GgufBytes::number(uint64_t{64})), 8, GgufBytes::number(uint64_t{0}));
  refuses_gguf(bytes, "overlap");
}

TEST_CASE("gguf: five thousand damaged files are read or refused, nothing else") {
  const std::string good = small_gguf().bytes();
  Rng rng(1);
  int64_t refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = good;
    for (int64_t changes = 1 + rng.below(3); changes > 0; --changes)
      bytes[static_cast<size_t>(rng.below(static_cast<int64_t>(bytes.size())))] =
          static_cast<char>(rng.below(256));
    if (rng.below(8) == 0) bytes.resize(static_cast<size_t>(rng.below(static_cast<int64_t>(bytes.size()))));
    try {
      const GgufFile file = GgufFile::parse(bytes, "m.gguf");
      for (const GgufTensor& one : file.tensors()) (void)file.values(one);
    } catch (const Error& error) {
      ++refused;
      if (error.fault() != Fault::data && error.fault() != Fault::numeric) FAIL_CHECK(error.what());
    }
  }
  CHECK(refused > 2000);
}
