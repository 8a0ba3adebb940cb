// heed attend: one attention on tensors of the caller's own, with its map and all gradients.
#include <algorithm>
#include <cstring>
#include <limits>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/autograd/ops.h"
#include "heed/core/io/files.h"
#include "heed/core/io/npy.h"
#include "heed/train/commands/attend_modifiers.h"
#include "heed/train/commands/command_declarations.h"

namespace heed {
namespace {

std::string extents(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

Shape shape_of(const Array& array, const std::string& option) {
  if (array.shape.size() > 6) fail("--", option, ": shape ", extents(array.shape), " has more than 6 axes.");
  Shape shape;
  for (const int64_t extent : array.shape) {
    if (extent < 1) fail("--", option, ": shape ", extents(array.shape), " has an axis without elements.");
    shape.push_back(extent);
  }
  return shape;
}

Array read_option(const ParsedArguments& arguments, const std::string& option) {
  if (!arguments.has(option))
    fail("heed attend needs --", option, " FILE.npy. heed attend --help says more.");
  return read_npy(arguments.get(option));
}

/// Converts an array of floats to a tensor of the dtype of the computation.
Tensor floats(const Array& array, const std::string& option, DType dtype) {
  const Shape shape = shape_of(array, option);
  for (const DType given : {DType::f32, DType::f64}) {
    if (array.dtype != to_string(given)) continue;
    const Tensor values(shape, given, Device::cpu);
    std::memcpy(values.raw(), array.bytes.data(), array.bytes.size());
    return cast(values, dtype);
  }
  fail("--", option, ": it holds ", array.dtype, "; float32 or float64 is needed.");
}

/// Reads an array of whole numbers: lengths or a table of indices.
std::vector<int32_t> integers(const Array& array, const std::string& option) {
  std::vector<int32_t> out;
  if (array.dtype == "i32") return array.values<int32_t>();
  if (array.dtype != "i64") fail("--", option, ": it holds ", array.dtype, "; int32 or int64 is needed.");
  for (const int64_t value : array.values<int64_t>()) {
    if (value < INT32_MIN || value > INT32_MAX) fail("--", option, ": ", value, " does not fit 32 bits.");
    out.push_back(static_cast<int32_t>(value));
  }
  return out;
}

struct Inputs {
  Tensor q, k, v;  // [B, H, N, D], [B, H, M, D], [B, H, M, Dv]
};

/// Reads --q, --k and --v. Fails where their shapes do not fit together.
Inputs read_inputs(const ParsedArguments& arguments) {
  const Array q = read_option(arguments, "q"), k = read_option(arguments, "k"),
              v = read_option(arguments, "v");
  const std::string word = arguments.word("dtype", {"f32", "f64"}, q.dtype == "f64" ? "f64" : "f32");
  const DType dtype = word == "f64" ? DType::f64 : DType::f32;
  const Inputs in{floats(q, "q", dtype), floats(k, "k", dtype), floats(v, "v", dtype)};
  const auto check = [](const Tensor& x, const char* name, const char* axes) {
    if (x.rank() != 4) fail("--", name, ": shape ", x.shape(), ". It must be ", axes, ".");
  };
  check(in.q, "q", "[B, H, N, D]");
  check(in.k, "k", "[B, H, M, D]");
  check(in.v, "v", "[B, H, M, Dv]");
  const Shape &q_shape = in.q.shape(), &k_shape = in.k.shape(), &v_shape = in.v.shape();
  if (q_shape[0] != k_shape[0] || q_shape[1] % k_shape[1] != 0 || q_shape[3] != k_shape[3]) {
    fail("attend: queries ", q_shape, " and keys ", k_shape,
         " do not fit. They share batch, heads and head width: [B, H, N, D] and [B, H, M, D]. Heads of keys ",
         "may be fewer, if they divide H.");
  }
  if (k_shape[0] != v_shape[0] || k_shape[1] != v_shape[1] || k_shape[2] != v_shape[2])
    fail("attend: keys ", k_shape, " and values ", v_shape,
         " do not fit. Each key has one value: [B, H, M, D] and [B, H, M, Dv].");
  return in;
}

/// Reads --key-lengths, [B].
Tensor key_lengths(const ParsedArguments& arguments, const Inputs& in) {
  const Array array = read_option(arguments, "key-lengths");
  const std::vector<int32_t> lengths = integers(array, "key-lengths");
  if (array.shape != std::vector<int64_t>{in.q.extent(0)})
    fail("--key-lengths: shape ", extents(array.shape), ". It must be one length a batch row: [",
         in.q.extent(0), "].");
  for (const int32_t length : lengths) {
    if (length < 0 || length > in.k.extent(2))
      fail("--key-lengths: ", length, " is not legal; there are ", in.k.extent(2), " keys.");
  }
  return Tensor::of<int32_t>(lengths, Shape{in.q.extent(0)});
}

/// The pattern as a bias on the scores, of shape [B or 1, H or 1, N, M]: 0 where query n may attend to key m,
/// -inf elsewhere.
Tensor pattern(const ParsedArguments& arguments, const Inputs& in) {
  const Array array = read_option(arguments, "pattern");
  if (array.dtype != "u8") fail("--pattern: it holds ", array.dtype, "; booleans or uint8 are needed.");
  const Shape whole{in.q.extent(0), in.q.extent(1), in.q.extent(2), in.k.extent(2)};
  std::vector<int64_t> shape = array.shape;
  while (shape.size() < 4) shape.insert(shape.begin(), 1);
  bool fits = shape.size() == 4 && shape[2] == whole[2] && shape[3] == whole[3];
  for (int64_t axis = 0; fits && axis < 2; ++axis)
    fits = shape[static_cast<size_t>(axis)] == 1 || shape[static_cast<size_t>(axis)] == whole[axis];
  if (!fits) {
    fail("--pattern: shape ", extents(array.shape),
         " does not fit. It must be [N, M], [H, N, M] or [B, H, N, M] with B, H, N, M = ", whole, ".");
  }
  const Tensor bias(Shape{shape[0], shape[1], shape[2], shape[3]}, DType::f32, Device::cpu);
  std::transform(array.bytes.begin(), array.bytes.end(), bias.data<float>(), [](std::byte allowed) {
    return allowed != std::byte{0} ? 0.0F : -std::numeric_limits<float>::infinity();
  });
  return cast(bias, in.q.dtype());
}

/// True for the projections of a layer's input or output, those of longformer's global tokens included:
/// attend is given what they would compute.
bool is_projection(const std::string& name) {
  const std::string whose = name.substr(0, name.find('.'));
  return whose != name && (whose == "query" || whose == "key" || whose == "value" || whose == "output" ||
                           whose == "query_global" || whose == "key_global" || whose == "value_global");
}

/// The attention's own parameters and fixed draws by name; --param may fill those that are empty.
std::vector<Named> own_tensors(Attention& attention) {
  std::vector<Named> out;
  visit_optional_tensors(attention, [&](const std::string& name, Tensor& tensor) {
    if (!is_projection(name)) out.push_back({name, &tensor});
  });
  return out;
}

/// Puts the values of --param into the attention's own tensors. Fails for an unknown name or another shape.
void set_parameters(const ParsedArguments& arguments, const std::string& spec, const std::vector<Named>& own,
                    DType dtype) {
  const auto given = arguments.options.find("param");
  if (given == arguments.options.end()) return;
  std::vector<std::string> known;
  for (const Named& one : own) known.push_back(one.name);
  for (const std::string& one : given->second) {
    const size_t equals = one.find('=');
    if (equals == std::string::npos) fail("--param ", one, ": write --param NAME=FILE.npy.");
    const std::string name = one.substr(0, equals), option = "param " + name;
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      if (known.empty())
        fail("--", option, ": attention '", spec,
             "' has no parameters besides its projections, which attend leaves out.");
      fail("--", option, ": attention '", spec, "' has no such parameter.", suggestion(name, known));
    }
    Tensor& place = *own[static_cast<size_t>(found - known.begin())].tensor;
    const Array array = read_npy(one.substr(equals + 1));
    const bool whole = place ? !is_float(place.dtype()) : array.dtype.starts_with("i");
    const Tensor value = whole ? Tensor::of<int32_t>(integers(array, option), shape_of(array, option))
                               : floats(array, option, dtype);
    if (place && place.shape() != value.shape())
      fail("--", option, ": shape ", value.shape(), ". It must be ", place.shape(), ".");
    place = place && !place.node() ? value : whole ? value : leaf(value);
  }
}

/// Writes tensors as .npy files into a folder, and prints their names and shapes.
class NpyWriter {
 public:
  explicit NpyWriter(Path out) : out_(std::move(out)) { io::make_directories(out_); }
  void operator()(const std::string& name, const Tensor& x) const {
    std::vector<int64_t> shape(x.shape().begin(), x.shape().end());
    const Tensor whole = contiguous(x.detach()).to(Device::cpu);
    const Path path = out_ / (name + ".npy");
    io::write(path,
              encode_npy(to_string(whole.dtype()), shape,
                         {static_cast<const std::byte*>(whole.raw()), static_cast<size_t>(whole.bytes())}));
    io::printf("%-24s %s\n", (name + ".npy").c_str(), text(x.shape()).c_str());
  }

 private:
  Path out_;
};

/// The gradient of a tensor; zeros where backward() gave none.
Tensor gradient(const Tensor& x) {
  const Tensor found = grad_of(x);
  return found ? found : Tensor::zeros(x.shape(), x.dtype());
}

/// Casts to an attention that takes queries, keys and values; fails for one that computes them itself.
MultiHeadAttention& multi_head(Attention& attention, const Variant& variant) {
  auto* out = dynamic_cast<MultiHeadAttention*>(&attention);
  if (out != nullptr) return *out;
  fail("attend: attention '", variant.traits.name,
       "' makes its queries, keys and values itself, step by step from the layer's input, so it has no "
       "form on tensors that are given.");
}

/// Makes the attention of a spec for inputs of these shapes. Fails where it cannot take them.
std::unique_ptr<Attention> make(const std::string& spec, const Variant& variant, const Inputs& in,
                                bool causal, const Modifiers& modifiers, Rng& rng) {
  const int64_t heads = in.q.extent(1), queries = in.q.extent(2), keys = in.k.extent(2);
  const AttentionConfig config{.d_model = heads * in.q.extent(3),
                               .heads = heads,
                               .kv_heads = in.k.extent(1) == heads ? 0 : in.k.extent(1),
                               .causal = causal || !variant.traits.bidirectional,
                               .cross = !causal && variant.traits.bidirectional && queries != keys,
                               .max_length = std::max(queries, keys),
                               .modifiers = modifiers};
  if (!causal && !variant.traits.bidirectional) {
    multi_head(*make_attention(variant, parse_spec(spec), config, rng), variant);  // --causal would not help
    fail("attend: attention '", variant.traits.name, "' looks back only. Add --causal.");
  }
  if (causal && !variant.traits.causal)
    fail("attend: attention '", variant.traits.name,
         "' cannot look back only: its map mixes later keys in. Leave --causal out.");
  if (causal && queries > keys)
    fail("attend: ", queries, " causal queries for ", keys,
         " keys. The last query stands at the last key, so there can be no more queries than keys.");
  if (queries != keys && !variant.traits.cross)
    fail("attend: ", queries, " queries for ", keys, " keys. Attention '", variant.traits.name,
         "' needs as many queries as keys.");
  return make_attention(variant, parse_spec(spec), config, rng);
}

/// Reads the gradient of the output, and checks its shape before anything is computed; empty when not given.
Tensor read_grad_out(const ParsedArguments& arguments, const Inputs& in) {
  if (!arguments.has("grad-out")) return {};
  const Tensor grad_out = floats(read_npy(arguments.get("grad-out")), "grad-out", in.q.dtype());
  const Shape out_shape{in.q.extent(0), in.q.extent(1), in.q.extent(2), in.v.extent(3)};
  if (grad_out.shape() != out_shape)
    fail("--grad-out: shape ", grad_out.shape(), ". It must be the output's, ", out_shape, ".");
  return grad_out;
}

/// The output of the attention, [B, H, N, Dv].
Tensor attend_on_heads(MultiHeadAttention& attention, const Inputs& in, const AttentionInput& input) {
  try {
    const Mask& mask = input.mask;
    const int64_t earlier_keys = in.k.extent(2) - in.q.extent(2);
    const bool queries_are_keys = mask.is_causal() || earlier_keys == 0;  // the last positions of the keys
    const Heads heads{queries_are_keys ? mask.finite_padding(in.q, earlier_keys) : in.q,
                      mask.finite_padding(in.k, 0), mask.finite_padding(in.v, 0)};
    return attention.on_heads(attention.normalize_and_rotate(heads, input), input);
  } catch (const Error& error) {
    if (!input.mask.bias() || error.fault() != Fault::usage) throw;
    fail(error.what(), " (--pattern is passed as a bias on the scores, 0 or -inf for each.)");
  }
}

int run_attend(const ParsedArguments& arguments) {
  apply_machine(arguments);
  const std::string spec = arguments.positional[0];
  full_spec(spec);
  const Variant& variant = variant_named(parse_spec(spec).name);
  if (!arguments.has("out")) fail("heed attend needs --out DIR, the folder that takes the files.");
  const Modifiers modifiers = read_modifiers(arguments);
  const Inputs read = read_inputs(arguments);
  const DType dtype = read.q.dtype();
  Rng rng(static_cast<uint64_t>(arguments.integer("seed", 1, INT64_MIN, INT64_MAX)));
  const bool causal = arguments.has("causal");
  const auto made = make(spec, variant, read, causal, modifiers, rng);
  MultiHeadAttention& attention = multi_head(*made, variant);
  convert(attention, dtype);
  const std::vector<Named> own = own_tensors(attention);
  set_parameters(arguments, spec, own, dtype);

  const Inputs in{leaf(read.q), leaf(read.k), leaf(read.v)};
  MapRecorder recorder;
  AuxiliaryLosses losses;
  AttentionInput input;
  if (causal) input.mask = Mask::causal();
  if (arguments.has("key-lengths")) {
    if (!variant.traits.padding)
      fail("attend: attention '", variant.traits.name, "' knows no padding. Leave --key-lengths out.");
    input.mask = input.mask & Mask::lengths(key_lengths(arguments, read));
  }
  if (arguments.has("pattern")) input.mask = input.mask.with(pattern(arguments, read));
  if (!arguments.has("no-map") && variant.traits.map != MapKind::none) input.context.recorder = &recorder;
  if (arguments.has("sample")) {
    input.context.rng = &rng;
    input.context.losses = &losses;
  }
  const Tensor grad_out = read_grad_out(arguments, in);
  const Tensor out = attend_on_heads(attention, in, input);

  const NpyWriter write(arguments.get("out"));
  write("out", out);
  for (size_t i = 0; i < recorder.maps.size(); ++i)
    write(i == 0 ? "map" : "map-" + std::to_string(i), recorder.maps[i].weights);
  for (const Named& one : own) {
    if (*one.tensor) write(one.name, *one.tensor);
  }
  if (!grad_out) return 0;
  backward(out, grad_out);
  write("dq", gradient(in.q));
  write("dk", gradient(in.k));
  write("dv", gradient(in.v));
  for (const Named& one : own) {
    if (*one.tensor && one.tensor->node()) write("d" + one.name, gradient(*one.tensor));
  }
  return 0;
}

std::string what_it_writes() {
  return "Files are NumPy's .npy, float32 or float64, in C or Fortran order: --q [B, H, N, D], --k [B, H, M, "
         "D], "
         "--v [B, H, M, Dv]. DIR gets out.npy, map.npy, one NAME.npy for each parameter and draw of the "
         "attention itself, and with --grad-out dq.npy, dk.npy, dv.npy and a dNAME.npy for each parameter. "
         "Projections and their names (query, key, value, output) belong to a layer and are left out. With "
         "--causal, query i of N sees the keys j <= i + M - N. heed list attention names every attention.\n";
}

}  // namespace

Command command::attend() {
  return {.name = "attend",
          .about = "run one attention on your own tensors: output, map and gradients",
          .positional = "SPEC",
          .positional_help = "an attention: name, or name:key=value,...",
          .min_positional = 1,
          .max_positional = 1,
          .options = with_machine_options(with_modifier_options(
              {{"q", "FILE", "queries [B, H, N, D]"},
               {"k", "FILE", "keys [B, H, M, D]"},
               {"v", "FILE", "values [B, H, M, Dv]"},
               {"causal", "", "causal: no query attends to a later key"},
               {"key-lengths", "FILE", "integers [B]: keys at or past a length are padding"},
               {"pattern", "FILE",
                "booleans [N, M], [H, N, M] or [B, H, N, M]: which query may attend to which key"},
               {"param", "NAME=FILE", "a parameter or fixed draw of the attention; may be repeated"},
               {"grad-out", "FILE", "gradient of the output [B, H, N, Dv]: gradients are written too"},
               {"dtype", "NAME", "f32 or f64: of the computation (default: that of the queries)"},
               {"seed", "N", "seed of parameters and draws that are not given (default: 1)"},
               {"sample", "", "draw as in training, where the attention is a random one"},
               {"no-map", "", "write no map, which has N x M numbers a head"},
               {"out", "DIR", "where the files go"}})),
          .run = run_attend,
          .more = what_it_writes};
}

}  // namespace heed
