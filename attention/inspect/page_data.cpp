// Writes maps as JSON: numbers in base64, exact where they are few.
#include "heed/attention/inspect/page_data.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/attention/inspect/single_map_statistics.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"

namespace heed::picture {

size_t TokenLists::index(const std::vector<std::string>& tokens) {
  const auto found = std::find(lists_.begin(), lists_.end(), tokens);
  const auto index = static_cast<size_t>(found - lists_.begin());
  if (found == lists_.end()) lists_.push_back(tokens);
  return index;
}

std::string TokenLists::as_json() const { return "[" + joined(lists_, ",\n", visible_json_list) + "]"; }

namespace {

constexpr size_t max_exact_numbers = 200'000;      // elements of a block stored as f32
constexpr int64_t max_factor_numbers = 1'000'000;  // elements of all queries and keys of a page
constexpr double max_code = 65534;                 // code of the largest number, in 16 bits
constexpr unsigned not_finite_code = 65535;

/// Codes of 16 bits for numbers: equal steps between the smallest number (at most 0) and the largest (at
/// least 0).
struct CodeScale {
  float low = 0, high = 0;
  explicit CodeScale(const std::vector<float>& numbers) {
    for (const float number : numbers)
      if (std::isfinite(number)) {
        low = std::min(low, number);
        high = std::max(high, number);
      }
  }
  uint32_t code(float number) const {
    if (!std::isfinite(number)) return not_finite_code;
    const double span = static_cast<double>(high) - low;
    return static_cast<uint32_t>(span > 0 ? std::round((static_cast<double>(number) - low) / span * max_code)
                                          : 0);
  }
  std::string json_fields() const { return text("\"low\":", json(low), ",\"high\":", json(high)); }
};

std::string shape_json(int64_t heads, int64_t rows, int64_t columns) {
  return text("\"shape\":[", heads, ",", rows, ",", columns, "],");
}

std::string statistics_json(const MapView& map) {
  const std::vector<HeadStatistics> heads = head_statistics(map);
  const std::string numbers = joined(heads, ",", [](const HeadStatistics& head) {
    return text("{\"entropy\":", json(head.entropy), ",\"uniform\":", json(head.uniform_entropy),
                ",\"confidence\":", json(head.confidence), ",\"diagonal\":", json(head.diagonal),
                ",\"previous\":", json(head.previous), ",\"next\":", json(head.next),
                ",\"near\":", json(head.band[3]), ",\"distance\":", json(head.distance),
                ",\"mass\":", json(head.favourite_mass), "}");
  });
  const std::string favourites = joined(heads, ",", [&](const HeadStatistics& head) {
    return json(visible(map.key_tokens[static_cast<size_t>(head.favourite)]));
  });
  return text("\"statistics\":[", numbers, "],\"favourites\":[", favourites, "]");
}

/// The smallest and largest row sum of each head ("sums"), and the mean weight that each key receives
/// ("received").
std::string sums_json(const MapView& map) {
  std::string sums = "[";
  std::vector<float> received;
  for (int64_t head = 0; head < map.heads; ++head) {
    std::vector<double> column_sums(static_cast<size_t>(map.keys));
    double min_row_sum = INFINITY, max_row_sum = -INFINITY;
    for (int64_t query = 0; query < map.queries; ++query) {
      double row_sum = 0;
      for (int64_t key = 0; key < map.keys; ++key) {
        row_sum += map.at(head, query, key);
        column_sums[static_cast<size_t>(key)] += map.at(head, query, key);
      }
      min_row_sum = std::min(min_row_sum, row_sum);
      max_row_sum = std::max(max_row_sum, row_sum);
    }
    sums += text(head > 0 ? "," : "", "[", json(min_row_sum), ",", json(max_row_sum), "]");
    for (const double sum : column_sums)
      received.push_back(static_cast<float>(sum / static_cast<double>(map.queries)));
  }
  return text("\"sums\":", sums, "],\"received\":", block_json(received, map.heads, 1, map.keys));
}

/// True if the weights are a softmax of the scores that the factors give: in each row, log weight minus score
/// is then equal for all keys that have weight. Looks at 64 rows or so.
bool factors_explain_weights(const MapView& map) {
  const int64_t width = map.factor_width, stride = std::max<int64_t>(1, map.queries / 64);
  for (int64_t head = 0; head < map.heads; ++head)
    for (int64_t query = 0; query < map.queries; query += stride) {
      double min_difference = INFINITY, max_difference = -INFINITY;
      const float* q = map.query_factors.data() + (head * map.queries + query) * width;
      for (int64_t key = 0; key < map.keys; ++key) {
        const double weight = map.at(head, query, key);
        if (!(weight > 1e-6)) continue;
        const float* k = map.key_factors.data() + (head * map.keys + key) * width;
        const double score = map.factor_scale * std::inner_product(q, q + width, k, 0.0);
        const double difference = std::log(weight) - score;  // -log of the softmax's divisor
        min_difference = std::min(min_difference, difference);
        max_difference = std::max(max_difference, difference);
      }
      if (max_difference - min_difference > 1e-2) return false;
    }
  return true;
}

/// The queries and keys of a map, which are subtracted from num_left; "null" where there are none or too
/// many.
std::string factors_json(const MapView& map, int64_t& num_left) {
  const auto count = static_cast<int64_t>(map.query_factors.size() + map.key_factors.size());
  if (map.factor_width == 0 || count > num_left) return "null";
  num_left -= count;
  return text("{\"scale\":", json(map.factor_scale),
              ",\"softmax\":", factors_explain_weights(map) ? "true" : "false",
              ",\"queries\":", block_json(map.query_factors, map.heads, map.queries, map.factor_width),
              ",\"keys\":", block_json(map.key_factors, map.heads, map.keys, map.factor_width), "}");
}

std::string picture_json(const TokenPicture& picture) {
  const std::string places =
      picture.places.empty()
          ? "null"
          : "[" + joined(picture.places, ",", [](int32_t place) { return std::to_string(place); }) + "]";
  const std::string bytes(picture.pixels.begin(), picture.pixels.end());
  return text("{\"height\":", picture.height, ",\"width\":", picture.width,
              ",\"channels\":", picture.channels, ",\"patch\":", picture.patch, ",\"first\":", picture.first,
              ",\"places\":", places, ",\"pixels\":\"", base64(bytes), "\"}");
}

bool is_long(const MapView& map, const HtmlOptions& options) {
  return std::max(map.queries, map.keys) > options.longest;
}

/// How the maps of a page share its bytes.
struct Budget {
  int64_t bytes_per_head = 0;                   ///< for single weights of one head of a long map
  int64_t factor_numbers = max_factor_numbers;  ///< elements left for the factors of all maps
  Budget(const std::vector<MapView>& maps, const HtmlOptions& options) {
    int64_t heads = 0;
    for (const MapView& map : maps)
      if (is_long(map, options))
        heads += map.heads * (map.attribution.empty() ? 1 : 2) + (map.rollout.empty() ? 0 : 1);
    bytes_per_head = options.long_bytes / std::max<int64_t>(heads, 1);
  }
};

/// Numbers [heads, queries, keys] as {"view", "whole"}. The view, tiles of a long map, is drawn first. The
/// whole has single numbers: all, or the largest of each row that the budget permits; it is null where the
/// view has them, and where not even eight numbers a row are within the budget.
std::string layered_json(const std::vector<float>& numbers, int64_t heads, const MapView& map,
                         const HtmlOptions& options, const Budget& budget) {
  if (!is_long(map, options))
    return text("{\"view\":", block_json(numbers, heads, map.queries, map.keys), ",\"whole\":null}");
  const int64_t queries_per_tile = tile_extent(map.queries, options.tiles),
                keys_per_tile = tile_extent(map.keys, options.tiles);
  const std::vector<float> tiles =
      pooled(numbers, heads, map.queries, map.keys, queries_per_tile, keys_per_tile);
  const int64_t rows = (map.queries + queries_per_tile - 1) / queries_per_tile,
                columns = (map.keys + keys_per_tile - 1) / keys_per_tile;
  std::string whole = "null";
  constexpr int64_t code_bytes = 2, column_bytes = 2, max_columns = 65536;
  const int64_t numbers_per_row = budget.bytes_per_head / ((code_bytes + column_bytes) * map.queries);
  if (map.queries * map.keys * code_bytes <= budget.bytes_per_head)
    whole = block_json(numbers, heads, map.queries, map.keys);
  else if (numbers_per_row >= 8 && map.keys <= max_columns)
    whole = largest_json(numbers, heads, map.queries, map.keys, std::min(numbers_per_row, map.keys));
  return text("{\"view\":", block_json(tiles, heads, rows, columns), ",\"whole\":", whole, "}");
}

}  // namespace

std::string block_json(const std::vector<float>& numbers, int64_t heads, int64_t rows, int64_t columns) {
  const std::string shape = shape_json(heads, rows, columns);
  if (numbers.size() <= max_exact_numbers)
    return text("{", shape, "\"code\":\"f32\",\"bytes\":\"", base64_floats(numbers), "\"}");
  const CodeScale scale(numbers);
  std::string bytes;
  bytes.reserve(numbers.size() * 2);
  for (const float x : numbers) append_bytes(bytes, scale.code(x), 2);
  return text("{", shape, "\"code\":\"u16\",", scale.json_fields(), ",\"bytes\":\"", base64(bytes), "\"}");
}

std::string largest_json(const std::vector<float>& numbers, int64_t heads, int64_t rows, int64_t columns,
                         int64_t count) {
  const CodeScale scale(numbers);
  const auto magnitude = [](float x) { return std::isfinite(x) ? std::abs(x) : INFINITY; };
  std::string codes, places;
  std::vector<float> max_left_out;
  std::vector<uint32_t> order(static_cast<size_t>(columns));  // columns; the `count` largest ones first
  for (int64_t i = 0; i < heads * rows; ++i) {
    const float* row = numbers.data() + i * columns;
    const auto is_larger = [&](uint32_t a, uint32_t b) {
      return magnitude(row[a]) != magnitude(row[b]) ? magnitude(row[a]) > magnitude(row[b]) : a < b;
    };
    std::iota(order.begin(), order.end(), 0U);
    if (count < columns) std::nth_element(order.begin(), order.begin() + count, order.end(), is_larger);
    max_left_out.push_back(count < columns ? magnitude(row[order[static_cast<size_t>(count)]]) : 0);
    std::sort(order.begin(), order.begin() + count);
    for (int64_t k = 0; k < count; ++k) {
      const uint32_t column = order[static_cast<size_t>(k)];
      append_bytes(places, column, 2);
      append_bytes(codes, scale.code(row[column]), 2);
    }
  }
  return text("{", shape_json(heads, rows, columns), "\"code\":\"top\",\"count\":", count, ",",
              scale.json_fields(), ",\"places\":\"", base64(places), "\",\"bytes\":\"", base64(codes),
              "\",\"rest\":", block_json(max_left_out, heads, rows, 1), "}");
}

std::string maps_json(const std::vector<MapView>& maps, const HtmlOptions& options) {
  const HeadChoice first = first_head(maps);
  TokenLists lists;
  Budget budget(maps, options);
  std::vector<const TokenPicture*> pictures;
  std::string map_list, picture_list;
  for (const MapView& map : maps) {
    check(map);
    std::string picture = "null";
    if (map.picture) {
      const auto found = std::find(pictures.begin(), pictures.end(), map.picture.get());
      picture = text(found - pictures.begin());
      if (found == pictures.end()) {
        picture_list += (pictures.empty() ? "" : ",") + picture_json(*map.picture);
        pictures.push_back(map.picture.get());
      }
    }
    const bool tiled = is_long(map, options);
    const auto layered = [&](const std::vector<float>& numbers, int64_t heads) {
      return numbers.empty() ? std::string("null") : layered_json(numbers, heads, map, options, budget);
    };
    map_list += text(
        map_list.empty() ? "" : ",\n", "{\"name\":", json(map.name), ",\"kind\":", json(map.kind),
        ",\"layer\":", map.layer, ",\"heads\":", map.heads, ",\"queries\":", map.queries,
        ",\"keys\":", map.keys, ",\"rows\":", lists.index(map.query_tokens),
        ",\"columns\":", lists.index(map.key_tokens), ",\"tile\":[",
        tiled ? tile_extent(map.queries, options.tiles) : 1, ",",
        tiled ? tile_extent(map.keys, options.tiles) : 1, "],\"picture\":", picture, ",",
        statistics_json(map), ",", sums_json(map), ",\"weights\":", layered(map.weights, map.heads),
        ",\"attribution\":", layered(map.attribution, map.heads), ",\"rollout\":", layered(map.rollout, 1),
        ",\"factors\":", factors_json(map, budget.factor_numbers), "}");
  }
  return text("{\"first\":{\"map\":", first.map, ",\"head\":", first.head, "},\n\"tokens\":", lists.as_json(),
              ",\n\"pictures\":[", picture_list, "],\n\"maps\":[", map_list, "]}");
}

}  // namespace heed::picture
