// .npy: a magic word, a Python dictionary with three keys, and the numbers.
#include "heed/core/io/npy.h"

#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "heed/core/io/files.h"

namespace heed {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr size_t max_header_bytes = 64 << 10;
constexpr size_t max_extents = 32;

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;
};

/// Reads the one kind of dictionary that NumPy writes: {'descr': '<f4', 'fortran_order': False, 'shape': (2,
/// 3), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Header parse() {
    std::optional<std::string> descr;
    std::optional<bool> fortran;
    std::optional<std::vector<int64_t>> shape;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        descr = quoted();
      } else if (key == "fortran_order" && !fortran) {
        fortran = truth();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        refuse(text("an unexpected key '", shown(key), "'"));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (at_ != text_.size()) refuse("text after the dictionary");
    if (!descr || !fortran || !shape) refuse("one of the keys descr, fortran_order, shape missing");
    return {.descr = *descr, .fortran = *fortran, .shape = *shape};
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    fail(Fault::data, name_, " is not a .npy file that can be read: its header has ", what, " (near byte ",
         static_cast<int64_t>(at_), " of the header).");
  }

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool accept(char wanted) {
    skip();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) refuse(text("no '", wanted, "' where one is needed"));
  }

  std::string quoted() {
    skip();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) {
      refuse("something else where a quoted word is needed (a structured type, perhaps)");
    }
    const char quote = text_[at_++];
    const size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) refuse("a word whose quote does not end");
    std::string word(text_.substr(at_, end - at_));
    for (const char letter : word) {
      if (letter < ' ' || letter > '~') refuse("bytes that are not printable");
    }
    at_ = end + 1;
    return word;
  }

  /// Reads True or False.
  bool truth() {
    skip();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    refuse("neither True nor False as fortran_order");
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> extents;
    expect('(');
    while (!accept(')')) {
      skip();
      int64_t extent = -1;
      const char* first = text_.data() + at_;
      const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) refuse("a shape that is not made of whole numbers in range");
      at_ += static_cast<size_t>(end - first);
      extents.push_back(extent);
      if (extents.size() > max_extents)
        refuse(text("more than ", static_cast<int64_t>(max_extents), " extents"));
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  std::string_view text_;
  std::string_view name_;
  size_t at_ = 0;
};

/// NumPy's name of a type, and that of an Array.
struct TypeCode {
  std::string_view npy;
  std::string_view dtype;
};
constexpr std::array<TypeCode, 7> codes = {{{"<f4", "f32"},
                                            {"<f8", "f64"},
                                            {"<i4", "i32"},
                                            {"<i8", "i64"},
                                            {"|u1", "u8"},
                                            {"<u1", "u8"},
                                            {"|b1", "u8"}}};

std::string dtype_of(const std::string& descr, std::string_view name) {
  for (const TypeCode& code : codes) {
    if (code.npy == descr) return std::string(code.dtype);
  }
  fail(Fault::data, name, " holds numbers of the type '", shown(descr),
       "' (in its header, from byte 10 on); <f4, <f8, <i4, <i8, |u1 and |b1 can be read. Convert it with "
       "numpy's astype.");
}

/// The bytes of a column-major array in row-major order.
std::vector<std::byte> row_major(std::string_view column_major, const std::vector<int64_t>& shape,
                                 size_t item) {
  std::vector<std::byte> out(column_major.size());
  std::vector<int64_t> index(shape.size(), 0);
  std::vector<size_t> stride(shape.size(), item);
  for (size_t axis = 1; axis < shape.size(); ++axis) {
    stride[axis] = stride[axis - 1] * static_cast<size_t>(shape[axis - 1]);
  }
  size_t source = 0;
  for (size_t target = 0; target < out.size(); target += item) {
    std::memcpy(out.data() + target, column_major.data() + source, item);
    for (size_t axis = shape.size(); axis-- > 0;) {
      source += stride[axis];
      if (++index[axis] < shape[axis]) break;
      source -= stride[axis] * static_cast<size_t>(shape[axis]);
      index[axis] = 0;
    }
  }
  return out;
}

}  // namespace

Array decode_npy(std::string_view bytes, std::string_view name) {
  if (bytes.substr(0, magic.size()) != magic || bytes.size() < 10) {
    fail(Fault::data, name, " is not a .npy file: it does not begin with \\x93NUMPY (at byte 0).");
  }
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<unsigned char>(bytes[at])); };
  const size_t version = byte(6);
  if (version < 1 || version > 3) {
    fail(Fault::data, name, " is a .npy file of format ", static_cast<int64_t>(version),
         " (at byte 6); 1 to 3 can be read.");
  }
  const size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start)
    fail(Fault::data, name, " is cut short in its header (at byte ", bytes.size(), ").");
  const size_t length =
      version == 1 ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > max_header_bytes || length > bytes.size() - start) {
    fail(Fault::data, name, " claims a header of ", static_cast<int64_t>(length),
         " bytes (at byte 8); it has ", static_cast<int64_t>(bytes.size()),
         " in all, and at most 65536 are accepted.");
  }
  Header header = HeaderParser(bytes.substr(start, length), name).parse();
  Array array{.dtype = dtype_of(header.descr, name), .shape = std::move(header.shape), .bytes = {}};
  const std::string_view rest = bytes.substr(start + length);
  const int64_t item = array_item_bytes(array.dtype);
  const int64_t needed = array_bytes(array.shape, item);
  if (needed != static_cast<int64_t>(rest.size())) {
    fail(Fault::data, name, " does not hold what its header says: ",
         needed < 0 ? std::string("the extents are out of range")
                    : text("it needs ", needed, " bytes of numbers"),
         ", and has ", static_cast<int64_t>(rest.size()), " from byte ", static_cast<int64_t>(start + length),
         " on.");
  }
  if (header.fortran && array.shape.size() > 1) {
    array.bytes = row_major(rest, array.shape, static_cast<size_t>(item));
  } else {
    const auto whole = std::as_bytes(std::span(rest));
    array.bytes.assign(whole.begin(), whole.end());
  }
  return array;
}

std::string encode_npy(const Array& array) { return encode_npy(array.dtype, array.shape, array.bytes); }

std::string encode_npy(std::string_view dtype, const std::vector<int64_t>& shape,
                       std::span<const std::byte> bytes) {
  std::string_view descr;
  for (const TypeCode& code : codes) {
    if (descr.empty() && code.dtype == dtype) descr = code.npy;
  }
  if (descr.empty()) fail("npy: a .npy file cannot hold ", dtype, ". Convert to f32 first.");
  const int64_t needed = array_bytes(shape, array_item_bytes(dtype));
  if (needed != static_cast<int64_t>(bytes.size()))
    fail("npy: the extents ask for ", needed, " bytes, the array has ", static_cast<int64_t>(bytes.size()));
  std::string header = text("{'descr': '", descr, "', 'fortran_order': False, 'shape': (");
  for (size_t axis = 0; axis < shape.size(); ++axis)
    header += text(axis > 0 ? " " : "", shape[axis], axis + 1 < shape.size() ? "," : "");
  header += shape.size() == 1 ? ",), }" : "), }";
  const size_t preamble = magic.size() + 4;
  header.append(63 - (preamble + header.size()) % 64, ' ');  // the numbers begin at a multiple of 64
  header += '\n';
  std::string out;
  out.reserve(preamble + 64 + header.size() + bytes.size());
  out += magic;
  out += '\x01';
  out += '\x00';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return out;
}

Array read_npy(const Path& path) { return decode_npy(io::read_input(path), path.string()); }

void write_npy(const Path& path, const Array& array) { io::write(path, encode_npy(array)); }

}  // namespace heed
