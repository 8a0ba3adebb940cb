// Reads and writes the benchmark's files of ListOps.
#include <algorithm>

#include "heed/core/io/files.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/data/formats/expected_files.h"
#include "heed/data/synthetic/listops.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

constexpr std::string_view names[] = {"[MIN", "[MAX", "[MED", "[SM", "]"};  // words of the tokens 1 to 5
constexpr std::string_view header_line = "Source\tTarget";
constexpr std::array<std::string_view, 3> files = {"basic_train.tsv", "basic_val.tsv", "basic_test.tsv"};

/// The token of a word; 0 when the word is not a token.
uint8_t token_of(std::string_view word) {
  if (word.size() == 1 && word[0] >= '0' && word[0] <= '9')
    return static_cast<uint8_t>(listops_digit + (word[0] - '0'));
  if (word == "X") return listops_close;
  for (size_t i = 0; i < std::size(names); ++i) {
    if (word == names[i]) return static_cast<uint8_t>(i + 1);
  }
  return 0;
}

/// The word of a token.
std::string_view name_of(uint8_t token) {
  static constexpr std::string_view digits = "0123456789";
  return token >= listops_digit ? digits.substr(token - listops_digit, 1) : names[token - 1];
}

}  // namespace

std::string listops_text(std::string_view tokens) {
  std::string out;
  for (const char token : tokens) {
    if (!out.empty()) out += ' ';
    out += name_of(static_cast<uint8_t>(token));
  }
  return out;
}

std::string listops_line(std::string_view tokens, int64_t label) {
  // An operator with n arguments is n + 1 nested pairs: (op first), ((op first) second), ..., (... ]).
  // Their opening parentheses stand before the operator, so its arguments must be counted first.
  std::vector<int64_t> num_arguments(tokens.size());
  std::vector<size_t> open;
  for (size_t at = 0; at < tokens.size(); ++at) {
    const auto token = static_cast<uint8_t>(tokens[at]);
    if (token == listops_close)
      open.pop_back();
    else if (!open.empty())
      ++num_arguments[open.back()];
    if (token <= listops_sum) open.push_back(at);
  }
  std::string out;
  open.clear();
  for (size_t at = 0; at < tokens.size(); ++at) {
    const auto token = static_cast<uint8_t>(tokens[at]);
    if (token <= listops_sum) {
      for (int64_t i = 0; i <= num_arguments[at]; ++i) out += "( ";
      open.push_back(at);
    } else if (token == listops_close) {
      open.pop_back();
      out += "] ) ";
      if (!open.empty()) out += ") ";  // closes the pair that this argument ends
      continue;
    }
    out += name_of(token);
    out += token > listops_sum && !open.empty() ? " ) " : " ";
  }
  if (!out.empty()) out.back() = '\t';
  return out + std::to_string(label);
}

Sequences read_listops(const Path& path) {
  const std::string file_text = io::read_regular_text(path);
  const std::vector<std::string_view> lines = split_lines(file_text);
  Sequences out;
  for (size_t number = 0; number < lines.size(); ++number) {
    const std::string_view line = lines[number];
    const auto fail_here = [&](const auto&... words) {
      fail(Fault::data, path, ":", number + 1, ": ", words...);
    };
    if (number == 0 && line == header_line) continue;
    if (line.empty() && number + 1 == lines.size()) continue;
    const size_t tab = line.find('\t');
    const std::string_view label = tab == std::string_view::npos ? "" : line.substr(tab + 1);
    if (label.size() != 1 || label[0] < '0' || label[0] > '9')
      fail_here("a line is an expression, a tab and a digit, as in \"( ( ( [MAX 2 ) 9 ) ] )\", tab, \"9\".");
    std::string tokens;
    for (size_t at = 0; at < tab;) {
      const size_t end = std::min(line.find(' ', at), tab);
      const std::string_view word = line.substr(at, end - at);
      at = end + 1;
      if (word.empty() || word == "(" || word == ")") continue;
      const uint8_t token = token_of(word);
      if (token == 0) fail_here("'", shown(word), "' is none of [MIN [MAX [MED [SM ] X and the digits.");
      tokens += static_cast<char>(token);
    }
    int64_t value = 0;
    try {
      value = listops_value(tokens);
    } catch (const Error& error) {
      fail_here(error.what(), " (parentheses do not count).");
    }
    if (value != label[0] - '0') fail_here("the expression is ", value, ", but the label says ", label, ".");
    out.add(tokens);
    out.labels.push_back(static_cast<uint8_t>(value));
  }
  if (out.count() == 0) fail(Fault::data, path, ":1: no expression. Is it a file of ListOps?");
  return out;
}

std::array<Sequences, 3> read_listops_folder(const Path& folder) {
  expect_files(folder, {.what = "ListOps",
                        .names = {files.begin(), files.end()},
                        .bring = "Take the benchmark's, or make some: heed data generate listops --out "
                                 "FOLDER."});
  return {read_listops(folder / files[0]), read_listops(folder / files[1]), read_listops(folder / files[2])};
}

void write_listops(const Path& folder, const std::array<Sequences, 3>& splits) {
  io::make_directories(folder);
  for (size_t split = 0; split < 3; ++split) {
    const Sequences& examples = splits[split];
    std::vector<std::string> lines(static_cast<size_t>(examples.count()));
    parallel_rows(examples.count(), 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto index = static_cast<size_t>(i);
        lines[index] = listops_line(examples.at(i), examples.labels[index]) + "\r\n";
      }
    });
    std::string out = std::string(header_line) + "\r\n";
    for (const std::string& line : lines) out += line;
    io::write(folder / files[split], out);
  }
}

}  // namespace heed
