// tests attention/layer_table.h: what is declared of layer types against what counting finds
#include "heed/attention/layer_table.h"

#include <cmath>
#include <sstream>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/tests/catch.h"
#include "heed/tests/columns.h"
#include "heed/tests/source_paths.h"

namespace heed {
namespace {

const LayerType& type_named(const std::string& name) {
  for (const LayerType& type : layer_types()) {
    if (type.name == name) return type;
  }
  FAIL(name + " is no row");
  return layer_types().front();
}

}  // namespace

TEST_CASE("layers: the layers that connect all positions are those of the formulas") {
  for (const int64_t n : {17, 64}) {
    CAPTURE(n);
    CHECK(layers_to_connect(type_named("self-attention"), n) == 1);
    CHECK(layers_to_connect(type_named("recurrent, GRU"), n) == 1);
    CHECK(layers_to_connect(type_named("recurrent, LSTM"), n) == 1);
    CHECK(layers_to_connect(type_named("restricted self-attention"), n) == (n - 1 + 7) / 8);
    CHECK(layers_to_connect(type_named("convolution, gated"), n) == n - 1);  // one neighbour a layer
    int64_t dilated = 0;  // 1 + 3 + 9 + ... neighbours, anew from 1 where a step would leave the sequence
    for (int64_t reach = 0, step = 1; reach < n - 1; ++dilated) {
      reach += step;
      step = 3 * step < n ? 3 * step : 1;
    }
    CHECK(layers_to_connect(type_named("convolution, dilated"), n) == dilated);
  }
  CHECK(layers_to_connect(type_named("window and global tokens"), 64) == 2);
  CHECK_THROWS_WITH(layers_to_connect(type_named("self-attention"), 100000),
                    containing("a length of 100000"));
}

TEST_CASE("layers: what never connects is told apart from what takes long") {
  LayerType apart{.name = "none", .make = [](int64_t, int64_t, int64_t) -> LayerFunction {
                    return [](const Tensor& x) { return tanh(x); };
                  }};
  CHECK(layers_to_connect(apart, 8) == 0);
}

TEST_CASE(
    "layers: a recurrent layer's chain grows with the length, that of attention and convolutions does not") {
  for (const LayerType& type : layer_types()) {
    if (type.sequential == "log n") continue;  // compared with its page below
    CAPTURE(type.name);
    const auto low = static_cast<double>(longest_chain(type, 32)),
               high = static_cast<double>(longest_chain(type, 64));
    CHECK(high / low == Approx(type.sequential == "n" ? 2 : 1).epsilon(0.1));
  }
}

TEST_CASE("layers: declared exponents are those counted", "[slow]") {
  const std::vector<LayerCounts> counts = count_layers();
  REQUIRE(counts.size() == layer_types().size());
  for (size_t i = 0; i < counts.size(); ++i) {
    const LayerType& type = layer_types()[i];
    CAPTURE(type.name);
    CHECK(counts[i].time.length == Approx(type.time.length).margin(0.14));
    CHECK(counts[i].time.width == Approx(type.time.width).margin(0.14));
    if (type.path == "1") CHECK((counts[i].layers[0] == 1 && counts[i].layers[1] == 1));
    // at 64 the summaries of `fixed` are whole blocks, and one layer is enough
    const int64_t least = type.attention == "fixed" ? 1 : 2;
    if (type.path == "2") CHECK((counts[i].layers[0] == least && counts[i].layers[1] == 2));
    if (type.path == "n" || type.path.starts_with("n /")) CHECK(counts[i].path == Approx(1).margin(0.05));
  }
}

TEST_CASE("layers: the page is fresh") {
  INFO("Regenerate: ./heed list layers --markdown > docs/reference/layers.md");
  CHECK(layers_markdown({}) == io::read(Path(source_folder()) / "docs/reference/layers.md"));
}

TEST_CASE("layers: text and JSON have every row, with counts where there are some") {
  const Columns columns("500");
  const std::string words = layers_text({});
  for (const LayerType& type : layer_types()) CHECK_THAT(words, containing("\n" + type.name + " "));
  CHECK_THAT(words, !containing("counted"));
  const Json plain = parse_json(layers_json({}), "layers");
  REQUIRE(plain.list().size() == layer_types().size());
  CHECK(plain.list()[1].at("complexity").text() == "n d^2");
  CHECK(plain.list()[1].find("counted") == nullptr);
  std::vector<LayerCounts> made(layer_types().size());
  made[0] = {.time = {2, 1}, .chain = {5, 5}, .layers = {1, 1}, .sequential = 0, .path = 0};
  made[1].path = NAN;
  CHECK_THAT(layers_text(made),
             containing("n^2.00 d^1.00") && containing("n^0.00, 1 layer ") && containing("not in n layers"));
  CHECK(parse_json(layers_json(made), "layers").list()[0].at("counted").at("chain").list()[1].integer() == 5);
}

}  // namespace heed
