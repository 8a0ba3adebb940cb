// The graph of a model against the model, and exchanged edges against edits of its forward pass.
#include "heed/attention/inspect/path_patching.h"

#include "heed/attention/base/multi_head_attention.h"
#include "heed/tests/attention/inspect/contrast_models.h"
#include "heed/tests/catch.h"
#include "heed/tests/nn/sequences.h"

using namespace heed;
using heed::test::apart;

namespace {

constexpr double tolerance = 1e-11;

/// Edits one block's attention and the stream before a block by functions; those not set change nothing.
struct EditOfBlock final : HeadEditor {
  using Change = std::function<Tensor(const Tensor&)>;
  const Module* attention = nullptr;  ///< the attention that is edited
  Change keys{}, values{}, heads{};   ///< applied to its keys, values and outputs
  int64_t layer = -1;                 ///< the block before which the stream is edited
  Change stream{};                    ///< applied to this stream

  Tensor edit_keys(const Module& module, const Tensor& x) override {
    return &module == attention && keys ? keys(x) : x;
  }
  Tensor edit_values(const Module& module, const Tensor& x) override {
    return &module == attention && values ? values(x) : x;
  }
  Tensor edit_heads(const Module& module, const Tensor& x, const AttentionInput&) override {
    return &module == attention && heads ? heads(x) : x;
  }
  Tensor edit_stream(const Module&, int64_t number, const Tensor& x) override {
    return number == layer && stream ? stream(x) : x;
  }
};

/// x [1, H, T, d] with the rows of one head from `other`.
Tensor with_head(const Tensor& x, const Tensor& other, int64_t head) {
  std::vector<Tensor> each;
  for (int64_t i = 0; i < x.extent(1); ++i) each.push_back(slice(i == head ? other : x, 1, i, i + 1));
  return concat(each, 1);
}

/// A projection [1, H, T, d] of a stream that the attention of a block reads.
Tensor projected(const Block& block, const Linear& projection, const Tensor& stream, int64_t heads) {
  const NoGrad no_grad;
  const Tensor y = projection(block.attention_norm(stream));
  return transpose(reshape(y, Shape{1, y.extent(1), heads, -1}), 1, 2);
}

MultiHeadAttention& attention_of(const DecoderOnly& model, size_t layer) {
  return dynamic_cast<MultiHeadAttention&>(*model.decoder.blocks[layer]->attention);
}

/// The number of the receiver with this name.
size_t receiver_named(const ResidualGraph& graph, const std::string& name) {
  for (size_t i = 0; i < graph.receivers().size(); ++i)
    if (graph.receivers()[i].name() == name) return i;
  FAIL("no receiver " << name);
  return 0;
}

/// The numbers of all senders before a receiver.
std::vector<size_t> all_senders(const ResidualGraph& graph, size_t receiver) {
  std::vector<size_t> out;
  for (size_t i = 0; i < graph.num_senders(receiver); ++i) out.push_back(i);
  return out;
}

}  // namespace

TEST_CASE("residual graph: it computes what the model does, and senders add up to the stream") {
  TransformerConfig grouped = contrast_config(4), bare = contrast_config(), convolved = contrast_config();
  grouped.kv_heads = 2;
  grouped.head_dim = 6;
  grouped.position = PositionKind::rope;
  bare.d_ff = 0;
  convolved.short_convolution = 2;
  const std::vector<std::pair<std::string, TransformerConfig>> all{
      {"softmax", contrast_config()}, {"softmax", grouped},          {"softmax", bare},
      {"softmax", convolved},         {"linear", contrast_config()}, {"differential", contrast_config()},
      {"gla", contrast_config()},     {"delta", convolved}};
  for (const auto& [spec, config] : all) {
    CAPTURE(spec, config.d_ff, config.kv_heads, config.short_convolution);
    const auto model = contrast_model(spec, config);
    const ResidualGraph graph(*model);
    const GraphTrace trace = graph.trace(contrast_pair().clean);
    const Tensor ids = Tensor::of<int32_t>(contrast_pair().clean, Shape{1, 5});
    CHECK(apart(trace.hidden, model->hidden(ids, {})) < tolerance);
    REQUIRE(trace.outputs.size() == graph.senders().size());
    for (size_t receiver = 0; receiver < graph.receivers().size(); ++receiver) {
      Tensor sum = trace.outputs[0];
      for (size_t sender = 1; sender < graph.num_senders(receiver); ++sender)
        sum = sum + trace.outputs[sender];
      const auto branch = static_cast<size_t>(graph.receivers()[receiver].branch());
      CHECK(apart(trace.streams[branch], sum) < tolerance);
    }
    size_t gates = 0;
    for (const EdgeReceiver& receiver : graph.receivers()) gates += receiver.kind == ReceiverKind::gates;
    CHECK(gates == (spec == "gla" || spec == "delta" ? 2 : 0));
  }
}

TEST_CASE("residual graph: every attention that looks back has one, or is refused") {
  std::string refused;
  for (const Variant& variant : variants()) {
    if (!variant.traits.causal) continue;
    CAPTURE(variant.traits.name);
    const auto model = contrast_model(variant.traits.name);
    try {
      CHECK_NOTHROW(edited_difference(*model, contrast_pair()));
      const ResidualGraph graph(*model);
      const PathPatching patching(graph, contrast_pair());
      const size_t logits = graph.receivers().size() - 1;
      CHECK(patching.effect(logits, all_senders(graph, logits)) ==
            Approx(patching.corrupted() - patching.clean()).margin(tolerance));
    } catch (const Error& error) {
      CHECK_THAT(error.what(), Catch::Contains("edges of a model: ") && Catch::Contains("Take a model"));
      refused += std::string(variant.traits.name) + " ";
    }
  }
  CHECK(refused == "location synthesizer lstmn structured reformer routing mla ");
}

TEST_CASE("residual graph: a head writes what the stream loses without it") {
  TransformerConfig config = contrast_config();
  config.d_ff = 0;
  const auto model = contrast_model("softmax", config);
  const ResidualGraph graph(*model);
  const GraphTrace trace = graph.trace(contrast_pair().clean);
  for (int64_t head = 0; head < config.heads; ++head) {
    Tensor without;
    EditOfBlock edit;
    edit.attention = &attention_of(*model, 0);
    edit.heads = [&](const Tensor& x) { return with_head(x, x * 0.0, head); };
    edit.layer = 1;
    edit.stream = [&](const Tensor& x) { return without = x; };
    edited_difference(*model, contrast_pair(), &edit);
    CHECK(apart(trace.streams[2] - without, trace.outputs[static_cast<size_t>(head) + 1]) < tolerance);
  }
}

TEST_CASE("path patching: all edges to an input exchange the input") {
  const auto model = contrast_model("softmax");
  const ResidualGraph graph(*model);
  const ContrastPair pair = contrast_pair();
  const PathPatching patching(graph, pair);
  const double clean = edited_difference(*model, pair);
  ContrastPair other = pair;
  other.clean = pair.corrupted;
  CHECK(patching.clean() == Approx(clean).margin(tolerance));
  CHECK(patching.corrupted() == Approx(edited_difference(*model, other)).margin(tolerance));
  const auto effect = [&](const std::string& name) {
    const size_t receiver = receiver_named(graph, name);
    return patching.effect(receiver, all_senders(graph, receiver));
  };
  const auto by_edit = [&](EditOfBlock edit) { return edited_difference(*model, pair, &edit) - clean; };
  CHECK(effect("logits") == Approx(patching.corrupted() - clean).margin(tolerance));

  const GraphTrace of_clean = graph.trace(pair.clean), of_corrupted = graph.trace(pair.corrupted);
  for (const size_t layer : {size_t{0}, size_t{1}}) {
    const Block& block = *model->decoder.blocks[layer];
    const MultiHeadAttention& attention = attention_of(*model, layer);
    const Tensor &stream = of_clean.streams[2 * layer], &exchanged = of_corrupted.streams[2 * layer];
    for (int64_t head = 0; head < 3; ++head) {
      CAPTURE(layer, head);
      const std::string name = text("head ", layer, ".", head, " ");
      const auto exchange = [&](const Linear& projection) {
        return [&, head](const Tensor& x) {
          return with_head(x, projected(block, projection, exchanged, 3), head);
        };
      };
      EditOfBlock edit;
      edit.attention = &attention;
      edit.keys = exchange(attention.key);
      CHECK(effect(name + "key") == Approx(by_edit(edit)).margin(tolerance));
      edit.keys = {};
      edit.values = exchange(attention.value);
      CHECK(effect(name + "value") == Approx(by_edit(edit)).margin(tolerance));
      edit.values = {};
      edit.heads = [&](const Tensor& x) {
        const Tensor map = softmax_map(projected(block, attention.query, exchanged, 3),
                                       projected(block, attention.key, stream, 3), 0.5, Mask::causal(), 0);
        return with_head(x, matmul(map, projected(block, attention.value, stream, 3)), head);
      };
      CHECK(effect(name + "query") == Approx(by_edit(edit)).margin(tolerance));
    }
    const Tensor &before = of_clean.streams[2 * layer + 1], &read = of_corrupted.streams[2 * layer + 1];
    EditOfBlock edit;
    edit.layer = static_cast<int64_t>(layer) + 1;
    edit.stream = [&](const Tensor&) {
      return before + (*block.feed_forward)((*block.forward_norm)(read), nullptr);
    };
    CHECK(effect(text("feed-forward ", layer)) == Approx(by_edit(edit)).margin(tolerance));
  }
}

TEST_CASE("path patching: one edge carries one sender's output to one input") {
  TransformerConfig config = contrast_config(4);
  config.kv_heads = 2;
  config.head_dim = 3;
  const auto model = contrast_model("softmax", config);
  const ResidualGraph graph(*model);
  const ContrastPair pair = contrast_pair();
  const PathPatching patching(graph, pair);
  const GraphTrace clean = graph.trace(pair.clean), corrupted = graph.trace(pair.corrupted);
  const MultiHeadAttention& attention = attention_of(*model, 1);
  const std::vector<double> effects = patching.effects();
  const std::vector<GraphEdge> edges = graph.edges();
  REQUIRE(effects.size() == edges.size());
  size_t seen = 0;
  for (size_t i = 0; i < edges.size(); ++i) {
    CHECK(effects[i] == Approx(patching.effect(edges[i].receiver, {edges[i].sender})).margin(tolerance));
    if (graph.receivers()[edges[i].receiver].name() != "heads 1.2-3 key") continue;
    const size_t sender = edges[i].sender;
    const Tensor read = clean.streams[2] + (corrupted.outputs[sender] - clean.outputs[sender]);
    EditOfBlock edit;
    edit.attention = &attention;
    edit.keys = [&](const Tensor& x) {
      return with_head(x, projected(*model->decoder.blocks[1], attention.key, read, 2), 1);
    };
    const double expected = edited_difference(*model, pair, &edit) - patching.clean();
    CHECK(std::abs(expected) > 1e-6);
    CHECK(effects[i] == Approx(expected).margin(tolerance));
    ++seen;
  }
  CHECK(seen == 6);  // embedding, four heads, a feed-forward network
}

TEST_CASE("path patching: what cannot be done is refused") {
  TransformerConfig post = contrast_config();
  post.norm = NormPlace::post;
  const auto of_post = contrast_model("softmax", post), of_mla = contrast_model("mla"),
             of_reformer = contrast_model("reformer"), model = contrast_model("softmax");
  CHECK_THROWS_WITH(ResidualGraph(*of_post), Catch::Contains("--norm pre"));
  CHECK_THROWS_WITH(ResidualGraph(*of_mla), Catch::Contains("attention of block 0"));
  CHECK_THROWS_WITH(ResidualGraph(*of_reformer), Catch::Contains("such as softmax"));
  const ResidualGraph graph(*model);
  const auto refused = [&](const std::function<void(ContrastPair&)>& spoil, const std::string& words) {
    ContrastPair pair = contrast_pair();
    spoil(pair);
    CHECK_THROWS_WITH(PathPatching(graph, pair), Catch::Contains(words));
  };
  refused([](ContrastPair& pair) { pair.corrupted.pop_back(); }, "5 tokens and the corrupted one 4");
  refused([](ContrastPair& pair) { pair.clean = pair.corrupted = {1, 1, 1, 1, 1, 1, 1}; }, "reads 1 to 6");
  refused([](ContrastPair& pair) { pair.position = 5; }, "0 to 4");
  refused([](ContrastPair& pair) { pair.wrong = pair.right; }, "two different tokens");
  refused([](ContrastPair& pair) { pair.clean[2] = 9; }, "token 9. Tokens of this model are 0 to 8");
  const PathPatching patching(graph, contrast_pair());
  CHECK_THROWS_WITH(patching.effect(0, {1}), Catch::Contains("not before head 0.0 query"));
  CHECK_THROWS_WITH(patching.effect(999, {0}), Catch::Contains("receiver 999"));
}
