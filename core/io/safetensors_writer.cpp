// Writes safetensors files: the numbers first, since the header holds their check sums.
#include <algorithm>

#include "heed/core/io/files.h"
#include "heed/core/io/hash.h"
#include "heed/core/io/json.h"
#include "heed/core/io/safetensors.h"
#include "heed/core/io/safetensors_rules.h"

namespace heed {
namespace {

constexpr int64_t header_bytes_of_tensor = 200;  // estimate without the name, which is there twice

/// The type's name in files and its bytes. Fails for a type that files do not have.
std::pair<std::string_view, int64_t> type_in_files(const TensorBytes& tensor) {
  for (const auto& [theirs, ours] : safetensors_types) {
    if (tensor.dtype == theirs || tensor.dtype == ours) return {theirs, safetensors_item_bytes(ours)};
  }
  fail("safetensors: tensor '", tensor.name, "' has the unknown dtype '", tensor.dtype, "'");
}

}  // namespace

void SafeTensorsWriter::add(const TensorBytes& tensor) {
  const auto [dtype, width] = type_in_files(tensor);
  if (!is_tensor_name(tensor.name) || tensor.name == "__metadata__")
    fail("safetensors: '", shown(tensor.name), "' cannot name a tensor");
  if (static_cast<int64_t>(entries_.size()) >= max_tensors)
    fail("safetensors: more than ", max_tensors, " tensors");
  const auto size = static_cast<int64_t>(tensor.bytes.size());
  if (tensor.shape.size() > max_safetensors_rank || array_bytes(tensor.shape, width) != size)
    fail("safetensors: the ", size, " bytes of tensor '", tensor.name, "' do not fit its shape");
  const std::string_view bytes(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  if (!check_sums_.emplace(tensor.name, crc32c_hex(bytes)).second)
    fail("safetensors: two tensors are named '", tensor.name, "'");
  entries_.push_back(
      {tensor.name, std::string(dtype), tensor.shape, static_cast<int64_t>(file_.size()), size});
  file_ += bytes;
}

std::string SafeTensorsWriter::finish(std::map<std::string, std::string> metadata) && {
  for (const auto& [tensor, sum] : check_sums_) metadata[text(crc_prefix, tensor)] = sum;
  Json header = Json::object();
  if (!metadata.empty()) {
    Json lines = Json::object();
    for (const auto& [key, line] : metadata) lines.append(key, Json(line));
    header.append("__metadata__", std::move(lines));
  }
  for (const TensorEntry& entry : entries_) {
    Json::List shape(entry.shape.begin(), entry.shape.end());
    header.append(
        entry.name,
        Json::object({{"dtype", Json(entry.dtype)},
                      {"shape", Json(std::move(shape))},
                      {"data_offsets", Json(Json::List{entry.offset, entry.offset + entry.size})}}));
  }
  std::string beginning(8, '\0');
  beginning += header.dump();
  beginning.append((8 - beginning.size() % 8) % 8, ' ');  // the numbers begin at a multiple of 8
  for (size_t byte = 0; byte < 8; ++byte)
    beginning[byte] = static_cast<char>((beginning.size() - 8) >> 8 * byte & 0xff);
  file_.insert(0, beginning);
  return std::move(file_);
}

std::string encode_safetensors(std::span<const TensorBytes> tensors,
                               const std::map<std::string, std::string>& metadata) {
  std::vector<const TensorBytes*> sorted;
  int64_t bytes = 0;
  for (const TensorBytes& tensor : tensors) {
    sorted.push_back(&tensor);
    bytes += static_cast<int64_t>(tensor.bytes.size() + 2 * tensor.name.size()) + header_bytes_of_tensor;
  }
  std::sort(sorted.begin(), sorted.end(), [](const TensorBytes* a, const TensorBytes* b) {
    const int64_t width_a = type_in_files(*a).second, width_b = type_in_files(*b).second;
    return width_a != width_b ? width_a > width_b : a->name < b->name;
  });
  SafeTensorsWriter writer(bytes);
  for (const TensorBytes* tensor : sorted) writer.add(*tensor);
  return std::move(writer).finish(metadata);
}

void write_safetensors(const Path& path, std::span<const TensorBytes> tensors,
                       const std::map<std::string, std::string>& metadata) {
  io::write(path, encode_safetensors(tensors, metadata));
}

}  // namespace heed
