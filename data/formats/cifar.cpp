// Reads CIFAR-10.
#include "heed/data/formats/cifar.h"

#include <algorithm>

#include "heed/core/io/files.h"
#include "heed/core/io/gzip.h"
#include "heed/data/formats/expected_files.h"

namespace heed {
namespace {

constexpr size_t area = 32 * 32;  // pixels of an image
constexpr int64_t max_cifar_bytes = int64_t{1} << 30;

}  // namespace

Sequences parse_cifar(std::string_view bytes, bool colour, std::string_view name) {
  const size_t record_bytes = 1 + area * (colour ? 3 : 1);
  if (bytes.empty() || bytes.size() % record_bytes != 0) {
    fail(Fault::data, name, ": ", bytes.size(), " bytes are not whole records of ", record_bytes,
         " (a label, then ", colour ? "three planes" : "grey pixels", " of 32 x 32): the one from byte ",
         bytes.size() / record_bytes * record_bytes, " on is cut short. Fetch it again.");
  }
  Sequences out;
  std::string pixels(area, '\0');
  for (size_t offset = 0; offset < bytes.size(); offset += record_bytes) {
    const auto label = static_cast<uint8_t>(bytes[offset]);
    if (label > 9) {
      fail(Fault::data, name, ": the label at byte ", offset, " is ", static_cast<int>(label),
           "; labels are 0 .. 9. Is it a binary file of CIFAR-10?");
    }
    const std::string_view pixels_of_record = bytes.substr(offset + 1, record_bytes - 1);
    if (colour) {
      const auto plane = [&](size_t which, size_t i) {
        return static_cast<float>(static_cast<uint8_t>(pixels_of_record[which * area + i]));
      };
      for (size_t i = 0; i < area; ++i) {
        const float grey = 0.2989f * plane(0, i) + 0.5870f * plane(1, i) + 0.1140f * plane(2, i);
        pixels[i] = static_cast<char>(static_cast<uint8_t>(grey * 255.5f / 255.0f));
      }
      out.add(pixels);
    } else {
      out.add(pixels_of_record);
    }
    out.labels.push_back(label);
  }
  return out;
}

Sequences read_cifar(const Path& folder, bool test) {
  expect_files(folder, {.what = "CIFAR-10",
                        .names = {},
                        .bring = "Give that of its binary files, or make some like them: heed data generate "
                                 "image --out FOLDER."});
  std::vector<Path> colour, grey;
  for (const Path& file : io::list(folder)) {
    std::string name = file.string();
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    if (!name.ends_with(".bin")) continue;
    if (name.starts_with(test ? "test_batch" : "data_batch_")) colour.push_back(file);
    if (test ? name == "test.bin" : name.starts_with("train")) grey.push_back(file);
  }
  const bool is_colour = !colour.empty();
  const std::vector<Path>& files = is_colour ? colour : grey;
  if (files.empty()) {
    fail(Fault::data, folder, ": neither ",
         test ? "test_batch.bin nor test.bin" : "data_batch_1.bin nor train.bin",
         " (or with .gz) is there. Give the folder of CIFAR-10's binary files, or make some like them: heed "
         "data generate image --out FOLDER.");
  }
  Sequences out;
  for (const Path& file : files) {
    const Path path = folder / file;
    std::string bytes = io::read(path, max_cifar_bytes);
    if (is_gzip(bytes)) bytes = inflate(bytes, max_cifar_bytes, path.string());
    const Sequences part = parse_cifar(bytes, is_colour, path.string());
    for (int64_t i = 0; i < part.count(); ++i) out.add(part.at(i));
    out.labels.insert(out.labels.end(), part.labels.begin(), part.labels.end());
  }
  return out;
}

void write_cifar(const Path& folder, const Sequences& train, const Sequences& test) {
  io::make_directories(folder);
  for (const auto& [name, set] : {std::pair{"train.bin", &train}, {"test.bin", &test}}) {
    std::string out;
    for (int64_t i = 0; i < set->count(); ++i) {
      out += static_cast<char>(set->labels[static_cast<size_t>(i)]);
      out += set->at(i);
    }
    io::write(folder / name, out);
  }
}

}  // namespace heed
