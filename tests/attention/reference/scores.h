// Scores of recurrent models in plain loops: dot, general, location, additive, cosine with addressing,
// windows around a predicted position, kernels.
#pragma once

#include "heed/tests/attention/reference/heads.h"

namespace heed::reference {

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double softplus(double x) { return std::log1p(std::exp(x)); }

/// Softmax over allowed keys; a row without keys is zero.
inline Matrix softmax_of(const Head& head, Matrix scores) {
  return normalised(exponentials(scores, [&](int64_t i, int64_t j) { return head.allowed(i, j); }));
}

inline Matrix dots(const Matrix& q, const Matrix& k, double scale) {
  Matrix scores(q.rows, k.rows);
  for (int64_t i = 0; i < q.rows; ++i) {
    for (int64_t j = 0; j < k.rows; ++j) scores.at(i, j) = dot(q, i, k, j) * scale;
  }
  return scores;
}

inline MapOf dot_map(double scale) {
  return [scale](const Head& head) { return softmax_of(head, dots(head.q, head.k, scale)); };
}

/// q . W k
inline Matrix general_scores(const Head& head) {
  const Matrix between = head.part("general", head.q.columns, head.k.columns);
  return dots(product(head.q, between), head.k, 1);
}

inline Matrix general_map(const Head& head) { return softmax_of(head, general_scores(head)); }

/// w_j . q, with a row of weights for each of `length` positions.
inline MapOf location_map(int64_t length) {
  return [length](const Head& head) {
    const Matrix places = head.part("places", length, head.q.columns);
    Matrix scores(head.q.rows, head.k.rows);
    for (int64_t i = 0; i < scores.rows; ++i) {
      for (int64_t j = 0; j < scores.columns; ++j) scores.at(i, j) = dot(head.q, i, places, j);
    }
    return softmax_of(head, scores);
  };
}

/// u . tanh(A q + C k + b); C and b may be absent.
inline Matrix additive_scores(const Head& head, int64_t hidden, bool bias, bool project) {
  const Matrix a = head.part("from_query", head.q.columns, hidden), u = head.part("units", hidden, 1);
  const Matrix left = product(head.q, a);
  const Matrix right = project ? product(head.k, head.part("from_key", head.k.columns, hidden)) : head.k;
  const Matrix b = bias ? head.part("bias", 1, hidden) : Matrix(1, hidden);
  Matrix scores(left.rows, right.rows);
  for (int64_t i = 0; i < left.rows; ++i) {
    for (int64_t j = 0; j < right.rows; ++j) {
      for (int64_t c = 0; c < hidden; ++c)
        scores.at(i, j) += u.at(c, 0) * std::tanh(left.at(i, c) + right.at(j, c) + b.at(0, c));
    }
  }
  return scores;
}

inline double norm(const Matrix& x, int64_t row) { return std::max(std::sqrt(dot(x, row, x, row)), 1e-8); }

/// u . q_i + b
inline double read(const Head& head, const std::string& name, int64_t i) {
  return dot(head.q, i, head.part(name + "_weight", 1, head.q.columns), 0) +
         head.part(name + "_bias", 1, 1).at(0, 0);
}

/// Softmax of sharpened cosines.
inline Matrix cosine_map(const Head& head) {
  Matrix scores(head.q.rows, head.k.rows);
  const double sharpness = softplus(head.part("sharpness", 1, 1).at(0, 0));
  for (int64_t i = 0; i < scores.rows; ++i) {
    for (int64_t j = 0; j < scores.columns; ++j)
      scores.at(i, j) = sharpness * dot(head.q, i, head.k, j) / norm(head.q, i) / norm(head.k, j);
  }
  return softmax_of(head, scores);
}

struct AddressingParts {
  bool gate = false;
  int64_t shift = 0;
  bool sharpen = false;
};

/// The addressing of a neural Turing machine.
inline MapOf addressing_map(const AddressingParts& parts) {
  return [parts](const Head& head) {
    Matrix map = cosine_map(head);
    for (int64_t i = 0; i < map.rows; ++i) {
      const int64_t n = head.open(i);
      if (n <= 0) continue;
      if (parts.gate && i > 0) {
        const double g = sigmoid(read(head, "gate", i));
        for (int64_t j = 0; j < n; ++j) map.at(i, j) = g * map.at(i, j) + (1 - g) * map.at(i - 1, j);
      }
      if (parts.shift > 0) {
        const int64_t count = 2 * parts.shift + 1;
        const Matrix weight = head.part("shift_weight", head.q.columns, count);
        const Matrix bias = head.part("shift_bias", 1, count);
        std::vector<double> share(static_cast<size_t>(count)), turned(static_cast<size_t>(n));
        double sum = 0;
        for (int64_t s = 0; s < count; ++s) {
          double logit = bias.at(0, s);
          for (int64_t c = 0; c < head.q.columns; ++c) logit += head.q.at(i, c) * weight.at(c, s);
          sum += share[static_cast<size_t>(s)] = std::exp(logit);
        }
        for (int64_t j = 0; j < n; ++j) {
          for (int64_t s = -parts.shift; s <= parts.shift; ++s) {
            const int64_t from = (((j - s) % n) + n) % n;
            turned[static_cast<size_t>(j)] +=
                share[static_cast<size_t>(s + parts.shift)] / sum * map.at(i, from);
          }
        }
        for (int64_t j = 0; j < n; ++j) map.at(i, j) = turned[static_cast<size_t>(j)];
      }
      if (parts.sharpen) {
        const double power = 1 + softplus(read(head, "sharpen", i));
        double sum = 0;
        for (int64_t j = 0; j < n; ++j) sum += map.at(i, j) = std::pow(map.at(i, j), power);
        for (int64_t j = 0; j < n; ++j) map.at(i, j) /= sum;
      }
    }
    return map;
  };
}

struct LocalParts {
  double window = 10, sigma = 5;
  bool general = false, last = false, floor = false;
  enum class Bell { none, post, pre_score } bell = Bell::post;
};

/// Softmax near a predicted position, with a Gaussian.
inline MapOf local_map(const LocalParts& parts) {
  return [parts](const Head& head) {
    const int64_t d = head.q.columns;
    const Matrix hidden = product(head.q, head.part("place_hidden", d, d)),
                 u = head.part("place_units", d, 1);
    const Matrix scores = parts.general ? general_scores(head) : dots(head.q, head.k, 1);
    Matrix map(scores.rows, scores.columns);
    for (int64_t i = 0; i < map.rows; ++i) {
      double inside = 0;
      for (int64_t c = 0; c < d; ++c) inside += std::tanh(hidden.at(i, c)) * u.at(c, 0);
      const double p = static_cast<double>(head.open(i) - (parts.last ? 1 : 0)) * sigmoid(inside);
      const auto bell = [&](int64_t j) {
        const double off = static_cast<double>(j) - p;
        return std::exp(-off * off / (2 * parts.sigma * parts.sigma));
      };
      double sum = 0;
      for (int64_t j = 0; j < map.columns; ++j) {
        if (!head.allowed(i, j)) continue;
        if (std::abs(static_cast<double>(j) - (parts.floor ? std::floor(p) : p)) > parts.window) continue;
        const double score = scores.at(i, j) * (parts.bell == LocalParts::Bell::pre_score ? bell(j) : 1);
        sum += map.at(i, j) = std::exp(score);
      }
      for (int64_t j = 0; j < map.columns && sum > 0; ++j)
        map.at(i, j) *= (parts.bell == LocalParts::Bell::post ? bell(j) : 1) / sum;
    }
    return map;
  };
}

/// What the scores of a Synthesizer are made of; at most one of the random and one of the dense terms.
struct SynthesizerParts {
  bool random = false, factorized_random = false, dense = false, dot_product = false;
  int64_t columns = 0;  ///< columns of factorized_dense; 0: another form
  int64_t k = 32;
};

/// Softmax of scores for pairs of places. Tay et al. 2020, with scores for two places more than keys.
inline MapOf synthesizer_map(const SynthesizerParts& parts) {
  return [parts](const Head& head) {
    const int64_t d = head.q.columns, length = head.k.rows + 2;
    Matrix scores(head.q.rows, head.k.rows);
    const auto add = [&](const std::function<double(int64_t, int64_t)>& term) {
      for (int64_t i = 0; i < scores.rows; ++i) {
        for (int64_t j = 0; j < scores.columns; ++j) scores.at(i, j) += term(i, j);
      }
    };
    if (parts.dot_product) {
      const Matrix products = dots(head.q, head.k, 1 / std::sqrt(static_cast<double>(d)));
      add([&](int64_t i, int64_t j) { return products.at(i, j); });
    }
    if (parts.random) {
      const Matrix table = head.part("random", length, length);
      add([&](int64_t i, int64_t j) { return table.at(i, j); });
    }
    if (parts.factorized_random) {
      const Matrix table =
          product(head.part("random1", length, parts.k), head.part("random2", parts.k, length));
      add([&](int64_t i, int64_t j) { return table.at(i, j); });
    }
    if (!parts.dense && parts.columns == 0) return softmax_of(head, scores);
    const Matrix bias = head.part("hidden_bias", 1, d);
    const auto layer = [&](const char* weight, const char* offset, int64_t n) {
      const Matrix w = head.part(weight, d, n), c = head.part(offset, 1, n);
      Matrix y(head.q.rows, n);
      for (int64_t i = 0; i < y.rows; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          y.at(i, j) = c.at(0, j);
          for (int64_t x = 0; x < d; ++x)
            y.at(i, j) += std::max(0.0, head.q.at(i, x) + bias.at(0, x)) * w.at(x, j);
        }
      }
      return y;
    };
    if (parts.dense) {
      const Matrix places = layer("to_places", "places_bias", length);
      add([&](int64_t i, int64_t j) { return places.at(i, j); });
    } else {
      const int64_t n = parts.columns;
      const Matrix columns = layer("to_columns", "columns_bias", n),
                   rows = layer("to_rows", "rows_bias", (length + n - 1) / n);
      add([&](int64_t i, int64_t j) { return columns.at(i, j % n) * rows.at(i, j / n); });
    }
    return softmax_of(head, scores);
  };
}

/// exp(-|q - k|^2 scale / 2) for each pair; a row is not normalised. Chen et al. 2021.
inline MapOf gaussian_map(double scale) {
  return [scale](const Head& head) {
    Matrix map(head.q.rows, head.k.rows);
    for (int64_t i = 0; i < map.rows; ++i) {
      for (int64_t j = 0; j < head.open(i); ++j) {
        double square = 0;
        for (int64_t c = 0; c < head.q.columns; ++c) square += std::pow(head.q.at(i, c) - head.k.at(j, c), 2);
        map.at(i, j) = std::exp(-square * scale / 2);
      }
    }
    return map;
  };
}

/// k(q, k) divided by its row sum; `kernel` gets a row of each.
inline MapOf kernel_map(const std::function<double(const Head&, int64_t i, int64_t j)>& kernel) {
  return [kernel](const Head& head) {
    Matrix map(head.q.rows, head.k.rows);
    for (int64_t i = 0; i < map.rows; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < head.open(i); ++j) sum += map.at(i, j) = kernel(head, i, j);
      for (int64_t j = 0; j < head.open(i); ++j) map.at(i, j) /= sum;
    }
    return map;
  };
}

}  // namespace heed::reference
