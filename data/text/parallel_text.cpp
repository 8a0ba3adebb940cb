// Readers of parallel text.
#include "heed/data/text/parallel_text.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "heed/core/io/files.h"
#include "heed/core/io/gzip.h"
#include "heed/core/io/hash.h"
#include "heed/core/io/json.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

constexpr size_t max_line_bytes = size_t{1} << 20;  // bytes

/// A text file that was read, decompressed and checked.
struct TextFile {
  std::string name;  // its path, for messages
  std::string text;
  SourceFile source;
};

/// "name:line" for messages, which count lines from 1; `line` counts from 0.
std::string place(std::string_view name, size_t line) { return text(name, ":", line + 1); }

/// Reads a file of UTF-8 text, plain or gzip. Fails for known binary formats.
TextFile open_text(const Path& path) {
  std::string bytes = io::read_input(path);
  TextFile file;
  file.name = path.string();
  file.source = {.path = file.name, .bytes = static_cast<int64_t>(bytes.size()), .sha256 = sha256_hex(bytes)};
  file.text = is_gzip(bytes) ? inflate_text(bytes, io::text_cap, file.name) : std::move(bytes);
  if (file.text.starts_with("PK\x03\x04") || file.text.starts_with("PAR1")) {
    fail(Fault::data, place(file.name, 0), ": this is a ",
         file.text[1] == 'K' ? "zip archive" : "parquet file",
         ", not text. Unpack it to tab-separated text, a pair of text files, or JSON lines.");
  }
  check_text(file.text, file.name);
  return file;
}

std::vector<std::string_view> lines_of(const TextFile& file) {
  std::vector<std::string_view> lines = split_lines(file.text);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].size() <= max_line_bytes) continue;
    fail(Fault::data, place(file.name, i), ": the line has ", lines[i].size(), " bytes; at most ",
         max_line_bytes, " are accepted. Is this text with one sentence a line?");
  }
  return lines;
}

/// Adds a pair, or counts it where a side is blank; `name` and `line` are its place.
void add(PairFile& out, std::string_view source, std::string_view target, std::string_view name,
         size_t line) {
  ++out.lines;
  Pair pair{.source = std::string(trimmed(source)), .target = std::string(trimmed(target))};
  if (!pair.source.empty() && !pair.target.empty()) {
    out.pairs.push_back(std::move(pair));
    return;
  }
  if (out.empty++ == 0) out.first_empty = place(name, line);
}

void read_tsv(const TextFile& file, PairFile& out) {
  const auto lines = lines_of(file);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos) {
      if (!trimmed(line).empty())
        fail(Fault::data, place(file.name, i), ": no tab. Every line must be source<TAB>target.");
      add(out, {}, {}, file.name, i);
      continue;
    }
    const auto tabs = std::count(line.begin(), line.end(), '\t');
    if (tabs > 1) {
      fail(Fault::data, place(file.name, i), ": ", tabs,
           " tabs; there must be one, between source and target. Keep the two columns: cut -f1,2.");
    }
    add(out, line.substr(0, tab), line.substr(tab + 1), file.name, i);
  }
}

void read_json_lines(const TextFile& file, const Languages& languages, PairFile& out) {
  const auto lines = lines_of(file);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (trimmed(lines[i]).empty()) continue;
    const auto where = place(file.name, i);
    const Json entry = parse_json(lines[i], where);
    const Json* translation = entry.is_object() ? entry.find("translation") : nullptr;
    if (translation == nullptr || !translation->is_object()) {
      fail(Fault::data, where, R"(: no "translation" object. Every line must be {"translation": {")",
           languages.source, R"(": "...", ")", languages.target, R"(": "..."}}.)");
    }
    const auto side = [&](const std::string& language) {
      const Json* found = translation->find(language);
      if (found != nullptr && found->is_text()) return found->text();
      std::string keys;
      for (const JsonMember& member : translation->members()) keys += (keys.empty() ? "" : ", ") + member.key;
      fail(Fault::data, where, ": no text for the language '", language,
           "'. Languages of this line: ", shown(keys, 200), ".");
    };
    const std::string source = side(languages.source);
    const std::string target = side(languages.target);
    if (source.find('\0') != std::string::npos || target.find('\0') != std::string::npos) {
      fail(Fault::data, where, ": a NUL character (\\u0000). Remove it.");
    }
    add(out, source, target, file.name, i);
  }
}

/// Reads a pair of files with one sentence a line.
void read_sides(const Path& source_path, const Path& target_path, PairFile& out) {
  const TextFile source = open_text(source_path);
  const TextFile target = open_text(target_path);
  const auto source_lines = lines_of(source);
  const auto target_lines = lines_of(target);
  if (source_lines.size() != target_lines.size()) {
    fail(Fault::data, source.name, " has ", source_lines.size(), " lines and ", target.name, " has ",
         target_lines.size(), "; from line ", std::min(source_lines.size(), target_lines.size()) + 1,
         " on one side is missing. Line n of one must be the translation of line n of the other.");
  }
  for (size_t i = 0; i < source_lines.size(); ++i) add(out, source_lines[i], target_lines[i], source.name, i);
  out.files.push_back(source.source);
  out.files.push_back(target.source);
}

/// The file `prefix.language` or `prefix.language.gz`; empty when neither exists.
Path find_side(const Path& prefix, const std::string& language) {
  for (const char* ending : {"", ".gz"}) {
    const Path path = prefix.string() + "." + language + ending;
    if (io::exists(path) && !io::is_directory(path)) return path;
  }
  return {};
}

/// The only prefix in a folder of which both sides are there; fails unless there is exactly one.
Path prefix_in(const Path& folder, const Languages& languages) {
  std::set<std::string> prefixes;
  for (const Path& entry : io::list(folder)) {
    std::string name = entry.filename().string();
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    const std::string ending = "." + languages.source;
    if (!name.ends_with(ending)) continue;
    name.resize(name.size() - ending.size());
    if (!find_side(folder / name, languages.target).empty()) prefixes.insert(name);
  }
  if (prefixes.size() == 1) return folder / *prefixes.begin();
  std::string found;
  for (const std::string& name : prefixes) found += (found.empty() ? "" : ", ") + name;
  fail(Fault::file, folder, ": a folder must hold one pair of files NAME.", languages.source, " and NAME.",
       languages.target, "; it holds ", prefixes.size(), prefixes.empty() ? "" : ": ", found,
       ". Give the file, or folder/NAME.");
}

/// True if a line that begins with a brace is JSON; it may be a sentence in braces. Both may contain tabs.
bool is_json(std::string_view line) {
  if (line.find("\"translation\"") != std::string_view::npos) return true;
  try {
    return parse_json(line, "line").is_object();
  } catch (const Error&) {
    return false;
  }
}

/// Reads the files of one path, in the format that their names and the first line tell, and adds the pairs.
void read_path(const Path& path, const Languages& languages, PairFile& out) {
  const bool is_folder = io::is_directory(path);
  const Path prefix = is_folder ? prefix_in(path, languages) : path;
  if (is_folder || !io::exists(path)) {
    const Path source = find_side(prefix, languages.source);
    const Path target = find_side(prefix, languages.target);
    if (source.empty() || target.empty()) {
      fail(Fault::file, path, " is not there",
           source.empty() && target.empty() ? "" : ", and one side is missing",
           ". Give a file of source<TAB>target lines, a JSON-lines file, or the prefix of a pair: ", prefix,
           ".", languages.source, " and ", prefix, ".", languages.target, ".");
    }
    out.format = "text pair";
    return read_sides(source, target, out);
  }
  const TextFile file = open_text(path);
  out.files.push_back(file.source);
  const auto lines = split_lines(file.text);
  const auto first_line =
      std::find_if(lines.begin(), lines.end(), [](auto line) { return !trimmed(line).empty(); });
  if (first_line == lines.end())
    fail(Fault::data, place(file.name, 0), ": the file is empty. It must hold sentence pairs.");
  const bool has_tab = first_line->find('\t') != std::string_view::npos;
  const bool has_brace = trimmed(*first_line).starts_with('{');
  if (has_brace && (!has_tab || is_json(*first_line))) {
    out.format = "json lines";
    return read_json_lines(file, languages, out);
  }
  if (trimmed(*first_line).starts_with('[') && !has_tab) {
    fail(Fault::data, place(file.name, static_cast<size_t>(first_line - lines.begin())),
         ": this looks like one JSON array. JSON must have one object a line: jq -c '.[]'.");
  }
  const std::string ending = path.extension().string();
  if (!has_tab && (ending == "." + languages.source || ending == "." + languages.target)) {
    fail(Fault::data, place(file.name, 0),
         ": one side of a pair of files. Give their prefix: ", Path(path).replace_extension(), ".");
  }
  out.format = "tsv";
  read_tsv(file, out);
}

std::vector<std::string_view> sides(std::span<const Pair> pairs, std::string Pair::*side) {
  std::vector<std::string_view> out;
  out.reserve(pairs.size());
  for (const Pair& pair : pairs) out.push_back(pair.*side);
  return out;
}

}  // namespace

PairFile read_pairs(std::span<const Path> paths, const Languages& languages) {
  if (paths.empty()) fail("parallel text: no path was given.");
  PairFile out;
  for (const Path& path : paths) read_path(path, languages, out);
  if (out.pairs.empty()) {
    fail(Fault::data, place(paths.front().string(), 0), ": no pair with two sides from here to line ",
         out.lines, ". Every line must be source<TAB>target.");
  }
  return out;
}

PairFile read_pairs(const Path& path, const Languages& languages) {
  return read_pairs(std::span(&path, 1), languages);
}

std::vector<std::string_view> sources(std::span<const Pair> pairs) { return sides(pairs, &Pair::source); }

std::vector<std::string_view> targets(std::span<const Pair> pairs) { return sides(pairs, &Pair::target); }

}  // namespace heed
