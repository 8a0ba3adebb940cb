// Safetensors: round trips, exact bytes, and every kind of malformed file.
#include "heed/core/io/safetensors.h"

#include <algorithm>

#include "heed/core/io/files.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

std::string file(const std::string& header, const std::string& numbers) {
  std::string out;
  for (size_t shift = 0; shift < 64; shift += 8) out += static_cast<char>(header.size() >> shift & 0xff);
  return out + header + numbers;
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& begin, const std::string& end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" + begin +
         "," + end + "]}";
}

void refuses(const std::string& bytes, const std::string& reason) {
  INFO(reason);
  CHECK(fault_of([&] { SafeTensors::parse(bytes, "m.safetensors"); }) == Fault::data);
  CHECK_THROWS_WITH(SafeTensors::parse(bytes, "m.safetensors"),
                    containing("m.safetensors") && containing("at byte ") && containing(reason));
}

struct Model {
  std::vector<float> weight = {1, 2, 3, 4, 5, 6};
  std::vector<double> wide = {0.1, -0.2};
  std::vector<uint8_t> flags = {1, 0, 1};
  std::vector<int64_t> step = {400};

  std::vector<TensorBytes> tensors() const {
    return {{"layer.weight", "f32", {2, 3}, std::as_bytes(std::span(weight))},
            {"flags", "U8", {3}, std::as_bytes(std::span(flags))},
            {"wide", "F64", {2, 1}, std::as_bytes(std::span(wide))},
            {"step", "i64", {}, std::as_bytes(std::span(step))},
            {"nothing", "BF16", {0, 7}, {}}};
  }
};

}  // namespace

TEST_CASE("safetensors: tensors and metadata come back") {
  Scratch scratch;
  const Model model;
  write_safetensors(scratch / "m.safetensors", model.tensors(),
                    {{"format", "heed"}, {"note", "\"quoted\" \n"}});
  const SafeTensors read = SafeTensors::read(scratch / "m.safetensors");
  CHECK(read.entries().size() == 5);
  CHECK(read.array("layer.weight").values<float>() == model.weight);
  CHECK(read.array("layer.weight").shape == std::vector<int64_t>{2, 3});
  CHECK(read.array("wide").values<double>() == model.wide);
  CHECK(read.array("flags").values<uint8_t>() == model.flags);
  CHECK(read.array("step").values<int64_t>() == model.step);
  CHECK(read.array("step").shape.empty());
  CHECK(read.array("nothing").dtype == "bf16");
  CHECK(read.bytes(read.at("nothing")).empty());
  CHECK(read.metadata().at("note") == "\"quoted\" \n");
  CHECK(read.damaged() == nullptr);
  CHECK(read.find("other") == nullptr);
  CHECK_THROWS_WITH(read.at("other"), containing("m.safetensors has no tensor 'other'"));
}

TEST_CASE("safetensors: the bytes do not depend on the order, and numbers lie aligned") {
  const Model model;
  std::vector<TensorBytes> tensors = model.tensors();
  const std::string bytes = encode_safetensors(tensors);
  std::reverse(tensors.begin(), tensors.end());
  CHECK(encode_safetensors(tensors) == bytes);
  const SafeTensors read = SafeTensors::parse(bytes, "m");
  for (const TensorEntry& entry : read.entries()) CHECK(entry.offset % array_item_bytes(entry.dtype) == 0);
  CHECK(read.entries().front().offset % 8 == 0);
}

TEST_CASE("safetensors: a file of another writer is read") {
  const std::string header = "{" + tensor("b", "F32", "[1]", "8", "12") + "," +
                             tensor("a", "I32", "[2]", "0", "8") +
                             ",\"__metadata__\":{\"format\":\"pt\"}}   ";
  const SafeTensors read = SafeTensors::parse(file(header, "abcdefghijkl"), "m");
  CHECK(read.entries().front().name == "a");
  CHECK(read.array("b").bytes.size() == 4);
  CHECK(read.metadata().at("format") == "pt");
  CHECK(SafeTensors::parse(file("{}", ""), "m").entries().empty());
}

TEST_CASE("safetensors: numbers of 16 bits are read as f32") {
  // 1, -2, the largest, the smallest and zero of f16; 1 and -2.5 of bf16.
  const std::vector<uint16_t> f16{0x3c00, 0xc000, 0x7bff, 0x0001, 0x8000}, bf16{0x3f80, 0xc020},
      bad{0x3c00, 0x7c00};
  const std::vector<TensorBytes> tensors{{"h", "F16", {5}, std::as_bytes(std::span(f16))},
                                         {"b", "bf16", {2}, std::as_bytes(std::span(bf16))},
                                         {"bad", "f16", {2}, std::as_bytes(std::span(bad))},
                                         {"i", "U8", {1}, std::as_bytes(std::span("x", 1))}};
  const SafeTensors read = SafeTensors::parse(encode_safetensors(tensors), "m");
  CHECK(read.at("h").dtype == "f16");
  CHECK(read.floats(read.at("h")) == std::vector<float>{1, -2, 65504, 0x1p-24F, 0});
  CHECK(read.floats(read.at("b")) == std::vector<float>{1, -2.5});
  CHECK_NOTHROW(read.check_finite(read.at("h")));
  CHECK(fault_of([&] { read.check_finite(read.at("bad")); }) == Fault::numeric);
  CHECK_THROWS_WITH(read.floats(read.at("i")), containing("i is u8. Weights can be f32, bf16 or f16"));
}

TEST_CASE("safetensors: a file that is open on the disk says what it says in memory") {
  Scratch scratch;
  std::vector<float> large((size_t{5} << 18) + 3);  // 5 MiB and 12 bytes: several pieces
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<float>(i % 1000) - 0.5F;
  const std::vector<uint16_t> half{0x3c00, 0xc000};
  const Model model;
  std::vector<TensorBytes> tensors = model.tensors();
  tensors.push_back({"large", "F32", {static_cast<int64_t>(large.size())}, std::as_bytes(std::span(large))});
  tensors.push_back({"half", "F16", {2}, std::as_bytes(std::span(half))});
  const Path path = scratch / "m.safetensors";
  write_safetensors(path, tensors, {{"format", "heed"}});
  const SafeTensors whole = SafeTensors::read(path), opened = SafeTensors::open(path);
  CHECK(opened.name() == path.string());
  CHECK(opened.metadata() == whole.metadata());
  REQUIRE(opened.entries().size() == whole.entries().size());
  for (const TensorEntry& entry : whole.entries()) {
    CAPTURE(entry.name);
    CHECK(opened.at(entry.name).offset == entry.offset);
    CHECK((opened.array(entry.name).bytes == whole.array(entry.name).bytes));
    CHECK_NOTHROW(opened.check_finite(entry));
  }
  CHECK((opened.floats(opened.at("large")) == large));
  CHECK(opened.floats(opened.at("half")) == std::vector<float>{1, -2});
  CHECK(opened.damaged() == nullptr);
  CHECK(fault_of([&] { (void)opened.bytes(opened.at("flags")); }) == Fault::internal);

  const TensorEntry entry = whole.at("large");
  std::string bytes = io::read(path);
  bytes.replace(static_cast<size_t>(entry.offset) + 4 * 1'000'000, 4, "\x00\x00\x80\x7f", 4);
  io::write(scratch / "bad.safetensors", bytes);
  const SafeTensors bad = SafeTensors::open(scratch / "bad.safetensors");
  CHECK_THROWS_WITH(bad.check_finite(bad.at("large")), containing("its number [1000000] is NaN or infinite"));
  REQUIRE(bad.damaged() != nullptr);
  CHECK(bad.damaged()->name == "large");
  std::filesystem::resize_file(path, 100'000);  // another program cuts it
  CHECK(fault_of([&] { opened.floats(opened.at("large")); }) == Fault::data);
  CHECK_THROWS_WITH(opened.floats(opened.at("large")), containing("and was longer when it was opened"));
  for (const size_t size : {0, 7, 8, 40}) {
    std::filesystem::resize_file(scratch / "bad.safetensors", size);
    CAPTURE(size);
    CHECK(fault_of([&] { SafeTensors::open(scratch / "bad.safetensors"); }) == Fault::data);
  }
}

TEST_CASE("safetensors: what is added one by one becomes the same file, if no type becomes wider") {
  const Model model;
  std::vector<TensorBytes> tensors = model.tensors();
  SafeTensorsWriter writer(0);
  for (const char* name : {"step", "wide", "layer.weight", "nothing", "flags"})
    writer.add(*std::ranges::find(tensors, name, &TensorBytes::name));
  CHECK(std::move(writer).finish({{"format", "heed"}}) == encode_safetensors(tensors, {{"format", "heed"}}));
}

TEST_CASE("safetensors: a damaged tensor is named") {
  const std::string bytes = encode_safetensors(Model().tensors());
  const SafeTensors whole = SafeTensors::parse(bytes, "m");
  for (const TensorEntry& entry : whole.entries()) {
    for (int64_t at = entry.offset; at < entry.offset + entry.size; ++at) {
      std::string flipped = bytes;
      flipped[static_cast<size_t>(at)] = static_cast<char>(flipped[static_cast<size_t>(at)] ^ 0x10);
      const SafeTensors read = SafeTensors::parse(flipped, "m");
      REQUIRE(read.damaged() != nullptr);
      CHECK(read.damaged()->name == entry.name);
    }
  }
}

TEST_CASE("safetensors: headers that lie are refused") {
  refuses("", "too few");
  refuses("1234567", "too few");
  refuses(std::string(8, '\xff'), "more than the 100000000 allowed");
  refuses(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8), "more than the 100000000 allowed");
  refuses(std::string("\x00\xe1\xf5\x05\0\0\0\0", 8), "but only 0 follow");
  refuses(file("{}", "x"), "belong to no tensor");
  refuses(file("", ""), "does not begin with '{'");
  refuses(file(" {}", ""), "does not begin with '{'");
  refuses(file("[]", ""), "does not begin with '{'");
  refuses(file("{", ""), "JSON");
  refuses(file("{\"a\": \"\xff\"}", ""), "JSON");
  refuses(file("{\"a\":1}", ""), "not described by an object");
  refuses(file("{\"a\":{}}", ""), "has no dtype");
  refuses(file("{\"__metadata__\":1}", ""), "__metadata__ is not an object");
  refuses(file("{\"__metadata__\":{\"a\":1}}", ""), "is not text");
  refuses(file("{\"__metadata__\":{\"a\":{\"b\":[]}}}", ""), "JSON");
  refuses(
      file("{" + tensor("a", "U8", "[1]", "0", "1") + "," + tensor("a", "U8", "[1]", "1", "2") + "}", "xy"),
      "the member 'a' twice");
  refuses(file("{" + tensor("a", "F8_E5M2", "[1]", "0", "1") + "}", "x"), "the dtype 'F8_E5M2'");
  refuses(file("{" + tensor("", "U8", "[1]", "0", "1") + "}", "x"), "is empty");
  refuses(file("{" + tensor(std::string(257, 'n'), "U8", "[1]", "0", "1") + "}", "x"), "longer than 256");
  refuses(file("{" + tensor("a\\u0007", "U8", "[1]", "0", "1") + "}", "x"), "not printable");
  refuses(file("{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"more\":1}}", "x"),
          "members that are not");
  refuses(file("{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", "x"), "is not a list");
  refuses(file("{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1,2]}}", "x"),
          "not a begin and an end");
}

TEST_CASE("safetensors: spans that lie are refused") {
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& begin,
                      const std::string& end, const std::string& numbers) {
    return file("{" + tensor("a", dtype, shape, begin, end) + "}", numbers);
  };
  refuses(one("F32", "[1]", "0", "8", "12345678"), "needs 4 bytes by its shape and has 8");
  refuses(one("F32", "[3]", "0", "8", "12345678"), "needs 12 bytes");
  refuses(one("U8", "[4]", "4", "0", "1234"), "not a begin and an end");
  refuses(one("U8", "[8]", "0", "8", "1234"), "ends at byte 8 of the data, which has 4");
  refuses(one("U8", "[2]", "2", "4", "1234"), "leaves a hole");
  refuses(one("U8", "[2]", "0", "2", "1234"), "its last 2 bytes belong to no tensor");
  refuses(one("U8", "[-1]", "0", "4", "1234"), "not a whole number in range");
  refuses(one("U8", "[4.0]", "0", "4", "1234"), "not a whole number in range");
  refuses(one("U8", "[4]", "0", "18446744073709551620", "1234"), "not a whole number in range");
  refuses(one("U8", "[4]", "-4", "0", "1234"), "not a whole number in range");
  // 2^62 * 4 and 2^32 * 2^32 are 0 in 64 bits; with a zero beside them too.
  refuses(one("F32", "[4611686018427387904]", "0", "0", ""), "multiply out of range");
  refuses(one("U8", "[4294967296,4294967296]", "0", "0", ""), "multiply out of range");
  refuses(one("F64", "[0,4611686018427387904,4611686018427387904]", "0", "0", ""), "multiply out of range");
  refuses(one("U8", "[1,1,1,1,1,1,1,1,1]", "0", "1", "x"), "more than 8");
  refuses(
      file("{" + tensor("a", "U8", "[3]", "0", "3") + "," + tensor("b", "U8", "[2]", "2", "4") + "}", "1234"),
      "overlaps");
  refuses(
      file("{" + tensor("a", "U8", "[4]", "0", "4") + "," + tensor("b", "U8", "[4]", "0", "4") + "}", "1234"),
      "overlaps");
}

TEST_CASE("safetensors: more tensors than there may be are refused") {
  std::string header = "{";
  for (int i = 0; i < 32769; ++i)
    header += (i > 0 ? "," : "") + tensor("t" + std::to_string(i), "U8", "[0]", "0", "0");
  refuses(file(header + "}", ""), "more than 32768 tensors");
  std::string values = "{\"__metadata__\":{\"a\":[";
  for (int i = 0; i < 1'200'000; ++i) values += "1,";
  refuses(file(values + "1]}}", ""), "more than");
}

TEST_CASE("safetensors: flips and truncations never go further than an Error") {
  const std::string bytes = encode_safetensors(Model().tensors(), {{"format", "heed"}});
  for (size_t length = 0; length < bytes.size(); ++length) {
    CHECK(fault_of([&] { SafeTensors::parse(bytes.substr(0, length), "m"); }) == Fault::data);
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      try {
        const SafeTensors read = SafeTensors::parse(flipped, "m");
        int64_t covered = read.entries().empty() ? 0 : read.entries().front().offset;
        for (const TensorEntry& entry : read.entries())
          covered += static_cast<int64_t>(read.bytes(entry).size());
        CHECK(covered == static_cast<int64_t>(flipped.size()));
      } catch (const Error& error) {
        CHECK(error.fault() == Fault::data);
      }
    }
  }
}

TEST_CASE("safetensors: the writer refuses what the reader would") {
  const std::vector<uint8_t> one = {1};
  const auto bytes = std::as_bytes(std::span(one));
  const auto write = [](std::vector<TensorBytes> tensors) { return encode_safetensors(tensors); };
  CHECK_THROWS_WITH(write({{"a", "u8", {1}, bytes}, {"a", "u8", {1}, bytes}}),
                    containing("two tensors are named 'a'"));
  CHECK_THROWS_WITH(write({{"a", "u8", {2}, bytes}}), containing("do not fit its shape"));
  CHECK_THROWS_WITH(write({{"a", "f8", {1}, bytes}}), containing("unknown dtype 'f8'"));
  CHECK_THROWS_WITH(write({{"", "u8", {1}, bytes}}), containing("cannot name"));
  CHECK_THROWS_WITH(write({{"__metadata__", "u8", {1}, bytes}}), containing("cannot name"));
}
