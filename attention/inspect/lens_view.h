// LensView: what each layer of a model would predict, as plain numbers and tokens.
#pragma once

#include <string>
#include <vector>

namespace heed {

/// A token that a layer would predict at a position.
struct LensGuess {
  std::string token;       ///< as the tokenizer spells it
  double probability = 0;  ///< under the softmax of this layer's logits
};

/// What one layer would predict at one position.
struct LensCell {
  std::vector<LensGuess> best{};  ///< the most probable tokens in descending order
  double final_probability = 0;   ///< probability, in this layer, of the token that the last layer predicts
  double entropy = 0;             ///< entropy of the layer's prediction, in nats
};

/// The logit lens of one sequence: final norm and output layer applied to each layer's output. The last
/// layer is the model itself.
struct LensView {
  std::string caption{};                       ///< the input, and what the model makes of it
  std::vector<std::string> layers{};           ///< "embedding", "layer 0", ...: the lowest first
  std::vector<std::string> tokens{};           ///< token that the model reads at each position
  std::vector<std::string> next{};             ///< the token that follows in the text; empty where none does
  std::vector<std::vector<LensCell>> cells{};  ///< [layers][positions]
};

/// Throws a data Error that names the sizes when layers, tokens and cells disagree or a cell is empty.
void check(const LensView& lens);

}  // namespace heed
