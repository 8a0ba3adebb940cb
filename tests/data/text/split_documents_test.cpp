// Documents of a text.
#include "heed/data/text/split_documents.h"

#include <string>

#include "heed/tests/catch.h"

using namespace heed;

namespace {

using Documents = std::vector<std::string_view>;

/// The documents, which must make up the text.
Documents split(std::string_view text, DocumentEnd end) {
  const Documents documents = split_documents(text, end);
  std::string all;
  for (const std::string_view document : documents) all += document;
  CHECK(all == text);
  return documents;
}

}  // namespace

TEST_CASE("documents: a text without ends is one") {
  CHECK(split("a\n\nb<|endoftext|>c", DocumentEnd::none) == Documents{"a\n\nb<|endoftext|>c"});
  for (const DocumentEnd end : {DocumentEnd::blank_line, DocumentEnd::end_of_text}) {
    CHECK(split("", end) == Documents{""});
    CHECK(split("one\ntwo", end) == Documents{"one\ntwo"});
  }
}

TEST_CASE("documents: a blank line begins the next one, the last of several") {
  CHECK(split("a\nb\n\nc\n", DocumentEnd::blank_line) == Documents{"a\nb\n", "\nc\n"});
  CHECK(split("a\n\n\n\nb\n\nc", DocumentEnd::blank_line) == Documents{"a\n\n\n", "\nb\n", "\nc"});
  CHECK(split("a\r\n\r\nb", DocumentEnd::blank_line) == Documents{"a\r\n", "\r\nb"});
  CHECK(split("a\n \t\nb", DocumentEnd::blank_line) == Documents{"a\n", " \t\nb"});
  CHECK(split("\n\na\n\nb\n\n\n", DocumentEnd::blank_line) == Documents{"\n\na\n", "\nb\n\n\n"});
  CHECK(split("\n\n \n", DocumentEnd::blank_line) == Documents{"\n\n \n"});
}

TEST_CASE("documents: each end-of-text mark begins the next one") {
  CHECK(split("a<|endoftext|>b\n\nc<|endoftext|>", DocumentEnd::end_of_text) ==
        Documents{"a", "<|endoftext|>b\n\nc", "<|endoftext|>"});
  CHECK(split("<|endoftext|>a<|endoftext|><|endoftext|>b", DocumentEnd::end_of_text) ==
        Documents{"<|endoftext|>a", "<|endoftext|>", "<|endoftext|>b"});
}
