// English word forms for the phrasebook.
#pragma once

#include <string>
#include <string_view>

#include "heed/data/synthetic/phrasebook/lexicon.h"

namespace heed::phrases::english {

std::string plural(std::string_view singular);                ///< box: boxes, story: stories, book: books
std::string past(std::string_view base);                      ///< carry: carried, look for: looked for
std::string progressive(std::string_view base);               ///< run: running, get up: getting up
std::string present(const EnglishVerb& verb, Person person);  ///< look for: looks for; be: am, are, is
std::string past(const EnglishVerb& verb, Person person);     ///< be: was, were
std::string indefinite(std::string_view next);                ///< the article before this word: a or an
std::string comparative(std::string_view adjective);          ///< bigger, more famous
std::string superlative(std::string_view adjective);          ///< biggest, most famous

}  // namespace heed::phrases::english
