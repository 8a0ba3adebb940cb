// .npy files: NumPy's own bytes, round trips, hostile headers.
#include "heed/core/io/npy.h"

#include "heed/core/io/files.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

/// A file of format 1.0 with this dictionary and these bytes of numbers.
std::string npy(const std::string& header, const std::string& numbers) {
  std::string out = std::string("\x93NUMPY\x01", 7) + '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  return out + header + numbers;
}

std::string letters(const std::vector<std::byte>& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

template <class T>
std::string raw(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T));
}

void refuses(const std::string& bytes, const std::string& reason) {
  CHECK(fault_of([&] { decode_npy(bytes, "a.npy"); }) == Fault::data);
  CHECK_THROWS_WITH(decode_npy(bytes, "a.npy"), containing("a.npy") && containing(reason));
}

}  // namespace

TEST_CASE("npy: the header is the one NumPy writes") {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::string bytes = encode_npy(Array::of<float>({2, 3}, values));
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  header.resize(117, ' ');
  header += '\n';
  CHECK(bytes == npy(header, raw({1.f, 2.f, 3.f, 4.f, 5.f, 6.f})));
  CHECK(encode_npy(Array::of<float>({6}, values)).find("'shape': (6,), }") != std::string::npos);
  CHECK(encode_npy(Array::of<float>({}, std::span(values).first(1))).find("'shape': (), }") !=
        std::string::npos);
}

TEST_CASE("npy: each type and rank comes back") {
  Scratch scratch;
  const auto round = [&](const Array& array) {
    write_npy(scratch / "a.npy", array);
    const Array back = read_npy(scratch / "a.npy");
    CHECK(back.dtype == array.dtype);
    CHECK(back.shape == array.shape);
    CHECK(back.bytes == array.bytes);
  };
  round(Array::of<float>({2, 2}, std::vector<float>{1, -2, 3.5f, 0}));
  round(Array::of<double>({3}, std::vector<double>{1, 2e300, -0.0}));
  round(Array::of<int32_t>({1, 2, 1}, std::vector<int32_t>{-1, 1 << 30}));
  round(Array::of<int64_t>({}, std::vector<int64_t>{int64_t{1} << 60}));
  round(Array::of<uint8_t>({0, 5}, std::vector<uint8_t>{}));
  round(Array::of<uint8_t>({4}, std::vector<uint8_t>{0, 1, 2, 255}));
  CHECK_THROWS_AS(encode_npy(Array::of<uint16_t>({1}, std::vector<uint16_t>{1})), Error);
}

TEST_CASE("npy: column-major files are read in row-major order") {
  // [[1, 2, 3], [4, 5, 6]] lies as 1 4 2 5 3 6.
  const Array array = decode_npy(
      npy("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }\n", raw<int32_t>({1, 4, 2, 5, 3, 6})),
      "a");
  CHECK(array.values<int32_t>() == std::vector<int32_t>{1, 2, 3, 4, 5, 6});
  // Extents 2, 3, 2: the entry (i, j, k) holds 100 i + 10 j + k.
  std::vector<uint8_t> columns;
  std::vector<uint8_t> rows;
  for (int k = 0; k < 2; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) columns.push_back(static_cast<uint8_t>(100 * i + 10 * j + k));
    }
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 2; ++k) rows.push_back(static_cast<uint8_t>(100 * i + 10 * j + k));
    }
  }
  const Array cube = decode_npy(npy("{'fortran_order': True, 'shape': (2, 3, 2), 'descr': '|u1'}",
                                    std::string(columns.begin(), columns.end())),
                                "a");
  CHECK(cube.values<uint8_t>() == rows);
}

TEST_CASE("npy: what cannot be trusted is refused") {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  CHECK(letters(decode_npy(npy(good, std::string(8, 'x')), "a").bytes) == std::string(8, 'x'));
  refuses("", "does not begin");
  refuses("\x93NUMPZ\x01", "does not begin");
  refuses(npy(good, std::string(7, 'x')), "needs 8 bytes");
  refuses(npy(good, std::string(9, 'x')), "needs 8 bytes");
  const auto with = [](const std::string& descr, const std::string& order, const std::string& shape) {
    return npy("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + "}", "");
  };
  refuses(with("'<f4'", "False", "(4611686018427387904, 4)"), "out of range");
  refuses(with("'<f4'", "False", "(0, 9223372036854775807, 9223372036854775807)"), "out of range");
  refuses(with("'<f4'", "False", "(99999999999999999999,)"), "whole numbers in range");
  refuses(with("'<f4'", "False", "(-1,)"), "whole numbers in range");
  refuses(with("'<f4'", "False", "(2"), "no ')'");
  refuses(with("'<f4'", "maybe", "(2,)"), "neither True nor False");
  refuses(with("'>f4'", "False", "(2,)"), "'>f4'");
  refuses(with("'|O'", "False", "(2,)"), "'|O'");
  refuses(with("[('a', '<f4')]", "False", "(2,)"), "quoted word");
  refuses(npy("{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': ()}", "1234"),
          "unexpected key");
  refuses(npy("{'descr': '<f4', 'shape': ()}", "1234"), "missing");
  refuses(npy(good + "x", std::string(8, 'x')), "after the dictionary");
  refuses(npy(std::string(40, ' '), ""), "no '{'");
  std::string many = "(";
  for (int i = 0; i < 40; ++i) many += "1,";
  refuses(with("'|u1'", "False", many + ")"), "more than 32");
  std::string other = npy(good, std::string(8, 'x'));
  other[6] = 9;
  refuses(other, "format 9");
  other[6] = 2;  // its header would have four bytes of length
  refuses(other, "claims a header");
}

TEST_CASE("npy: damage never goes further than an Error") {
  const std::string bytes = encode_npy(Array::of<float>({2, 2}, std::vector<float>{1, 2, 3, 4}));
  for (size_t length = 0; length < bytes.size(); ++length) {
    CHECK(fault_of([&] { decode_npy(std::string_view(bytes).substr(0, length), "a"); }) == Fault::data);
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      try {
        const Array array = decode_npy(flipped, "a");
        CHECK(array.bytes.size() == 16);
      } catch (const Error& error) {
        CHECK(error.fault() == Fault::data);
      }
    }
  }
}
