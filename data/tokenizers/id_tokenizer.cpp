// Reads and writes ids in decimal.
#include "heed/data/tokenizers/id_tokenizer.h"

#include "heed/core/error.h"
#include "heed/core/io/number_text.h"
#include "heed/data/tokenizers/saved_vocabulary.h"

namespace heed {
namespace {

constexpr std::string_view id_title = "heed ids 1";
constexpr std::string_view between_ids = " \n\t\r";
constexpr int64_t max_ids = 1 << 24;

class IdTokenizer final : public Tokenizer {
 public:
  explicit IdTokenizer(int64_t size)
      : Tokenizer({.unknown = -1, .pad = -1, .start = -1, .end = -1}), size_(size) {}

  std::string kind() const override { return "ids"; }
  int64_t size() const override { return size_; }

  std::vector<int32_t> encode(std::string_view given) const override {
    std::vector<int32_t> ids;
    size_t at = given.find_first_not_of(between_ids);
    while (at < given.size()) {
      const size_t end = std::min(given.find_first_of(between_ids, at), given.size());
      const std::string_view word = given.substr(at, end - at);
      const auto id = parsed_integer(word);
      if (!id || *id < 0 || *id >= size_)
        fail("ids: '", shown(word), "' (byte ", at + 1, " of the text) is no id from 0 to ", size_ - 1,
             ". This model came without a tokenizer, so its texts are ids with blanks between: \"0 ",
             size_ - 1, "\". Write ids, or import the model again with its tokenizer (--merges FOLDER).");
      ids.push_back(static_cast<int32_t>(*id));
      at = given.find_first_not_of(between_ids, end);
    }
    return ids;
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string out;
    for (const int32_t id : ids) out += (out.empty() ? "" : " ") + piece(id);
    return out;
  }

  std::string piece(int32_t id) const override {
    if (id < 0 || id >= size_) fail("ids: there is no id ", id, "; ids are 0 .. ", size_ - 1, ".");
    return text(id);
  }

  std::string save() const override { return text(id_title, "\nsize ", size_, "\n"); }

 private:
  int64_t size_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_id_tokenizer(int64_t size) {
  if (size < 1 || size > max_ids) fail("ids: ", size, " ids; there must be 1 to ", max_ids, ".");
  return std::make_unique<IdTokenizer>(size);
}

std::unique_ptr<Tokenizer> detail::load_id_tokenizer(std::string_view bytes, std::string_view name) {
  SavedLines lines(bytes, id_title, name);
  const std::string_view word = lines.value("size");
  const auto size = parsed_integer(word);
  if (!size || *size < 1 || *size > max_ids || text(*size) != word)
    lines.damaged("'", shown(word), "' is no number of ids from 1 to ", max_ids);
  lines.finish();
  return make_id_tokenizer(*size);
}

}  // namespace heed
