// Writes GGUF files.
#include <cstring>
#include <limits>

#include "heed/core/io/array.h"
#include "heed/core/io/gguf.h"

namespace heed {
namespace {

constexpr size_t gguf_alignment = 32;  // that of files without general.alignment

// Types of metadata, by their numbers in files.
constexpr uint32_t u32_type = 4, i32_type = 5, f32_type = 6, bool_type = 7, text_type = 8, list_type = 9,
                   i64_type = 11;

template <class T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void append_string(std::string& out, std::string_view text) {
  append_number(out, uint64_t{text.size()});
  out += text;
}

/// Appends the type and the items of a list of texts or of whole numbers.
void append_list(std::string& out, const std::string& key, const Json::List& items) {
  const bool texts = !items.empty() && items[0].is_text();
  append_number(out, texts ? text_type : i32_type);
  append_number(out, uint64_t{items.size()});
  for (const Json& item : items) {
    if (texts) {
      append_string(out, item.text());
      continue;
    }
    const int64_t whole = item.integer();
    if (whole != static_cast<int32_t>(whole)) fail("gguf: ", key, " has ", whole, ", which is no i32.");
    append_number(out, static_cast<int32_t>(whole));
  }
}

/// Appends the type and the value of a member.
void append_value(std::string& out, const std::string& key, const Json& value) {
  if (value.is_text()) {
    append_number(out, text_type);
    append_string(out, value.text());
  } else if (value.is_list()) {
    append_number(out, list_type);
    append_list(out, key, value.list());
  } else if (value.is_integer()) {
    const int64_t whole = value.integer();
    const bool is_short = whole >= 0 && whole <= std::numeric_limits<uint32_t>::max();
    append_number(out, is_short ? u32_type : i64_type);
    if (is_short)
      append_number(out, static_cast<uint32_t>(whole));
    else
      append_number(out, whole);
  } else if (value.is_number()) {
    append_number(out, f32_type);
    append_number(out, static_cast<float>(value.real()));
  } else {
    append_number(out, bool_type);
    out += value.boolean() ? '\1' : '\0';
  }
}

void pad(std::string& out) {
  out.append((gguf_alignment - out.size() % gguf_alignment) % gguf_alignment, '\0');
}

}  // namespace

std::string encode_gguf(const Json& metadata, std::span<const GgufFloats> tensors) {
  std::string out = "GGUF";
  append_number(out, uint32_t{3});
  append_number(out, uint64_t{tensors.size()});
  append_number(out, uint64_t{metadata.members().size()});
  for (const auto& [key, value] : metadata.members()) {
    append_string(out, key);
    append_value(out, key, value);
  }
  uint64_t offset = 0;
  for (const GgufFloats& one : tensors) {
    const auto bytes = static_cast<int64_t>(one.numbers.size_bytes());
    if (one.shape.empty() || one.shape.size() > 4 || array_bytes(one.shape, sizeof(float)) != bytes)
      fail("gguf: ", one.name, " has ", one.numbers.size(), " numbers, which do not fit its ",
           one.shape.size(), " extents. A tensor has 1 to 4.");
    append_string(out, one.name);
    append_number(out, static_cast<uint32_t>(one.shape.size()));
    for (size_t i = one.shape.size(); i-- > 0;) append_number(out, static_cast<uint64_t>(one.shape[i]));
    append_number(out, uint32_t{0});  // f32
    append_number(out, offset);
    offset += (one.numbers.size_bytes() + gguf_alignment - 1) / gguf_alignment * gguf_alignment;
  }
  pad(out);
  out.reserve(out.size() + offset);
  for (const GgufFloats& one : tensors) {
    out.append(reinterpret_cast<const char*>(one.numbers.data()), one.numbers.size_bytes());
    pad(out);
  }
  return out;
}

}  // namespace heed
