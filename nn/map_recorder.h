// MapRecorder: collects attention maps, and the tensors that the heads of a call computed with.
#pragma once

#include <vector>

#include "heed/nn/module.h"

namespace heed {

/// Collects attention maps [B, H, Tq, Tk], each with the module that made it. Recording never changes an
/// output. All recorded tensors are detached from the tape.
struct MapRecorder {
  /// The map of one call of one attention.
  struct Map {
    const Module* module;  ///< the attention that made it; name_of() gives its path
    Tensor weights;        ///< [B, H, Tq, Tk]
    Tensor drawn = {};     ///< hard attention: 1 at the sampled keys, 0 elsewhere
  };
  /// The inputs and outputs of the heads of one call.
  struct HeadCall {
    const Module* module;       ///< the attention that was called
    Tensor values = {};         ///< [B, H or fewer, Tk, dv]
    Tensor output = {};         ///< [B, H, Tq, dv]: output of each head, before the output projection
    Tensor output_grad = {};    ///< a leaf of zeros added to `output`: after backward(), grad_of() it is the
                                ///< gradient of the heads' outputs; empty under NoGrad
    Tensor query_factors = {};  ///< [B, H, Tq, d]: products with key_factors, times `scale`, are the scores
    Tensor key_factors = {};    ///< [B, H or fewer, Tk, d]; both are empty where a score is no product
    double scale = 1;           ///< factor of the products
  };
  /// Adds a map; called by attentions.
  void record(const Module& module, const Tensor& map, const Tensor& drawn = {}) {
    maps.push_back({&module, map.detach(), drawn ? drawn.detach() : Tensor()});
  }
  /// Adds to the current call the queries and keys whose products are its scores; called by attentions.
  void factors(const Module& module, const Tensor& queries, const Tensor& keys, double scale) {
    if (calls.empty() || calls.back().module != &module) return;
    calls.back().query_factors = queries.detach();
    calls.back().key_factors = keys.detach();
    calls.back().scale = scale;
  }
  std::vector<Map> maps;        ///< in the order of the forward pass
  bool keep_heads = false;      ///< fill `calls`, for attentions with heads that are called without a cache
  std::vector<HeadCall> calls;  ///< in the order of the forward pass
};

}  // namespace heed
