// Scores and tokens computed by sacreBLEU 2.6.0 and jiwer; made by tests/peers/bleu_goldens.py.
// clang-format off
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace heed::goldens {

/// A sentence and its 13a tokens.
struct Tokens {
  std::string sentence;
  std::vector<std::string> tokens;
};

inline const std::vector<Tokens> tokens = {
    {"The price is 1,000.50 euros, or 2.5 per cent.",
     {"The", "price", "is", "1,000.50", "euros", ",", "or", "2.5", "per", "cent", "."}},
    {"Il prezzo \303\250 di 1.000,50 euro; il 2,5 per cento.",
     {"Il", "prezzo", "\303\250", "di", "1.000,50", "euro", ";", "il", "2,5", "per", "cento", "."}},
    {"Dell'acqua, l'uomo (vecchio) disse: \302\253Non c'\303\250 pi\303\271!\302\273",
     {"Dell'acqua", ",", "l'uomo", "(", "vecchio", ")", "disse", ":", "\302\253Non", "c'\303\250", "pi\303\271", "!", "\302\273"}},
    {"A well-known 10-year-old 3-D film from 1999-2001.",
     {"A", "well-known", "10", "-", "year-old", "3", "-", "D", "film", "from", "1999", "-", "2001", "."}},
    {"&quot;Salt &amp; pepper&quot; &lt;b&gt; &amp;lt; &apos;x&apos;",
     {"\"", "Salt", "&", "pepper", "\"", "<", "b", ">", "<", "&", "apos", ";", "x", "&", "apos", ";"}},
    {"Wait... what\?! No,no. Yes,3 or 3,yes .5 5. ,5 5,",
     {"Wait", ".", ".", ".", "what", "\?", "!", "No", ",", "no", ".", "Yes", ",", "3", "or", "3", ",", "yes", ".", "5", "5", ".", ",", "5", "5", ","}},
    {"a.b.c 1.2.3 e.g., i.e. U.S.A.",
     {"a", ".", "b", ".", "c", "1.2.3", "e", ".", "g", ".", ",", "i", ".", "e", ".", "U", ".", "S", ".", "A", "."}},
    {"tabs\011and\302\240hard spaces\342\200\203and  doubles  ",
     {"tabs", "and", "hard", "spaces", "and", "doubles"}},
    {"trailing dash-\012",
     {"trailing", "dash-"}},
    {"line-\012break and\012another <skipped> one",
     {"linebreak", "and", "another", "one"}},
    {"",
     {}},
    {"   ",
     {}},
    {"e-mail: x_y@z.it #1 $5 100% ~a ^b `c` {d} [e] |f| \\g/ +h= *i",
     {"e-mail", ":", "x", "_", "y", "@", "z", ".", "it", "#", "1", "$", "5", "100", "%", "~", "a", "^", "b", "`", "c", "`", "{", "d", "}", "[", "e", "]", "|", "f", "|", "\\", "g", "/", "+", "h", "=", "*", "i"}},
    {"\316\243\317\211\316\272\317\201\316\254\317\204\316\267\317\202 \342\200\224 \342\200\236d\303\251j\303\240 vu\342\200\234 \342\200\246 \346\227\245\346\234\254\350\252\236\343\200\201\343\203\206\343\202\271\343\203\210\343\200\202 \360\237\231\202",
     {"\316\243\317\211\316\272\317\201\316\254\317\204\316\267\317\202", "\342\200\224", "\342\200\236d\303\251j\303\240", "vu\342\200\234", "\342\200\246", "\346\227\245\346\234\254\350\252\236\343\200\201\343\203\206\343\202\271\343\203\210\343\200\202", "\360\237\231\202"}},
    {"don't 'quoted' rock 'n' roll -- 5- -5 5-5 a-5",
     {"don't", "'quoted'", "rock", "'n'", "roll", "--", "5", "-", "-5", "5", "-", "5", "a-5"}},
    {"...",
     {".", ".", "."}},
    {"-",
     {"-"}},
    {"1",
     {"1"}},
    {".",
     {"."}},
    {"'",
     {"'"}},
    {"1.",
     {"1", "."}},
    {",1",
     {",", "1"}},
    {"1,,1",
     {"1", ",", ",", "1"}},
    {"..1..",
     {".", ".1", ".", "."}},
    {"unit\037separator and\302\205next line\343\200\200wide",
     {"unit", "separator", "and", "next", "line", "wide"}},
};

/// Sentences, references, and what the peers make of them.
struct Scores {
  std::string name;
  std::vector<std::string> outputs;
  std::vector<std::string> references;
  double bleu;
  std::array<double, 4> precisions;
  double brevity_penalty;
  int64_t length;
  int64_t reference_length;
  double chrf;
  double wer;  ///< negative where the peer refuses empty references
  double cer;
};

inline const std::vector<Scores> scores = {
    {"plain",
     {"The old man smiled.", "Il gatto nero dorme sulla tavola.", "It costs 1,000.5 euros."},
     {"The old man smiled.", "Il gatto nero dormiva sulla tavola.", "It costs 1,000.5 dollars."},
     54.14435929741796, {88.23529411764706, 71.42857142857143, 54.54545454545455, 25.0}, 1.0, 17, 17,
     79.57169896514222, 0.14285714285714285, 0.11392405063291139},
    {"perfect",
     {"Where is the red house of my brother\?", "L'amica di Maria non l'ha vista ieri."},
     {"Where is the red house of my brother\?", "L'amica di Maria non l'ha vista ieri."},
     100.00000000000004, {100.0, 100.0, 100.0, 100.0}, 1.0, 17, 17,
     100.0, 0.0, 0.0},
    {"nothing matches",
     {"alpha beta gamma delta"},
     {"uno due tre quattro cinque"},
     0.0, {0.0, 0.0, 0.0, 0.0}, 0.7788007830714049, 4, 5,
     5.48989644085539, 1.0, 0.8461538461538461},
    {"one word matches",
     {"the a b c d", "x y z"},
     {"the uno due tre quattro", "sei sette otto nove"},
     7.048316380314024, {12.5, 8.333333333333334, 6.25, 6.25}, 0.8824969025845955, 8, 9,
     4.614222381264786, 0.8888888888888888, 0.7857142857142857},
    {"short output",
     {"The cat sat", "He said"},
     {"The cat sat on the big mat in the sun.", "He said that he would come home very late."},
     0.0, {100.0, 100.0, 100.0, 0.0}, 0.04076220397836621, 5, 21,
     20.329202997387803, 0.7368421052631579, 0.775},
    {"long output",
     {"The cat sat on the mat on the mat on the mat.", "Yes, yes, yes, yes."},
     {"The cat sat on the mat.", "Yes."},
     32.09797761507512, {42.857142857142854, 31.57894736842105, 29.41176470588235, 26.666666666666668}, 1.0, 21, 9,
     77.65854953991858, 1.4285714285714286, 1.3703703703703705},
    {"too short for 4-grams",
     {"a b", "c"},
     {"a b", "c"},
     0.0, {100.0, 100.0, 0.0, 0.0}, 1.0, 3, 3,
     100.0, 0.0, 0.0},
    {"empty output among others",
     {"", "The woman reads a book about the sea.", "   "},
     {"Something was here.", "The woman reads a book about the sea.", "And here too."},
     41.11122905071876, {100.0, 100.0, 100.0, 100.0}, 0.41111229050718745, 9, 17,
     60.12711846352181, 0.42857142857142855, -1.0},
    {"all empty",
     {"", ""},
     {"one two", "three"},
     0.0, {0.0, 0.0, 0.0, 0.0}, 0.0, 0, 3,
     0.0, 1.0, 1.0},
    {"empty reference",
     {"one two three four five", "the red house is big"},
     {"", "the red house is big"},
     49.99999999999999, {50.0, 50.0, 50.0, 50.0}, 1.0, 10, 5,
     100.0, -1.0, -1.0},
    {"entities and quotes",
     {"&quot;Salt &amp; pepper&quot;, he said, \"is all I need.\"", "\302\253Perch\303\251 no\?\302\273, disse l'uomo-ombra."},
     {"\"Salt & pepper\", he said, \"is all that I need.\"", "\302\253Perch\303\251 no\302\273, disse l\342\200\231uomo-ombra."},
     65.96924585662964, {83.33333333333333, 68.18181818181819, 60.0, 55.55555555555556}, 1.0, 24, 23,
     66.11538577625583, 0.42857142857142855, 0.2911392405063291},
    {"unicode",
     {"Per\303\262 la citt\303\240 \303\250 pi\303\271 bella di cos\303\254.", "\304\210u vi parolas Esperanton\? \360\237\231\202 ja!", "\346\227\245\346\234\254\350\252\236 \343\201\256 \343\203\206\343\202\271\343\203\210 \343\201\247\343\201\231 \343\200\202"},
     {"Per\303\262 la citt\303\240 era pi\303\271 bella di cos\303\254.", "\304\210u vi parolas Esperanton\? \360\237\231\202 jes!", "\346\227\245\346\234\254\350\252\236 \343\201\256 \343\203\206\343\202\271\343\203\210 \343\201\247\343\201\227\343\201\237 \343\200\202"},
     59.79535692402025, {86.36363636363636, 68.42105263157895, 56.25, 38.46153846153846}, 1.0, 22, 22,
     81.87767232153165, 0.15789473684210525, 0.08433734939759036},
    {"case",
     {"THE OLD MAN SMILED AT me today"},
     {"the old man smiled at me today"},
     13.134549472120788, {28.571428571428573, 16.666666666666668, 10.0, 6.25}, 1.0, 7, 7,
     20.425805125461874, 0.7142857142857143, 0.5666666666666667},
    {"drawn by lot, 12 sentences",
     {"citt\303\240 . &amp;", "per\303\262 don't &amp; house . house 50%", "", ", 50% \? never l'uomo quickly well-known \346\227\245\346\234\254 the ;", "house ; red well-known per\303\262 che 2.5 2.5 house che \"quoted\" 50%", "che &amp; don't well-known", "(aside) l'uomo ; citt\303\240 house non never ; non \346\227\245\346\234\254 don't ;", "e.g. citt\303\240 (aside) , \346\227\245\346\234\254 1,000 che", "&amp; sea ; non \? quickly old .", "citt\303\240 man the &amp; never 10-20", "man e.g. ; the l'uomo di di 1,000 never", "\"quoted\" well-known perch\303\251 quickly 1,000 never che"},
     {"citt\303\240 e.g. &amp;", "per\303\262 don't &amp; quickly house . the 50%", "the", "the 50% don't l'uomo quickly well-known che the ;", "house red per\303\262 che e.g. 2.5 house che \"quoted\" 50% che", "che &amp; don't well-known", "(aside) man , l'uomo ; house non red ; 10-20 don't (aside)", "e.g. citt\303\240 (aside) , \346\227\245\346\234\254 1,000", "&amp; sea ; non \? quickly well-known old .", ", perch\303\251 the &amp; never per\303\262", "man man e.g. the , the non non 1,000 never 1,000", "\"quoted\" well-known &amp; quickly 1,000 house 1,000"},
     41.214287875928505, {75.0, 54.83870967741935, 36.58536585365854, 28.169014084507044}, 0.9083242631244284, 104, 114,
     59.82375040528601, 0.39080459770114945, 0.3325842696629214},
    {"drawn by lot, 60 sentences",
     {"old old well-known man (aside) 10-20 red che &amp; ; old e.g. 2.5 1,000 \346\227\245\346\234\254 perch\303\251", "; \? red never never , the red \"quoted\" red", "1,000 (aside) ; (aside) e.g. , red non don't di che , per\303\262 ; 10-20", "10-20 red 50% \346\227\245\346\234\254 perch\303\251 1,000 ; \346\227\245\346\234\254 . 2.5 2.5 &amp;", "\346\227\245\346\234\254", "house 1,000 quickly per\303\262 old old 1,000 never l'uomo", "che", "di 10-20 \346\227\245\346\234\254 old", "per\303\262 che don't 2.5 \"quoted\" . l'uomo 2.5 ,", ",", "; citt\303\240 \"quoted\"", "1,000 perch\303\251 l'uomo house", ", &amp; di \346\227\245\346\234\254 well-known non", "", "never man never house", "quickly l'uomo \346\227\245\346\234\254 quickly che house", "&amp; (aside) . (aside) the non house (aside) 2.5 di", "perch\303\251 man", "non . quickly house", "50% house 1,000 di house man", ". 2.5 (aside) , sea &amp; perch\303\251 well-known . ; .", "house man (aside) red sea don't l'uomo well-known 50% 2.5", "sea non \?", "; never di ; 1,000 &amp; red", "sea , , che the di &amp; perch\303\251 don't 50% che don't", "never \? perch\303\251 quickly house l'uomo che don't 50% house \346\227\245\346\234\254 the", "quickly 1,000 che di non . &amp; perch\303\251 sea the perch\303\251", ", perch\303\251 1,000 non ; don't per\303\262 the", "che (aside) old red l'uomo don't , l'uomo 2.5 sea 2.5 \? ,", "2.5 per\303\262 per\303\262 don't ; , \346\227\245\346\234\254 man quickly don't perch\303\251", "\"quoted\" , man \"quoted\"", "\346\227\245\346\234\254 quickly di \"quoted\" 50%", ". sea non &amp;", "per\303\262 don't don't &amp; 10-20 che \"quoted\" 1,000 50%", "2.5 (aside) \? per\303\262 \"quoted\" l'uomo sea man house (aside) 2.5 don't . red 1,000", "\"quoted\" \"quoted\" . quickly don't (aside) \"quoted\" di", "che per\303\262 perch\303\251 e.g.", "well-known ;", "e.g. house \"quoted\" per\303\262 non di perch\303\251 don't never don't old", "red well-known ; ; , 50% house", "", "never \"quoted\" red per\303\262 the sea well-known", "\? the", "(aside) the house , old \"quoted\" l'uomo ; 50%", "50% \346\227\245\346\234\254 di quickly quickly well-known sea", "\"quoted\" non 2.5 well-known house \? house", "perch\303\251", "the don't citt\303\240", "\"quoted\" house di e.g. man never 50% 10-20", "2.5 quickly red 10-20 \"quoted\" di di 1,000 e.g. the \"quoted\" che", "citt\303\240 ; che \346\227\245\346\234\254 50% quickly well-known", ". quickly citt\303\240 ,", "e.g. e.g. 10-20 never perch\303\251 l'uomo old citt\303\240 che sea l'uomo", "well-known", "citt\303\240 sea man sea red perch\303\251 2.5 don't che perch\303\251", "\346\227\245\346\234\254 never perch\303\251 citt\303\240 perch\303\251 don't ; well-known 2.5 never quickly", "perch\303\251", "well-known don't never the (aside) never (aside) ; &amp; . house", "\? old man (aside) l'uomo l'uomo well-known di sea old 2.5 1,000", ". 50% \? 2.5 ; sea the old \"quoted\" well-known old the"},
     {"e.g. old man man (aside) 10-20 red che &amp; l'uomo e.g. 2.5 1,000 perch\303\251", "red \? red never never the red \"quoted\" red", "citt\303\240 (aside) (aside) e.g. , red non don't di che , per\303\262 ;", "10-20 red 50% \346\227\245\346\234\254 perch\303\251 1,000 non \346\227\245\346\234\254 . 2.5 2.5 &amp;", "\346\227\245\346\234\254", "house old citt\303\240 per\303\262 old 1,000 citt\303\240 never l'uomo 50% \346\227\245\346\234\254 house", "che", "1,000 sea 10-20 \346\227\245\346\234\254 red che", "per\303\262 che che house 2.5 \"quoted\" . the 2.5 ,", ",", "; citt\303\240 non", "1,000 perch\303\251 well-known per\303\262 the", "per\303\262 never ; \346\227\245\346\234\254 di \346\227\245\346\234\254 old never", "sea", "red house ; che man never house", "quickly l'uomo \346\227\245\346\234\254 non quickly che &amp;", "&amp; . (aside) the ; \346\227\245\346\234\254 house perch\303\251 (aside) 2.5 di", "50% citt\303\240 perch\303\251 man", "non . quickly house", "50% house 1,000 house house man perch\303\251", ". 2.5 (aside) , sea &amp; (aside) 1,000 . ; e.g. .", "house man (aside) red \? sea &amp; well-known 50% man", "sea \?", "; never di ; 1,000 red", "sea , , che the &amp; perch\303\251 don't 50% che red don't", "never \? perch\303\251 quickly don't 10-20 l'uomo don't 50% per\303\262 \346\227\245\346\234\254 the", "quickly 1,000 che \346\227\245\346\234\254 citt\303\240 citt\303\240 quickly . &amp; perch\303\251 sea the perch\303\251", ", 1,000 50% ; , the", "che sea old red . don't , l'uomo 2.5 sea the 2.5 \? ,", "2.5 per\303\262 per\303\262 don't ; 10-20 \346\227\245\346\234\254 man ; per\303\262 quickly don't perch\303\251", "\"quoted\" (aside) man \"quoted\"", "\346\227\245\346\234\254 di ,", ". quickly non l'uomo", "per\303\262 don't don't &amp; 10-20 che \"quoted\" 1,000 50%", "2.5 \? perch\303\251 per\303\262 l'uomo man (aside) 2.5 don't . red 1,000", "\"quoted\" never 10-20 10-20 perch\303\251 don't \? 2.5 .", "che perch\303\251 old \"quoted\"", "well-known ,", "e.g. house \"quoted\" per\303\262 non di perch\303\251 don't never old", "red well-known don't ; , old 50% house", "1,000", "never red the sea well-known l'uomo", "\? the sea", "\346\227\245\346\234\254 the 10-20 10-20 ; \"quoted\" l'uomo ; 50%", "50% \346\227\245\346\234\254 di ; ; non \346\227\245\346\234\254", "\"quoted\" &amp; 2.5 &amp; house \? house", "perch\303\251", "quickly quickly don't citt\303\240", "\? old che non e.g. 10-20 never 10-20", "2.5 quickly red 10-20 \"quoted\" di 10-20 1,000 e.g. 50% ;", "citt\303\240 ; che \346\227\245\346\234\254 50% quickly well-known", "perch\303\251 quickly citt\303\240 . ,", "e.g. . never non perch\303\251 per\303\262 l'uomo citt\303\240 50% sea l'uomo", "well-known .", "citt\303\240 sea quickly sea red perch\303\251 non don't che man", "\346\227\245\346\234\254 e.g. \"quoted\" citt\303\240 perch\303\251 di don't ; well-known never per\303\262 quickly", "perch\303\251 \?", "well-known don't never ; 1,000 house (aside) ; (aside) ; &amp; .", "\? \? man l'uomo l'uomo sea well-known di sea old 2.5", ". 50% 2.5 ; perch\303\251 sea the old \"quoted\" well-known 10-20 per\303\262 the"},
     46.28800955526049, {73.40619307832422, 53.564154786150716, 41.23006833712984, 32.05128205128205}, 0.9695091256345612, 549, 566,
     60.981155716775994, 0.3656884875846501, 0.36346604215456674},
};

}  // namespace heed::goldens
