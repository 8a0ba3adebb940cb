// From files or the phrasebook to batches of token ids.
#include "heed/train/tasks/language/translate_data.h"

#include <algorithm>

#include "heed/core/counted_work.h"
#include "heed/core/io/hash.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/data/synthetic/phrasebook/phrasebook.h"
#include "heed/data/tokenizers/sentencepiece.h"
#include "heed/data/tokenizers/vocabulary.h"
#include "heed/train/decode/translator.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/tasks/find_data.h"

namespace heed {

void TranslateOptions::fields(Fields& f) {
  f("path", path, "TSV (plain or gzip), Moses pair, or JSON lines; empty: the embedded phrasebook");
  f("from", from, "source language, as file names and JSON keys spell it");
  f("into", into, "target language");
  f("num_examples", num_examples, {1, 1'000'000}, "sentence pairs to generate from the embedded phrasebook");
  f("tokenizer", Choice(tokenizer, {"word", "unigram", "bpe"}), "pieces of text");
  f("vocabulary", vocabulary, {8, max_positions}, "subword pieces");
  f("joint", joint, "one subword vocabulary for both languages");
  f("min_frequency", min_frequency, {1, max_integer}, "minimum count of a word in the vocabulary");
  f("vocab_size", vocab_size, {5, max_integer}, "maximum number of words in the vocabulary");
  f("join_with_spaces", join_with_spaces,
    "join words with spaces in outputs and references, as the published recipe does");
  f("vocabulary_on_all", vocabulary_on_all,
    "count words of held-out pairs too, as the published recipe does");
  f("source_vocabulary", source_vocabulary, "a word-level tokenizer file (JSON) instead of counting");
  f("target_vocabulary", target_vocabulary,
    "a word-level tokenizer file (JSON) of the target language instead of counting");
  f("deduplicate", deduplicate, "drop exact repeats before the split");
  f("max_length", max_length, {0, max_integer},
    "maximum number of words per sentence; longer pairs are dropped; 0: keep all");
  f("validation", validation, {0, max_integer},
    "pairs held out for validation, which chooses the best checkpoint");
  f("test_size", test_size, {0, max_integer}, "pairs held out for the test");
  f("split_seed", split_seed, "seed of the shuffle before pairs are held out");
  f("buckets", buckets, "batches of like length");
  f("fixed_length", fixed_length, {0, max_integer},
    "pad every row to this length; 0: to the longest of the batch");
  f("shapes", Choice(shapes, {"auto", "exact", "few"}),
    "pad batches so that they have few shapes, whose steps a device replays; auto: there alone");
  f("bleu_pairs", bleu_pairs, {0, max_integer}, "validation pairs translated at each validation");
}

void TranslateData::load_tokenizers(const std::vector<NamedBytes>& artifacts) {
  source_ = artifact_tokenizer(artifacts, "source");
  target_ = artifact_tokenizer(artifacts, "target");
  if (!source_)
    fail(Fault::data,
         "translate: the checkpoint holds no tokenizer. Its files are tokenizer.source.* and "
         "tokenizer.target.*.");
}

std::vector<NamedBytes> TranslateData::artifacts() const {
  std::vector<NamedBytes> out{{"tokenizer.source." + source_->kind(), source_->save()}};
  if (target_) out.push_back({"tokenizer.target." + target_->kind(), target_->save()});
  return out;
}

void TranslateData::train_tokenizers(const ParallelCorpus& corpus,
                                     const std::function<void(const std::string&)>& log) {
  std::vector<Pair> seen = corpus.train;
  if (options.vocabulary_on_all) {
    seen.insert(seen.end(), corpus.validation.begin(), corpus.validation.end());
    seen.insert(seen.end(), corpus.test.begin(), corpus.test.end());
  }
  if (options.tokenizer == TokenizerChoice::word) {
    const auto make = [&](const std::string& path, const std::vector<std::string_view>& sentences) {
      Vocabulary vocabulary = path.empty()
                                  ? Vocabulary::train(sentences, {.min_frequency = options.min_frequency,
                                                                  .max_size = options.vocab_size})
                                  : Vocabulary::load_huggingface(find_data(path));
      return make_word_tokenizer(std::move(vocabulary),
                                 options.join_with_spaces ? Joining::blanks : Joining::natural);
    };
    source_ = make(options.source_vocabulary, sources(seen));
    target_ = make(options.target_vocabulary, targets(seen));
  } else {
    log(text("vocabulary  learning ", options.vocabulary,
             options.joint ? " subwords" : " subwords a language", " from ", seen.size(), " sentence pairs"));
    const SubwordOptions subwords{
        .model = options.tokenizer == TokenizerChoice::bpe ? SubwordModel::bpe : SubwordModel::unigram,
        .size = options.vocabulary};
    if (options.joint) {
      std::vector<std::string_view> both = sources(seen);
      const std::vector<std::string_view> translations = targets(seen);
      both.insert(both.end(), translations.begin(), translations.end());
      source_ = train_sentencepiece(both, subwords);
    } else {
      source_ = train_sentencepiece(sources(seen), subwords);
      target_ = train_sentencepiece(targets(seen), subwords);
    }
  }
  log(target_ ? text("vocabulary  ", source_->size(), " source, ", target_->size(), " target")
              : text("vocabulary  ", source_->size(), " subwords, one for both languages"));
}

std::vector<EncodedPair> TranslateData::encode(const std::vector<Pair>& pairs, bool drop_long,
                                               int64_t& long_pairs) const {
  std::vector<EncodedPair> all(pairs.size());
  constexpr int64_t pairs_per_step = 4096;  // work is counted in steps
  const auto count = static_cast<int64_t>(pairs.size());
  CountedWork work(static_cast<double>(count), "encoding pairs");
  for (int64_t first = 0; first < count; first += pairs_per_step) {
    const int64_t rows = std::min(pairs_per_step, count - first);
    parallel_rows(rows, 256, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(first + begin); i < static_cast<size_t>(first + end); ++i) {
        all[i] = {source().encode(pairs[i].source), target().encode(pairs[i].target)};
      }
    });
    work.add(static_cast<double>(rows));
  }
  // Start and end tokens take one or two positions of the source and one of the target.
  const auto max_source = static_cast<size_t>(source_room(source(), max_length)),
             max_target = static_cast<size_t>(max_length - 1);
  std::vector<EncodedPair> out;
  out.reserve(all.size());
  for (EncodedPair& pair : all) {
    if (pair.source.size() > max_source || pair.target.size() > max_target) {
      ++long_pairs;
      if (drop_long) continue;
      pair.source.resize(std::min(pair.source.size(), max_source));
      pair.target.resize(std::min(pair.target.size(), max_target));
    }
    out.push_back(std::move(pair));
  }
  return out;
}

void TranslateData::load(const Config& config, const std::vector<NamedBytes>& saved_tokenizers,
                         const std::function<void(const std::string&)>& log) {
  max_length = config.model.max_length;
  decode = config.decode;
  smoothing = config.train.label_smoothing;
  carries_packing = default_device == Device::cuda && config.model.kind != ModelKind::seq2seq;
  if (max_length < 4) fail("model.max_length = ", max_length, ". Sentences need at least 4.");
  if (options.fixed_length > max_length)
    fail("data.fixed_length = ", options.fixed_length,
         ". It must be 0, or at most model.max_length = ", max_length, ".");
  PairFile file;
  if (options.path.empty()) {
    file.pairs = phrasebook({.count = options.num_examples});
    file.format = "embedded phrasebook";
    file.lines = static_cast<int64_t>(file.pairs.size());
    log("data        an English-Italian grammar of our own; real text: --data FILE, or heed data get "
        "opus_books");
  } else {
    file = read_pairs(find_data(options.path), {.source = options.from, .target = options.into});
  }
  ParallelCorpus corpus;
  if (all_for_test) {
    corpus = whole_as_test(std::move(file));
  } else {
    corpus = make_corpus(std::move(file), {.validation = options.validation,
                                           .test = options.test_size,
                                           .max_words = options.max_length,
                                           .deduplicate = options.deduplicate,
                                           .seed = static_cast<uint64_t>(options.split_seed)});
  }
  log("data        " + to_string(corpus.report));
  if (saved_tokenizers.empty()) {
    train_tokenizers(corpus, log);
  } else {
    load_tokenizers(saved_tokenizers);
  }
  BatchOptions batches{
      .tokens = config.train.batch_size > 0 ? 0 : config.train.batch_tokens,
      .sentences = config.train.batch_size,
      .buckets = options.buckets,
      .fixed_length = options.fixed_length,
      .few_shapes = options.shapes == ShapeChoice::few ||
                    (options.shapes == ShapeChoice::automatic && default_device == Device::cuda),
      .max_columns = max_length,
      .seed = static_cast<uint64_t>(config.train.seed),
      .special = source_->special()};
  int64_t dropped = 0;
  cut = 0;
  train = std::make_unique<PairBatches>(encode(corpus.train, true, dropped), batches);
  // Scores do not depend on batching, so held-out pairs are always batched by length.
  batches.sentences = 0;
  batches.tokens = std::max<int64_t>(batches.tokens, 4096);
  batches.buckets = true;
  batches.fixed_length = 0;
  batches.few_shapes = false;
  validation = std::make_unique<PairBatches>(encode(corpus.validation, false, cut), batches);
  test = std::make_unique<PairBatches>(encode(corpus.test, false, cut), batches);
  validation_text = std::move(corpus.validation);
  test_text = std::move(corpus.test);
  if (all_for_test && test->size() == 0)
    fail(Fault::data, "translate: ", options.path, " holds no pair. Give a file with sentence pairs.");
  if (!all_for_test && train->size() == 0)
    fail(Fault::data, "translate: no training pair fits into model.max_length = ", max_length, ". Raise it.");
  if (!all_for_test && validation->size() == 0)
    fail(Fault::data, "translate: no pair is held out. Set data.validation above 0.");
  log(text("pairs       ", train->size(), " train, ", validation->size(), " validation, ", test->size(),
           " test",
           dropped + cut > 0
               ? text("; ", dropped, " too long for model.max_length, left out; ", cut, " held-out ones cut")
               : std::string()));
  metadata_ = {{"data", to_string(corpus.report)},
               {"train_pairs", text(train->size())},
               {"validation_pairs", text(validation->size())},
               {"test_pairs", text(test->size())},
               {"source_vocabulary", text(source().size())},
               {"target_vocabulary", text(target().size())}};
  for (const SourceFile& source_file : corpus.report.files)
    metadata_.emplace_back("sha256 " + Path(source_file.path).filename().string(), source_file.sha256);
  for (const NamedBytes& artifact : artifacts())
    metadata_.emplace_back(artifact.name + " sha256", sha256_hex(artifact.bytes));
}

std::string TranslateData::reference(const std::string& text) const {
  if (!options.join_with_spaces) return text;
  std::string out;
  for (const std::string_view piece : word_pieces(text)) out += (out.empty() ? "" : " ") + std::string(piece);
  return out;
}

}  // namespace heed
