# Files of Hugging Face's tokenizers with models of the types Unigram and WordLevel, learned from TEXT: 10,000 texts, hostile ones
# among them, have the same ids here and there, ids decode to the same texts, and the file that Heed writes gives the same ids again.
#   tokenizer_files.py HEED TEXT
# HEED: the program in its build folder, beside libheed.a, against which tokens_judge.cpp is compiled. 77: a package is missing.
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import sentencepiece
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)

from tokenizer_texts import compiled_judge, hostile

SPECIAL = ['<pad>', '<s>', '</s>', '<unk>']
MORE = ['\u2581', '\u2581\u2581', '<unk>', '<unk><unk>', '<s>', '</s>', '<pad>', '<0x0A>', '<0xe2>', '   ', '``', "''", '\uff21\uff22', '\u2460', '\u33a1',
        'A\u0301', 'A\u0363', '\u0600A', '\u0344', '\u0f77', '\u1e9b\u0323', '\ua7cb', '\U00016ea0', '\u0897', '\U00010d69', '\U00011935\U00011930', '\u0958',
        '\u1100\u1161\u11a8', '\x7f', '\ufe0f', 'a\u200db', '\u2065A', '\u0600\ufff3', '\u1ac1\u0334\u0316', 'THE', '\u03a3', '\u01c4']


def proto_fields(message):
    """Numbers and values of the fields of a protocol buffer."""
    at = 0

    def varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        size = {0: 0, 1: 8, 5: 4}.get(tag & 7)
        if tag & 7 == 0:
            yield tag >> 3, varint()
            continue
        size = varint() if size is None else size
        yield tag >> 3, message[at:at + size]
        at += size


def precompiled(room, text, rules):
    """The normalizer of a sentencepiece model of these rules."""
    sentencepiece.SentencePieceTrainer.train(input=text, model_prefix=str(room / rules), vocab_size=300, normalization_rule_name=rules, minloglevel=2)
    model = dict(proto_fields((room / f'{rules}.model').read_bytes()))
    return normalizers.Precompiled(dict(proto_fields(model[3]))[2])


def recipes(room, text):
    """Name, model, normalizer, pre-tokenizer, decoder and whether unknown characters are bytes."""
    first = pre_tokenizers.Metaspace(prepend_scheme='first')
    blanks = normalizers.Replace(Regex(' {2,}'), '\u2581')
    yield ('as XLM-R', models.Unigram, normalizers.Sequence([precompiled(room, text, 'nmt_nfkc'), normalizers.Strip(left=False), blanks]),
           pre_tokenizers.Metaspace(), decoders.Metaspace(), False)
    yield ('as T5 was', models.Unigram, precompiled(room, text, 'nmt_nfkc'), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
           decoders.Metaspace(), True)
    yield ('as T5', models.Unigram, normalizers.Sequence([precompiled(room, text, 'nmt_nfkc'), normalizers.Strip(left=False), blanks]), first,
           decoders.Metaspace(prepend_scheme='first'), True)
    yield ('small letters', models.Unigram, precompiled(room, text, 'nmt_nfkc_cf'), pre_tokenizers.Metaspace(prepend_scheme='never'),
           decoders.Metaspace(prepend_scheme='never'), False)
    yield ('as LLaMA', models.Unigram, normalizers.Sequence([normalizers.Prepend('\u2581'), normalizers.Replace(' ', '\u2581')]), None,
           decoders.Sequence([decoders.Replace('\u2581', ' '), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(' ', 1, 0)]), True)
    yield ('as ALBERT', models.Unigram, normalizers.Sequence([normalizers.Replace('``', '"'), normalizers.Replace("''", ''), normalizers.NFKC(),
                                                              normalizers.Lowercase(), blanks]), pre_tokenizers.Metaspace(), decoders.Metaspace(), False)
    yield ('stripped', models.Unigram, normalizers.Sequence([normalizers.Strip(), normalizers.NFD()]), pre_tokenizers.Metaspace(), decoders.Metaspace(), False)
    yield ('first alone', models.Unigram, normalizers.Sequence([normalizers.NFKC(), normalizers.Replace('a', 'bb'), normalizers.Lowercase()]), first,
           decoders.Metaspace(), False)
    yield ('unsplit', models.Unigram, normalizers.NFC(), pre_tokenizers.Metaspace(replacement='_', split=False), decoders.Metaspace(replacement='_'), False)
    yield ('words', models.WordLevel, None, pre_tokenizers.Whitespace(), None, False)
    yield ('words of BERT', models.WordLevel, normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), None, False)
    yield ('words between blanks', models.WordLevel, normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase()]), pre_tokenizers.WhitespaceSplit(),
           None, False)
    yield ('words with marks', models.WordLevel, normalizers.BertNormalizer(lowercase=False), pre_tokenizers.Metaspace(), decoders.Metaspace(), False)


def made(path, text, recipe):
    """Learns a tokenizer from the text, and writes its file."""
    name, model, normalizer, pre_tokenizer, decoder, has_bytes = recipe
    if model is models.Unigram:
        tokenizer, trainer = Tokenizer(models.Unigram()), trainers.UnigramTrainer(vocab_size=700, special_tokens=SPECIAL, unk_token='<unk>', show_progress=False)
    else:
        tokenizer, trainer = Tokenizer(models.WordLevel(unk_token='<unk>')), trainers.WordLevelTrainer(vocab_size=900, special_tokens=SPECIAL, show_progress=False)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    # A text of one word has no pieces that repeat, so it is learned in words.
    tokenizer.pre_tokenizer = pre_tokenizer if pre_tokenizer is not None else pre_tokenizers.Metaspace()
    tokenizer.train([text], trainer)
    if decoder is not None:
        tokenizer.decoder = decoder
    if name == 'as LLaMA':
        tokenizer.post_processor = processors.TemplateProcessing(single='<s> $A', special_tokens=[('<s>', 1)])
    said = json.loads(tokenizer.to_str())
    if pre_tokenizer is None:
        said['pre_tokenizer'] = None
    if has_bytes:
        said['model']['byte_fallback'] = True
        said['model']['vocab'] += [[f'<0x{byte:02X}>', -20.0] for byte in range(256)]
    path.write_text(json.dumps(said))
    return Tokenizer.from_file(str(path))


def main():
    parser = argparse.ArgumentParser(description='Holds files of Unigram and WordLevel to the package tokenizers.')
    parser.add_argument('heed')
    parser.add_argument('text')
    args = parser.parse_args()
    heed, text, failed = os.path.abspath(args.heed), os.path.abspath(args.text), False
    lines = [line.rstrip('\n') for line in open(text, encoding='utf-8') if len(line.split()) > 3]
    texts = ['', ' ', '  ', '\u2581', '<s>', '\x00', *hostile(lines, 10000, MORE)]
    with tempfile.TemporaryDirectory() as place:
        room = pathlib.Path(place)
        compiled_judge(heed, room)
        (room / 'texts.json').write_text(json.dumps(texts))
        for recipe in recipes(room, text):
            theirs = made(room / 'tokenizer.json', text, recipe)
            subprocess.run([room / 'tokens_judge', 'file', room / 'tokenizer.json', room / 'texts.json', room / 'out.json', room / 'written.json'], check=True)
            ours = json.loads((room / 'out.json').read_text())
            wanted = [one.ids for one in theirs.encode_batch(texts, add_special_tokens=False)]
            decoded = [theirs.decode(ids) for ids in wanted]
            again = [one.ids for one in Tokenizer.from_file(str(room / 'written.json')).encode_batch(texts, add_special_tokens=False)]
            wrong = [i for i, ids in enumerate(wanted) if not ids == ours['ids'][i] == again[i]]
            other = [i for i, one in enumerate(decoded) if one != ours['texts'][i]]
            failed = failed or bool(wrong or other)
            print(f'{recipe[0]}: {len(texts)} texts, {sum(map(len, wanted))} tokens: {len(wrong)} texts differ, {len(other)} texts of their ids differ', flush=True)
            for i in wrong[:4]:
                print(f'  {texts[i]!r}\n    {ours["ids"][i]}\n    {wanted[i]}\n    {[theirs.id_to_token(k) for k in wanted[i]]}')
            for i in other[:4]:
                print(f'  {texts[i]!r}\n    {ours["texts"][i]!r}\n    {decoded[i]!r}')
    sys.exit(1 if failed else 0)


main()
