// tests data/tokenizers/id_tokenizer.h
#include "heed/data/tokenizers/id_tokenizer.h"

#include "heed/data/tokenizers/streamed_text.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

namespace heed {

TEST_CASE("ids: a text is ids in decimal, and other words are refused with their place") {
  const auto ids = make_id_tokenizer(300);
  CHECK(ids->size() == 300);
  CHECK(ids->encode(" 17 0\n299\t5 ") == std::vector<int32_t>{17, 0, 299, 5});
  CHECK(ids->encode("").empty());
  CHECK(ids->encode(" \n").empty());
  CHECK(ids->decode(std::vector<int32_t>{17, 0, 299}) == "17 0 299");
  for (const char* word : {"300", "-1", "x", "1.5", "99999999999999999999"}) {
    CHECK(fault_of([&] { ids->encode(word); }) == Fault::usage);
    CHECK_THROWS_WITH(ids->encode(std::string("7 ") + word),
                      containing(text("ids: '", word, "' (byte 3 of the text) is no id from 0 to 299")));
  }
  CHECK_THROWS_WITH(ids->piece(300), containing("no id 300"));
  CHECK_THROWS_WITH(make_id_tokenizer(0), containing("1 to 16777216"));
}

TEST_CASE("ids: texts that come id by id have blanks between") {
  const auto ids = make_id_tokenizer(300);
  const std::vector<int32_t> prompt{4, 5};
  StreamedText stream(*ids, prompt);
  std::string out;
  for (const int32_t id : {6, 100, 7}) out += stream.add(id);
  CHECK(out + stream.rest() == " 6 100 7");
}

TEST_CASE("ids: a saved tokenizer is loaded, and damage is refused by its line") {
  const std::string saved = make_id_tokenizer(300)->save();
  const auto loaded = load_tokenizer("ids", saved, "t");
  CHECK(loaded->save() == saved);
  CHECK(loaded->kind() == "ids");
  for (const char* size : {"0", "-5", "16777217", "0300", "x"}) {
    const std::string bytes = text("heed ids 1\nsize ", size, "\n");
    CHECK(fault_of([&] { load_tokenizer("ids", bytes, "t"); }) == Fault::data);
    CHECK_THROWS_WITH(load_tokenizer("ids", bytes, "t"), containing("t, line 2"));
  }
  CHECK_THROWS_WITH(load_tokenizer("ids", saved + "more\n", "t"), containing("line 3"));
}

}  // namespace heed
