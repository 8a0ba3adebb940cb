// Finds special tokens in texts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed::detail {

/// Cuts texts at special tokens, which stand for themselves; of several at one place it takes the longest.
class SpecialFinder {
 public:
  /// Adds a token; `content` must not be empty.
  void add(int32_t id, std::string content) {
    begins_[static_cast<unsigned char>(content[0])] = true;
    tokens_.emplace_back(id, std::move(content));
  }

  /// Calls plain(part, offset) for each part without special tokens, and special(id) for each of them, in
  /// their order. Parts are not empty; `offset`: that of the part in the text, in bytes.
  template <class Plain, class Special>
  void cut(std::string_view text, Plain plain, Special special) const {
    size_t begin = 0;  // where the text behind the last special token begins
    const auto end_part = [&](size_t end) {
      if (end > begin) plain(text.substr(begin, end - begin), begin);
    };
    for (size_t at = 0; at < text.size();) {
      const std::pair<int32_t, std::string>* found = find(text.substr(at));
      if (found == nullptr) {
        ++at;
        continue;
      }
      end_part(at);
      special(found->first);
      begin = at += found->second.size();
    }
    end_part(text.size());
  }

 private:
  /// The longest token that the text begins with; null where it begins with none.
  const std::pair<int32_t, std::string>* find(std::string_view text) const {
    if (!begins_[static_cast<unsigned char>(text[0])]) return nullptr;
    const std::pair<int32_t, std::string>* best = nullptr;
    for (const auto& token : tokens_) {
      if (best != nullptr && token.second.size() <= best->second.size()) continue;
      if (text.starts_with(token.second)) best = &token;
    }
    return best;
  }

  std::vector<std::pair<int32_t, std::string>> tokens_;
  std::array<bool, 256> begins_ = {};  // bytes with which a token begins
};

}  // namespace heed::detail
