// CIFAR-10: grey and colour records.
#include "heed/data/formats/cifar.h"

#include "heed/tests/data/scratch.h"
#include "heed/tests/deflate.h"

using namespace heed;

namespace {

std::string record(int label, int red, int green, int blue) {
  return std::string(1, static_cast<char>(label)) + std::string(1024, static_cast<char>(red)) +
         std::string(1024, static_cast<char>(green)) + std::string(1024, static_cast<char>(blue));
}

std::string grey(int label, int value) {
  return std::string(1, static_cast<char>(label)) + std::string(1024, static_cast<char>(value));
}

int first_pixel(const Sequences& set, int64_t i) { return static_cast<uint8_t>(set.at(i)[0]); }

}  // namespace

TEST_CASE("cifar: colour becomes grey by luma weights") {
  const Sequences set =
      parse_cifar(record(3, 255, 255, 255) + record(9, 255, 0, 0) + record(0, 0, 100, 0), true, "b");
  CHECK(set.labels == std::vector<uint8_t>{3, 9, 0});
  CHECK(first_pixel(set, 0) == 255);
  CHECK(first_pixel(set, 1) == 76);  // 76.2195 * 1.00196
  CHECK(first_pixel(set, 2) == 58);  // 58.7 * 1.00196
  CHECK(set.at(2).size() == 1024);
}

TEST_CASE("cifar: a folder in colour or in grey, plain or gzip, in the order of the names") {
  const Scratch colour, plain;
  colour.file("data_batch_2.bin", record(2, 0, 0, 0));
  colour.file("data_batch_1.bin", record(1, 0, 0, 0));
  colour.file("test_batch.bin", record(5, 0, 0, 0));
  CHECK(read_cifar(colour.path(), false).labels == std::vector<uint8_t>{1, 2});
  CHECK(read_cifar(colour.path(), true).labels == std::vector<uint8_t>{5});
  plain.file("train-1of2.bin.gz", deflate(grey(4, 7)));
  plain.file("train-2of2.bin.gz", deflate(grey(6, 8)));
  plain.file("test.bin.gz", deflate(grey(7, 9)));
  const Sequences train = read_cifar(plain.path(), false);
  CHECK(train.labels == std::vector<uint8_t>{4, 6});
  CHECK(first_pixel(train, 1) == 8);
  CHECK(read_cifar(plain.path(), true).labels == std::vector<uint8_t>{7});
  const Scratch out;
  write_cifar(out.path(), train, train);
  CHECK(read_cifar(out.path(), true).sha256() == train.sha256());
}

TEST_CASE("cifar: files that are none are refused with the byte") {
  const Scratch scratch;
  const auto refused = [&](const std::string& bytes) {
    return refusal(Fault::data, [&] { parse_cifar(bytes, false, "b"); });
  };
  CHECK_THAT(refused(grey(1, 2) + "x"), containing("byte 1025"));
  CHECK_THAT(refused(grey(1, 2) + grey(10, 2)), containing("label at byte 1025 is 10"));
  CHECK_THAT(refused(""), containing("0 bytes"));
  CHECK_THAT(refusal(Fault::data, [&] { read_cifar(scratch.path(), false); }),
             containing("data_batch_1.bin"));
}

TEST_CASE("cifar: the real grey images have their mean and classes") {
  const Path folder = real_data("cifar10-gray");
  if (folder.empty()) return;
  const Sequences test = read_cifar(folder, true);
  REQUIRE(test.count() == 10000);
  CHECK(test.labels[13] == 3);
  const Sequences train = read_cifar(folder, false);
  REQUIRE(train.count() == 50000);
  double sum = 0;
  for (const char pixel : train.bytes) sum += static_cast<uint8_t>(pixel);
  CHECK(sum / static_cast<double>(train.bytes.size()) / 255 == Approx(0.48).margin(0.005));
}
