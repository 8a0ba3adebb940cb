// What PyTorch's pickles say of tensors, and where the archive has their bytes.
#include "heed/train/run/torch_file.h"

#include <algorithm>

#include "heed/core/io/array.h"
#include "heed/data/formats/zip.h"

namespace heed {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t max_pickle_bytes = size_t{16} << 20;
constexpr int64_t max_rank = 8;

/// The types of storages, and what an Array calls their numbers.
constexpr struct {
  std::string_view global, dtype;
  int64_t bytes;
} storage_types[] = {{"torch.FloatStorage", "f32", 4}, {"torch.BFloat16Storage", "bf16", 2},
                     {"torch.HalfStorage", "f16", 2},  {"torch.DoubleStorage", "f64", 8},
                     {"torch.LongStorage", "i64", 8},  {"torch.IntStorage", "i32", 4},
                     {"torch.ShortStorage", "i16", 2}, {"torch.CharStorage", "i8", 1},
                     {"torch.ByteStorage", "u8", 1},   {"torch.BoolStorage", "bool", 1}};

constexpr std::string_view rebuild_tensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view rebuild_parameter = "torch._utils._rebuild_parameter";

/// All names that a pickle may have.
std::vector<std::string_view> known_globals() {
  std::vector<std::string_view> out{"collections.OrderedDict", rebuild_tensor, rebuild_parameter};
  for (const auto& type : storage_types) out.push_back(type.global);
  return out;
}

}  // namespace

TorchFile TorchFile::parse(std::string_view bytes, const std::string& name) {
  static const std::vector<std::string_view> globals = known_globals();
  constexpr std::string_view pickle_entry = "/data.pkl";
  const std::vector<StoredEntry> entries =
      stored_entries(bytes, name, {.entries = 0xFFFF, .bytes = static_cast<int64_t>(bytes.size())});
  const auto main = std::ranges::find_if(entries, [&](const StoredEntry& entry) {
    return entry.name.find('/') + pickle_entry.size() == entry.name.size() &&
           entry.name.ends_with(pickle_entry);
  });
  if (main == entries.end())
    fail(Fault::data, name, ": byte 0: this archive has no data.pkl. Give a file of torch.save.");
  if (main->bytes.size() > max_pickle_bytes)
    fail(Fault::data, name, ": byte 0: its data.pkl has ", main->bytes.size(),
         " bytes; it must have at most ", max_pickle_bytes, ". Give a checkpoint with one model.");
  const std::string folder = main->name.substr(0, main->name.find('/') + 1);
  TorchFile out;
  out.name_ = name;
  for (const StoredEntry& entry : entries) {
    if (entry.name == folder + "byteorder" && entry.bytes != "little")
      fail(Fault::data, name, ": byte 0: its byteorder is '", shown(entry.bytes),
           "', and only 'little' can be read. Save it on another machine.");
    if (entry.name.starts_with(folder + "data/"))
      out.storages_.emplace(entry.name.substr(folder.size() + 5), entry.bytes);
  }
  out.pickle_ = Pickle::parse(main->bytes, name + "/data.pkl", globals);
  return out;
}

std::pair<std::string_view, std::string_view> TorchFile::storage(const PickleValue& value) const {
  const auto part = [&](const PickleValue& of, size_t index) -> const PickleValue& {
    return pickle_.at(of.items[index]);
  };
  if (value.kind != Kind::persistent || part(value, 0).kind != Kind::tuple || part(value, 0).items.size() < 5)
    pickle_.refuse(value, "this is no storage of a tensor. Save the model again.");
  const PickleValue& id = part(value, 0);
  const PickleValue &type = part(id, 1), &key = part(id, 2), &count = part(id, 4);
  if (part(id, 0).text != "storage" || type.kind != Kind::global || key.kind != Kind::text ||
      count.kind != Kind::integer || count.integer < 0)
    pickle_.refuse(value, "this is no storage of a tensor. Save the model again.");
  const auto known = std::ranges::find(storage_types, type.text, [](const auto& one) { return one.global; });
  if (known == std::end(storage_types)) pickle_.refuse(value, text(type.text, " is no storage."));
  const auto found = storages_.find(std::string(key.text));
  if (found == storages_.end())
    pickle_.refuse(value, text("the archive has no entry data/", shown(key.text),
                               ", a storage of a tensor. Fetch or save the file again."));
  if (static_cast<uint64_t>(count.integer) != found->second.size() / static_cast<uint64_t>(known->bytes) ||
      found->second.size() % static_cast<uint64_t>(known->bytes) != 0)
    pickle_.refuse(value, text("the storage ", shown(key.text), " has ", count.integer, " numbers of ",
                               known->bytes, " bytes by the pickle, and ", found->second.size(),
                               " bytes in the archive. Fetch or save the file again."));
  return {found->second, known->dtype};
}

std::vector<int64_t> TorchFile::sizes(const PickleValue& tuple) const {
  if (tuple.kind != Kind::tuple || static_cast<int64_t>(tuple.items.size()) > max_rank)
    pickle_.refuse(tuple, text("this is no tuple of at most ", max_rank, " extents."));
  std::vector<int64_t> out;
  for (const int32_t item : tuple.items) {
    const PickleValue& one = pickle_.at(item);
    if (one.kind != Kind::integer || one.integer < 0) pickle_.refuse(one, "an extent must be 0 or more.");
    out.push_back(one.integer);
  }
  return out;
}

TensorSource TorchFile::tensor(const PickleValue& value, const std::string& tensor) const {
  const PickleValue* call = &value;
  for (int depth = 0; depth < 2; ++depth) {
    if (call->kind != Kind::call) break;
    const std::string_view callee = pickle_.at(call->items[0]).text;
    const PickleValue& arguments = pickle_.at(call->items[1]);
    if (callee == rebuild_parameter && !arguments.items.empty()) {
      call = &pickle_.at(arguments.items[0]);
      continue;
    }
    if (callee != rebuild_tensor || arguments.items.size() < 4) break;
    const auto [bytes, dtype] = storage(pickle_.at(arguments.items[0]));
    const PickleValue& offset = pickle_.at(arguments.items[1]);
    const std::vector<int64_t> shape = sizes(pickle_.at(arguments.items[2]));
    const std::vector<int64_t> strides = sizes(pickle_.at(arguments.items[3]));
    int64_t expected = 1;
    bool is_row_major = strides.size() == shape.size();
    const auto type = std::ranges::find(storage_types, dtype, [](const auto& one) { return one.dtype; });
    const int64_t needed = array_bytes(shape, type->bytes);
    if (offset.kind != Kind::integer || offset.integer < 0 || needed < 0 ||
        needed > static_cast<int64_t>(bytes.size()) ||
        offset.integer > (static_cast<int64_t>(bytes.size()) - needed) / type->bytes)
      pickle_.refuse(*call, text("tensor ", shown(tensor), " reaches beyond its storage of ", bytes.size(),
                                 " bytes. Fetch or save the file again."));
    for (size_t i = shape.size(); i-- > 0 && is_row_major;) {
      is_row_major = shape[i] <= 1 || strides[i] == expected;
      expected *= std::max<int64_t>(shape[i], 1);
    }
    if (!is_row_major)
      pickle_.refuse(
          *call, text("tensor ", shown(tensor), " is not stored row by row. Save it with .contiguous()."));
    const std::string_view held =
        bytes.substr(static_cast<size_t>(offset.integer * type->bytes), static_cast<size_t>(needed));
    return {tensor, shape, [held, dtype = dtype, file = name_, tensor] {
              return finite_floats(std::as_bytes(std::span(held)), dtype, file, tensor);
            }};
  }
  pickle_.refuse(*call, text(shown(tensor), " is no tensor. Save the model's state_dict()."));
}

void write_state_dict(PickleWriter& out, std::span<const TorchTensor> tensors,
                      std::vector<std::string_view>& storages) {
  std::map<const float*, size_t> keys;
  out.dict();
  for (const auto& [name, shape, numbers] : tensors) {
    const auto [found, is_new] = keys.emplace(numbers.data(), storages.size());
    if (is_new) storages.emplace_back(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
    out.text(name).global("torch._utils", "_rebuild_tensor_v2").begin_tuple();
    out.begin_tuple().text("storage").global("torch", "FloatStorage").text(text(found->second)).text("cpu");
    out.integer(static_cast<int64_t>(numbers.size())).end_tuple().persistent().integer(0).begin_tuple();
    for (const int64_t extent : shape) out.integer(extent);
    out.end_tuple().begin_tuple();
    auto stride = static_cast<int64_t>(numbers.size());
    for (const int64_t extent : shape) out.integer(stride /= extent);
    out.end_tuple().boolean(false);
    out.global("collections", "OrderedDict").begin_tuple().end_tuple().call();  // no hooks
    out.end_tuple().call().set();
  }
}

std::string encode_torch_file(const std::string& pickle, std::span<const std::string_view> storages) {
  std::vector<StoredEntry> entries{{"archive/data.pkl", pickle}, {"archive/byteorder", "little"}};
  for (size_t key = 0; key < storages.size(); ++key)
    entries.push_back({text("archive/data/", key), storages[key]});
  entries.push_back({"archive/version", "3\n"});
  return stored_zip(entries);
}

}  // namespace heed
