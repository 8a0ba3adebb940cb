// The corpora of corpora.json, each with the function that unpacks it.
#include "heed/data/download/corpus_catalog.h"

#include <map>

#include "heed/core/io/embedded_files.h"
#include "heed/core/io/json.h"

namespace heed {

std::span<const RemoteCorpus> remote_corpora() {
  static const std::vector<RemoteCorpus> corpora = [] {
    const std::map<std::string, decltype(RemoteCorpus::unpack)> unpack = {
        {"cifar10", unpacked::cifar10},
        {"imdb", unpacked::imdb},
        {"mnist", unpacked::mnist},
        {"opus_books", unpacked::opus_books},
        {"tinyshakespeare", unpacked::tinyshakespeare},
        {"wikitext2", unpacked::wikitext2}};
    constexpr const char* path = "data/download/corpora.json";
    std::vector<RemoteCorpus> out;
    const Json entries = parse_json(embedded_file(path), path);
    for (const Json& entry : entries.list()) {
      const std::string& name = entry.at("name").text();
      RemoteCorpus& corpus = out.emplace_back(
          RemoteCorpus{name, entry.at("title").text(), entry.at("licence").text(), {}, unpack.at(name)});
      for (const Json& file : entry.at("files").list())
        corpus.files.push_back({file.at("url").text(), file.at("name").text(), file.at("sha256").text()});
    }
    return out;
  }();
  return corpora;
}

}  // namespace heed
