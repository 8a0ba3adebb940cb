// Reads the steps of a tokenizer.json, each into a function.
#include "heed/data/tokenizers/text_steps.h"

#include <algorithm>
#include <memory>

#include "heed/core/io/base64.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/bert_text.h"
#include "heed/data/tokenizers/character_map.h"
#include "heed/data/tokenizers/unicode_forms.h"

namespace heed {
namespace {

using detail::has_text;
using detail::set_member;
using detail::TokenizerJsonReader;
using NormalizerStep = std::function<std::string(std::string)>;
using CutterStep = std::function<void(const std::string&, bool begins, std::vector<std::string>&)>;
using DecoderStep = std::function<void(std::vector<std::string>&)>;

constexpr size_t max_content_bytes = 256;  // a step puts in no longer text
constexpr size_t max_growth = 64;          // steps make at most so many bytes of one
constexpr size_t free_bytes = 65536;       // steps may make so many bytes besides

/// The type of a step; empty where it has none.
std::string step_type(const Json& step) {
  const Json* type = set_member(step, "type");
  return type != nullptr && type->is_text() ? type->text() : "";
}

/// Calls visit(step) for each step of a Sequence, whose list is called `list`, or for the step itself.
template <class Visit>
void each_step(const TokenizerJsonReader& file, const Json& step, const char* list, const Visit& visit) {
  if (step_type(step) != "Sequence") return visit(step);
  const Json* steps = set_member(step, list);
  file.demand(steps != nullptr && steps->is_list(), text("a Sequence has no ", list));
  for (const Json& one : steps->list()) each_step(file, one, list, visit);
}

/// Fails for a step that is not done here.
[[noreturn]] void refuse_step(const TokenizerJsonReader& file, const char* kind, const Json& step,
                              const char* legal) {
  fail(Fault::data, file.name(), ": the ", kind, " ", shown(step.dump(), 120),
       " is not one of those done here: ", legal, ".", file.remedy());
}

/// Fails for a text that a step puts into texts, and that is too long. `what`: "the content of a Replace".
void demand_short(const TokenizerJsonReader& file, const char* what, size_t bytes) {
  file.demand(bytes <= max_content_bytes,
              text(what, " has ", bytes, " bytes, and at most ", max_content_bytes, " are legal"));
}

/// The name of a step in errors: "normalizer Prepend".
std::string step_name(const char* kind, const Json& step) { return text(kind, " ", step_type(step)); }

/// The bytes of all texts.
size_t total_bytes(const std::vector<std::string>& texts) {
  size_t sum = 0;
  for (const std::string& one : texts) sum += one.size();
  return sum;
}

/// Fails where a step has made too much of a text of `before` bytes; steps in a row multiply what they make.
void demand_growth(const std::vector<std::string>& made, size_t before, const std::string& step) {
  const size_t bytes = total_bytes(made);
  if (bytes > max_growth * before + free_bytes)
    fail(Fault::data, "tokenizer.json: the ", step, " makes ", bytes, " bytes of a text of ", before,
         ", and at most ", max_growth, " for each byte and ", free_bytes,
         " more are legal. Give a tokenizer.json without this step.");
}

/// A part of a text that is replaced; a size of 0: there is none.
struct TextMatch {
  size_t begin = 0, size = 0;
};

/// The text with `content` for what `next` finds: the first match from a byte on.
template <class Next>
std::string replaced_matches(std::string_view text, std::string_view content, const Next& next) {
  std::string out;
  size_t at = 0;
  for (TextMatch match = next(text, at); match.size > 0; match = next(text, at)) {
    out += text.substr(at, match.begin - at);
    out += content;
    at = match.begin + match.size;
  }
  return out += text.substr(at);
}

/// The text with one text in place of another.
std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  return replaced_matches(text, to, [&](std::string_view all, size_t at) {
    const size_t begin = all.find(from, at);
    return begin == std::string_view::npos ? TextMatch{} : TextMatch{begin, from.size()};
  });
}

/// The first run of two blanks or more.
TextMatch run_of_blanks(std::string_view text, size_t at) {
  const size_t begin = text.find("  ", at);
  if (begin == std::string_view::npos) return {};
  return {begin, std::min(text.find_first_not_of(' ', begin), text.size()) - begin};
}

NormalizerStep replacement(const TokenizerJsonReader& file, const char* kind, const Json& step,
                           const char* legal) {
  const Json *pattern = set_member(step, "pattern"), *content = set_member(step, "content");
  file.demand(content != nullptr && content->is_text(), "a Replace has no content");
  demand_short(file, "the content of a Replace", content->text().size());
  if (pattern != nullptr && has_text(*pattern, "Regex", " {2,}"))
    return
        [to = content->text()](const std::string& part) { return replaced_matches(part, to, run_of_blanks); };
  const Json* plain = pattern == nullptr ? nullptr : set_member(*pattern, "String");
  if (plain == nullptr || !plain->is_text() || plain->text().empty()) refuse_step(file, kind, step, legal);
  return [from = plain->text(), to = content->text()](const std::string& part) {
    return replaced(part, from, to);
  };
}

NormalizerStep strip(bool left, bool right) {
  return [=](const std::string& part) -> std::string {
    const std::string_view kept = trimmed(part);
    if (kept.empty()) return left || right ? "" : part;
    const auto before = static_cast<size_t>(kept.data() - part.data());
    const size_t begin = left ? before : 0, end = right ? before + kept.size() : part.size();
    return part.substr(begin, end - begin);
  };
}

NormalizerStep precompiled(const TokenizerJsonReader& file, const Json& step) {
  const std::optional<std::string> table = from_base64(file.word(step, "precompiled_charsmap"));
  file.demand(table.has_value(), "precompiled_charsmap is no base64");
  const auto map = std::make_shared<const CharacterMap>(*table, file.name());
  demand_short(file, "a replacement of precompiled_charsmap", map->longest_replacement());
  return [map](const std::string& part) { return map->normalized(part); };
}

NormalizerStep normalizer_of(const TokenizerJsonReader& file, const Json& step) {
  constexpr const char* legal =
      "Sequence, Precompiled, NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, BertNormalizer, "
      "and Replace of a String or of the Regex \" {2,}\"";
  const std::string type = step_type(step);
  constexpr std::pair<const char*, NormalForm> forms[] = {{"NFC", NormalForm::nfc},
                                                          {"NFD", NormalForm::nfd},
                                                          {"NFKC", NormalForm::nfkc},
                                                          {"NFKD", NormalForm::nfkd}};
  for (const auto& [name, form] : forms) {
    if (type == name) return [form = form](const std::string& part) { return normal_form(part, form); };
  }
  if (type == "Precompiled") return precompiled(file, step);
  if (type == "Replace") return replacement(file, "normalizer", step, legal);
  if (type == "Strip")
    return strip(file.flag(step, "strip_left", true), file.flag(step, "strip_right", true));
  if (type == "Prepend") {
    const std::string first = file.word(step, "prepend");
    demand_short(file, "the text of a Prepend", first.size());
    return [first](const std::string& part) { return part.empty() ? part : first + part; };
  }
  if (type == "Lowercase") {
    return [](const std::string& part) {
      std::string out;
      for (size_t at = 0; at < part.size();) append_lower_case(out, next_code_point(part, at));
      return out;
    };
  }
  if (type != "BertNormalizer") refuse_step(file, "normalizer", step, legal);
  return [options = file.bert_normalizer(step)](const std::string& part) {
    return bert_normalized(part, options);
  };
}

/// The character that stands for a blank, of a Metaspace.
std::string space_mark_of(const TokenizerJsonReader& file, const Json& step) {
  const std::string mark = file.word(step, "replacement", "\u2581");
  file.demand(code_points(mark) == 1, text("the replacement '", shown(mark), "' is not one character"));
  return mark;
}

/// Which parts of a text Metaspace puts its mark before: always, first or never.
std::string prepend_scheme_of(const TokenizerJsonReader& file, const Json& step) {
  const std::string scheme = file.word(step, "prepend_scheme", "always");
  file.demand(scheme == "always" || scheme == "first" || scheme == "never",
              text("prepend_scheme is ", shown(scheme), ", and must be always, first or never"));
  file.demand(file.flag(step, "add_prefix_space", scheme != "never") == (scheme != "never"),
              text("add_prefix_space does not match prepend_scheme = ", scheme));
  return scheme;
}

CutterStep metaspace(const TokenizerJsonReader& file, const Json& step) {
  const std::string mark = space_mark_of(file, step), scheme = prepend_scheme_of(file, step);
  const bool splits = file.flag(step, "split", true);
  return [=](const std::string& part, bool begins, std::vector<std::string>& out) {
    std::string all = replaced(part, " ", mark);
    const bool is_marked = scheme == "always" || (scheme == "first" && begins);
    if (is_marked && !all.starts_with(mark)) all.insert(0, mark);
    for (size_t begin = 0; begin < all.size();) {
      const size_t end = splits ? std::min(all.find(mark, begin + 1), all.size()) : all.size();
      out.push_back(all.substr(begin, end - begin));
      begin = end;
    }
  };
}

/// Cuts by what gives views of the words in a text.
template <class Words>
CutterStep cut_by(const Words& words) {
  return [words](const std::string& part, bool, std::vector<std::string>& out) {
    for (const std::string_view word : words(std::string_view(part))) out.emplace_back(word);
  };
}

/// True for a normalizer whose first character is always made of the first one that it is given, or is the
/// mark of a Metaspace, which a normalizer behind it could change.
bool keeps_first_character(const Json& step, bool is_last, const std::string& mark) {
  const std::string type = step_type(step);
  if (type == "Strip") return set_member(step, "strip_left") != nullptr && !step.at("strip_left").boolean();
  if (type != "Replace") return type != "BertNormalizer";
  const std::string content = step.at("content").text();
  const Json* plain = set_member(step.at("pattern"), "String");
  return (is_last && content.starts_with(mark)) ||
         (plain != nullptr && code_points(plain->text()) == 1 && !content.empty());
}

CutterStep pre_tokenizer_of(const TokenizerJsonReader& file, const Json& step) {
  const std::string type = step_type(step);
  if (type == "Metaspace") return metaspace(file, step);
  if (type == "Whitespace")
    return cut_by([](std::string_view text) { return word_runs(text, is_word_of_tokenizers); });
  if (type == "WhitespaceSplit")
    return cut_by(
        [](std::string_view text) { return word_runs(text, [](char32_t code) { return !is_space(code); }); });
  if (type == "BertPreTokenizer") return cut_by(bert_words);
  refuse_step(file, "pre_tokenizer", step,
              "Sequence, Metaspace, Whitespace, WhitespaceSplit and BertPreTokenizer");
}

/// The byte of a token <0x0A>; -1 for another token.
int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  const int high = digit(token[3]), low = digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

DecoderStep metaspace_decoder(const TokenizerJsonReader& file, const Json& step) {
  return [mark = space_mark_of(file, step),
          adds_mark = prepend_scheme_of(file, step) != "never"](std::vector<std::string>& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], mark, i == 0 && adds_mark ? "" : " ");
  };
}

/// Leaves out up to `start` times the character at the begin of a token, and up to `stop` times at its end.
DecoderStep strip_decoder(const TokenizerJsonReader& file, const Json& step) {
  const auto count = [&](const char* key) {
    const Json* found = set_member(step, key);
    file.demand(found != nullptr && found->is_integer() && found->integer() >= 0,
                text(key, " of the decoder Strip is no number of 0 or more"));
    return found->integer();
  };
  const std::string stripped = file.word(step, "content");
  file.demand(code_points(stripped) == 1, "the content of the decoder Strip is not one character");
  return
      [content = stripped, start = count("start"), stop = count("stop")](std::vector<std::string>& tokens) {
        for (std::string& token : tokens) {
          std::string_view left = token;
          for (int64_t i = 0; i < start && left.starts_with(content); ++i) left.remove_prefix(content.size());
          for (int64_t i = 0; i < stop && left.ends_with(content); ++i) left.remove_suffix(content.size());
          token = std::string(left);
        }
      };
}

DecoderStep decoder_of(const TokenizerJsonReader& file, const Json& step) {
  constexpr const char* legal = "Sequence, Metaspace, Replace of a String, ByteFallback, Fuse and Strip";
  const std::string type = step_type(step);
  if (type == "Metaspace") return metaspace_decoder(file, step);
  if (type == "Strip") return strip_decoder(file, step);
  if (type == "Fuse") {
    return [](std::vector<std::string>& tokens) {
      std::string all;
      for (const std::string& token : tokens) all += token;
      tokens = {std::move(all)};
    };
  }
  if (type == "ByteFallback") {
    return [](std::vector<std::string>& tokens) {
      std::vector<std::string> out;
      bool ends_in_bytes = false;
      for (std::string& token : tokens) {
        const int byte = byte_of_token(token);
        if (byte < 0) {
          out.push_back(std::move(token));
        } else {
          if (!ends_in_bytes) out.emplace_back();
          out.back() += static_cast<char>(byte);
        }
        ends_in_bytes = byte >= 0;
      }
      tokens = std::move(out);
    };
  }
  if (type != "Replace") refuse_step(file, "decoder", step, legal);
  return [replace = replacement(file, "decoder", step, legal)](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) token = replace(token);
  };
}

}  // namespace

TextSteps::TextSteps(const detail::TokenizerJsonReader& file) {
  if (const Json* found = set_member(file.json(), "normalizer"))
    each_step(file, *found, "normalizers", [&](const Json& step) {
      normalizers_.push_back({step_name("normalizer", step), normalizer_of(file, step)});
    });
  if (const Json* found = set_member(file.json(), "pre_tokenizer"))
    each_step(file, *found, "pretokenizers", [&](const Json& step) {
      const CutterStep cut = pre_tokenizer_of(file, step);
      if (has_text(step, "prepend_scheme", "first")) demand_first_character(file, step);
      pre_tokenizers_.push_back({step_name("pre_tokenizer", step), cut});
    });
}

void TextSteps::demand_first_character(const detail::TokenizerJsonReader& file, const Json& metaspace) const {
  const std::string mark = space_mark_of(file, metaspace);
  size_t num_seen = 0;
  bool keeps = pre_tokenizers_.empty();
  if (const Json* found = set_member(file.json(), "normalizer"))
    each_step(file, *found, "normalizers", [&](const Json& step) {
      keeps = keeps && keeps_first_character(step, ++num_seen == normalizers_.size(), mark);
    });
  file.demand(
      keeps,
      "the pre_tokenizer Metaspace has prepend_scheme = first behind a step that may leave out the first "
      "character, where it is not known which part of a text is the first");
}

std::vector<std::string> TextSteps::words(std::string_view part, bool begins) const {
  std::vector<std::string> words{as_utf8(part)};
  const size_t before = words[0].size();
  for (const auto& [name, normalize] : normalizers_) {
    words[0] = normalize(std::move(words[0]));
    demand_growth(words, before, name);
  }
  for (const auto& [name, cut] : pre_tokenizers_) {
    std::vector<std::string> parts = std::move(words);
    words.clear();
    for (const std::string& one : parts) {
      if (!one.empty()) cut(one, begins, words);
    }
    demand_growth(words, before, name);
  }
  std::erase_if(words, [](const std::string& word) { return word.empty(); });
  return words;
}

TextDecoder::TextDecoder(const detail::TokenizerJsonReader& file) {
  const Json* found = set_member(file.json(), "decoder");
  has_decoder_ = found != nullptr;
  if (has_decoder_)
    each_step(file, *found, "decoders", [&](const Json& step) {
      decoders_.push_back({step_name("decoder", step), decoder_of(file, step)});
    });
}

std::string TextDecoder::joined(std::vector<std::string> tokens) const {
  const size_t before = total_bytes(tokens);
  for (const auto& [name, decode] : decoders_) {
    decode(tokens);
    demand_growth(tokens, before, name);
  }
  std::string out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && !has_decoder_) out += ' ';
    out += tokens[i];
  }
  return out;
}

}  // namespace heed
