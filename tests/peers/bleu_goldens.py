# Computes with sacreBLEU and jiwer what tests/train/score_goldens.h holds: python3 bleu_goldens.py > score_goldens.h
# Needs the Python packages sacrebleu and jiwer. The sentences are made up here.
import random

import jiwer
import sacrebleu
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

TOKENS = [
    'The price is 1,000.50 euros, or 2.5 per cent.',
    'Il prezzo è di 1.000,50 euro; il 2,5 per cento.',
    "Dell'acqua, l'uomo (vecchio) disse: «Non c'è più!»",
    'A well-known 10-year-old 3-D film from 1999-2001.',
    '&quot;Salt &amp; pepper&quot; &lt;b&gt; &amp;lt; &apos;x&apos;',
    'Wait... what?! No,no. Yes,3 or 3,yes .5 5. ,5 5,',
    'a.b.c 1.2.3 e.g., i.e. U.S.A.',
    'tabs\tand\u00a0hard spaces\u2003and  doubles  ',
    'trailing dash-\n',
    'line-\nbreak and\nanother <skipped> one',
    '',
    '   ',
    'e-mail: x_y@z.it #1 $5 100% ~a ^b `c` {d} [e] |f| \\g/ +h= *i',
    'Σωκράτης — „déjà vu“ … 日本語、テスト。 🙂',
    "don't 'quoted' rock 'n' roll -- 5- -5 5-5 a-5",
    '...', '-', '1', '.', "'", '1.', ',1', '1,,1', '..1..',
    'unit\u001fseparator and\u0085next line\u3000wide',
]

SETS = {
    'plain': (
        ['The old man smiled.', 'Il gatto nero dorme sulla tavola.', 'It costs 1,000.5 euros.'],
        ['The old man smiled.', 'Il gatto nero dormiva sulla tavola.', 'It costs 1,000.5 dollars.']),
    'perfect': (
        ['Where is the red house of my brother?', "L'amica di Maria non l'ha vista ieri."],
        ['Where is the red house of my brother?', "L'amica di Maria non l'ha vista ieri."]),
    'nothing matches': (['alpha beta gamma delta'], ['uno due tre quattro cinque']),
    'one word matches': (
        ['the a b c d', 'x y z'],
        ['the uno due tre quattro', 'sei sette otto nove']),
    'short output': (
        ['The cat sat', 'He said'],
        ['The cat sat on the big mat in the sun.', 'He said that he would come home very late.']),
    'long output': (
        ['The cat sat on the mat on the mat on the mat.', 'Yes, yes, yes, yes.'],
        ['The cat sat on the mat.', 'Yes.']),
    'too short for 4-grams': (['a b', 'c'], ['a b', 'c']),
    'empty output among others': (
        ['', 'The woman reads a book about the sea.', '   '],
        ['Something was here.', 'The woman reads a book about the sea.', 'And here too.']),
    'all empty': (['', ''], ['one two', 'three']),
    'empty reference': (['one two three four five', 'the red house is big'], ['', 'the red house is big']),
    'entities and quotes': (
        ['&quot;Salt &amp; pepper&quot;, he said, "is all I need."', "«Perché no?», disse l'uomo-ombra."],
        ['"Salt & pepper", he said, "is all that I need."', '«Perché no», disse l’uomo-ombra.']),
    'unicode': (
        ['Però la città è più bella di così.', 'Ĉu vi parolas Esperanton? 🙂 ja!', '日本語 の テスト です 。'],
        ['Però la città era più bella di così.', 'Ĉu vi parolas Esperanton? 🙂 jes!', '日本語 の テスト でした 。']),
    'case': (['THE OLD MAN SMILED AT me today'], ['the old man smiled at me today']),
}

ENGLISH = ('the old man house sea red quickly never 1,000 2.5 "quoted" (aside) don\'t well-known , . ; ? '
           'città perché però l\'uomo di che non &amp; 10-20 e.g. 50% 日本').split()


def random_set(seed, sentences):
    source = random.Random(seed)
    outputs, references = [], []
    for _ in range(sentences):
        words = [source.choice(ENGLISH) for _ in range(source.randint(1, 14))]
        other = []
        for word in words:
            kind = source.random()
            if kind < 0.12:
                continue
            other.append(source.choice(ENGLISH) if kind < 0.3 else word)
            if kind > 0.92:
                other.append(source.choice(ENGLISH))
        references.append(' '.join(words))
        outputs.append(' '.join(other))
    return outputs, references


SETS['drawn by lot, 12 sentences'] = random_set(1, 12)
SETS['drawn by lot, 60 sentences'] = random_set(2, 60)


def quoted(text):
    """A C++ string literal of the UTF-8 bytes."""
    out = ''
    for byte in text.encode('utf-8'):
        char = chr(byte)
        if char in '"\\?':
            out += '\\' + char  # a question mark may begin a trigraph
        elif 32 <= byte < 127:
            out += char
        else:
            out += '\\%03o' % byte  # three octal digits cannot run into what follows
    return '"' + out + '"'


def listed(texts):
    return '{' + ', '.join(quoted(text) for text in texts) + '}'


def main():
    print('// Scores and tokens computed by sacreBLEU %s and jiwer; made by tests/peers/bleu_goldens.py.' %
          sacrebleu.__version__)
    print('// clang-format off')
    print('#pragma once\n\n#include <array>\n#include <cstdint>\n#include <string>\n#include <vector>\n')
    print('namespace heed::goldens {\n')
    print('/// A sentence and its 13a tokens.')
    print('struct Tokens {\n  std::string sentence;\n  std::vector<std::string> tokens;\n};\n')
    print('inline const std::vector<Tokens> tokens = {')
    tokenizer = Tokenizer13a()
    for sentence in TOKENS:
        print('    {%s,\n     %s},' % (quoted(sentence), listed(tokenizer(sentence.rstrip()).split())))
    print('};\n')
    print('/// Sentences, references, and what the peers make of them.')
    print('struct Scores {\n  std::string name;\n  std::vector<std::string> outputs;\n'
          '  std::vector<std::string> references;\n  double bleu;\n  std::array<double, 4> precisions;\n'
          '  double brevity_penalty;\n  int64_t length;\n  int64_t reference_length;\n  double chrf;\n'
          '  double wer;  ///< negative where the peer refuses empty references\n  double cer;\n};\n')
    print('inline const std::vector<Scores> scores = {')
    for name, (outputs, references) in SETS.items():
        bleu = sacrebleu.BLEU().corpus_score(outputs, [references])
        chrf = sacrebleu.CHRF().corpus_score(outputs, [references])
        words = characters = -1.0
        if all(reference.strip() for reference in references):
            words = jiwer.wer(references, outputs)
            strip = name != 'empty output among others'  # jiwer strips sentences before it counts characters
            characters = jiwer.cer(references, outputs) if strip else -1.0
        print('    {%s,\n     %s,\n     %s,' % (quoted(name), listed(outputs), listed(references)))
        print('     %r, {%s}, %r, %d, %d,\n     %r, %r, %r},' % (
            bleu.score, ', '.join(repr(p) for p in bleu.precisions), float(bleu.bp), bleu.sys_len, bleu.ref_len,
            chrf.score, float(words), float(characters)))
    print('};\n\n}  // namespace heed::goldens')


if __name__ == '__main__':
    main()
