# Folders of Hugging Face's Transformers in and out. In: a LLaMA of the package transformers with random weights, tied and
# untied, and a tokenizer of its own, byte pairs or Unigram, through `heed import`: the attention maps and 40 greedy tokens are the same. Out: a model of
# LLaMA's shape and one of GPT-2's that Heed trained through `heed export --as huggingface`: the tokens of a text are the same,
# and its loss is that of `heed evaluate`. Both ways: Marians with random weights and sentencepiece models of their own: maps,
# probabilities of tokens, greedy translations and those of a beam of 4 are the same, and what goes in and out has the same bytes.
#   huggingface_folders.py HEED TEXT    TEXT: a file to learn tokenizers and models from
# 77: a package is missing.
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import safetensors.torch
    import sentencepiece
    import torch
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import (AutoModelForCausalLM, AutoTokenizer, GenerationConfig, LlamaConfig, LlamaForCausalLM, MarianConfig, MarianMTModel,
                              MarianTokenizer, PreTrainedTokenizerFast)
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)

from tokenizer_texts import compiled_judge

PROMPT = "The animal didn't cross the street, because it was too tired:\n  1,024 caffè"
WINDOW = 256  # tokens of the trained models' texts: the scored one is a window and the token behind it
SHAPES = {
    'llama': '--activation swiglu --norm-scale rms --position rope --kv-heads 2 --position-base 20000 --attention-bias false '
             '--feed-forward-bias false --output-bias false --tie-embeddings none --scale-embedding false',
    'gpt2': '--activation gelu_tanh --position learned --attention-bias true --feed-forward-bias true --output-bias false '
            '--tie-embeddings output --scale-embedding false',
}


CODED = {  # attentions that go out with modeling_heed.py, and the shape of their models
    'fastmax': 'llama', 'fastmax:p=4,epsilon=0.1': 'gpt2', 'fastmax:p=1,normalise=none,denum_term=2': 'llama', 'linear': 'gpt2', 'linear:epsilon=1e-3': 'llama'}


def unigram(text):
    """A tokenizer of the type Unigram, as T5 has, without a normalizer."""
    learned = Tokenizer(models.Unigram())
    learned.normalizer, learned.pre_tokenizer, learned.decoder = normalizers.NFKC(), pre_tokenizers.Metaspace(), decoders.Metaspace()
    learned.train([text], trainers.UnigramTrainer(vocab_size=600, special_tokens=['<pad>', '<s>', '</s>', '<unk>'], unk_token='<unk>', show_progress=False))
    return PreTrainedTokenizerFast(tokenizer_object=learned, bos_token='<s>', eos_token='</s>', unk_token='<unk>', pad_token='<pad>')


def byte_pairs(text):
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    bpe.decoder = decoders.ByteLevel()
    bpe.train([text], trainers.BpeTrainer(vocab_size=600, special_tokens=['<|endoftext|>'], show_progress=False,
                                          initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token='<|endoftext|>', eos_token='<|endoftext|>')


def made(folder, text, is_tied, learn=byte_pairs):
    tokenizer = learn(text)
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=len(tokenizer), hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=128, rope_parameters={'rope_type': 'default', 'rope_theta': 20000.0},
                         rope_theta=20000.0, initializer_range=0.3, tie_word_embeddings=is_tied, bos_token_id=0, eos_token_id=0,
                         attn_implementation='eager')
    model = LlamaForCausalLM(config).eval()
    for weight in model.parameters():  # the scales of norms begin at 1: that would hide a mistake
        if weight.dim() == 1:
            torch.nn.init.normal_(weight.data, 1.0, 0.2)
    model.save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


MARIANS = {  # sizes of models, and how their beams count lengths
    'swish': ({'d_model': 36, 'heads': 3, 'ffn': 50, 'layers': 2, 'activation_function': 'swish', 'scale_embedding': True}, 1.0),
    'relu': ({'d_model': 28, 'heads': 2, 'ffn': 44, 'layers': 3, 'activation_function': 'relu', 'scale_embedding': False}, 0.0),
    'gelu': ({'d_model': 40, 'heads': 5, 'ffn': 24, 'layers': 1, 'activation_function': 'gelu', 'scale_embedding': True}, 0.6),
}


def marian(folder, lines, kind):
    """A Marian with random weights whose translations end, and its tokenizer."""
    folder.mkdir()
    half, pieces = len(lines) // 2, []
    for name, part, model_type in (('source', lines[:half], 'unigram'), ('target', lines[half:], 'bpe')):
        (folder / f'{name}.txt').write_text('\n'.join(part))
        sentencepiece.SentencePieceTrainer.train(input=str(folder / f'{name}.txt'), model_prefix=str(folder / name), vocab_size=140,
                                                 model_type=model_type, minloglevel=2)
        os.rename(folder / f'{name}.model', folder / f'{name}.spm')
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / f'{name}.spm'))
        pieces += [model.id_to_piece(i) for i in range(3, model.get_piece_size())]
    words = ['</s>', '<unk>', '>>ita<<', *dict.fromkeys(pieces), '<pad>']
    (folder / 'vocab.json').write_text(json.dumps({word: i for i, word in enumerate(words)}))
    tokenizer = MarianTokenizer(str(folder / 'source.spm'), str(folder / 'target.spm'), str(folder / 'vocab.json'), model_max_length=64)
    sizes, penalty = MARIANS[kind]
    pad = len(words) - 1
    same = {f'{side}_{key}': value for side in ('encoder', 'decoder')
            for key, value in (('layers', sizes['layers']), ('attention_heads', sizes['heads']), ('ffn_dim', sizes['ffn']))}
    torch.manual_seed(1)
    config = MarianConfig(vocab_size=len(words), d_model=sizes['d_model'], max_position_embeddings=64, init_std=0.25, pad_token_id=pad, eos_token_id=0,
                          decoder_start_token_id=pad, forced_eos_token_id=None, activation_function=sizes['activation_function'],
                          scale_embedding=sizes['scale_embedding'], attn_implementation='eager', **same)
    model = MarianMTModel(config).eval()
    for weight in model.parameters():  # gains begin at 1 and biases at 0: that would hide a mistake
        if weight.dim() == 1:
            torch.nn.init.normal_(weight.data, float(weight.data.mean()), 0.2)
    model.final_logits_bias.normal_(0, 1)
    model.final_logits_bias[0, 0] += 2  # the end
    model.generation_config = GenerationConfig(pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad, bad_words_ids=[[pad]], max_length=64,
                                               num_beams=4, length_penalty=penalty, renormalize_logits=kind == 'relu')
    for beams in (1, 4):  # with some texts the end is the likeliest first token: equal empty translations would show nothing
        for _ in range(20):
            if translation(model, tokenizer, lines[0], beams):
                break
            model.final_logits_bias[0, 0] -= 1
        else:
            sys.exit(f'Marian {kind}: no text by a beam of {beams} for {lines[0]!r}, however unlikely the end is')
    model.save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def translation(model, tokenizer, line, beams):
    return tokenizer.decode(model.generate(**tokenizer(line, return_tensors='pt'), num_beams=beams)[0], skip_special_tokens=True)


class Judge:
    """Runs heed in one folder and keeps whether a check failed."""

    def __init__(self, heed, text, room):
        self.program, self.text, self.room, self.failed = os.path.abspath(heed), os.path.abspath(text), room, False

    def heed(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.room, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f'heed {" ".join(words)}: {done.stderr}')
        return done.stdout

    def check(self, what, holds, numbers):
        self.failed = self.failed or not holds
        print(f'{what}: {numbers}{"" if holds else "  FAILED"}')

    def goes_in(self, kind):
        model, tokenizer = made(self.room / kind, self.text, kind == 'tied', unigram if kind == 'unigram' else byte_pairs)
        self.heed('import', kind, '--name', kind)
        self.heed('inspect', f'runs/{kind}', PROMPT, '--out', f'maps-{kind}')
        ids = tokenizer(PROMPT, return_tensors='pt').input_ids
        theirs = model(ids, output_attentions=True).attentions
        after = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=40, do_sample=False, pad_token_id=0)[0][ids.shape[1]:]
        apart = max(float(np.abs(np.load(self.room / f'maps-{kind}' / f'decoder-self-{layer}.npy') - weights[0].numpy()).max())
                    for layer, weights in enumerate(theirs))
        self.check(f'in, {kind}, {len(theirs)} layers of maps of {ids.shape[1]} tokens', apart <= 1e-5, f'{apart:.2e} apart, at most 1e-05')
        wanted = tokenizer.decode(after)
        said = self.heed('generate', f'runs/{kind}', '--prompt', PROMPT, '--max-new-tokens', '40', '--temperature', '0')
        same = len(wanted.strip()) > 20 and wanted.strip() in said
        self.check(f'in, {kind}, {len(after)} greedy tokens', same, 'the same' if same else f'{said!r} here, {wanted!r} there')

    def out_again(self, kind):
        """What goes out has the tokens of what went in."""
        self.heed('export', f'runs/{kind}', '--as', 'huggingface', '--out', f'{kind}-out')
        before, after = (AutoTokenizer.from_pretrained(self.room / folder) for folder in (kind, f'{kind}-out'))
        lines = [line for line in open(self.text, encoding='utf-8').read().split('\n')[:2000]] + [PROMPT, 'a</s>b', '\ufb01\u2581']
        same = sum(before(line).input_ids == after(line).input_ids for line in lines)
        named = all(getattr(before, name) == getattr(after, name) for name in ('bos_token', 'eos_token', 'unk_token', 'pad_token'))
        self.check(f'in and out, {kind}, tokens of {len(lines)} lines', same == len(lines) and named, f'{same} the same, names of tokens {"too" if named else "not"}')

    def in_parts(self, kind):
        """The same model in several files is the same weights, and special tokens of a prompt have their ids."""
        model, tokenizer = AutoModelForCausalLM.from_pretrained(self.room / kind), AutoTokenizer.from_pretrained(self.room / kind)
        parts = self.room / f'{kind}-parts'
        model.save_pretrained(parts, max_shard_size='60KB')
        tokenizer.save_pretrained(parts)
        count = len(list(parts.glob('*.safetensors')))
        self.heed('import', f'{kind}-parts', '--name', f'{kind}-parts')
        one, other = (safetensors.torch.load_file(self.room / 'runs' / run / 'ckpt/step_000000/model.safetensors') for run in (kind, f'{kind}-parts'))
        same = count > 2 and one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
        self.check(f'in, {kind}, {count} files', same, f'{len(one)} tensors, the same' if same else 'other tensors')
        prompt = f'{tokenizer.eos_token}The moon{tokenizer.eos_token}{tokenizer.eos_token}and'
        ids = tokenizer(prompt, return_tensors='pt').input_ids
        after = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, do_sample=False, pad_token_id=0)[0][ids.shape[1]:].tolist()
        special = [i for i, token in enumerate(after) if token in tokenizer.all_special_ids]
        wanted = prompt + tokenizer.decode(after[:special[0] if special else None])
        said = self.heed('generate', f'runs/{kind}', '--parse-special', '--prompt', prompt, '--max-new-tokens', '20', '--temperature', '0')
        same = said.rstrip('\n') == wanted.rstrip('\n') and (ids == tokenizer.eos_token_id).sum() == 3
        self.check(f'in, {kind}, a prompt of {ids.shape[1]} tokens with special ones', same, 'the same text' if same else f'{said!r} here, {wanted!r} there')

    def goes_out(self, shape, attention='softmax'):
        name = shape if attention == 'softmax' else attention.replace(':', '-').replace('=', '-').replace(',', '-')
        self.heed('train', 'lm', '--data', self.text, '--tokenizer', 'byte_pair', '--vocabulary', '600', '--d-model', '48', '--heads', '4',
                  '--layers', '3', '--d-ff', '96', '--max-length', str(WINDOW), '--steps', '20', '--batch-size', '2', '--name', name, '--quiet',
                  '--attention', attention, *SHAPES[shape].split())
        coded = attention != 'softmax'
        self.heed('export', f'runs/{name}', '--as', 'huggingface', '--out', name, *(['--code'] if coded else []))
        model = AutoModelForCausalLM.from_pretrained(self.room / name, trust_remote_code=coded).eval()
        tokenizer = AutoTokenizer.from_pretrained(self.room / name, trust_remote_code=coded)
        classes = {'llama': 'HeedLlamaForCausalLM', 'gpt2': 'HeedGpt2ForCausalLM'} if coded else {'llama': 'LlamaForCausalLM', 'gpt2': 'GPT2LMHeadModel'}
        self.check(f'out, {name}, the class', type(model).__name__ == classes[shape], type(model).__name__)
        content = open(self.text, 'rb').read()[:20 * WINDOW].decode('utf-8', 'ignore')
        text = next(content[:end] for end in range(WINDOW, len(content)) if len(tokenizer(content[:end]).input_ids) == WINDOW + 1)
        (self.room / 'scored.txt').write_text(text)
        ids = tokenizer(text, return_tensors='pt').input_ids
        same = tokenizer.decode(ids[0]) == text
        self.check(f'out, {name}, {ids.shape[1]} tokens decoded', same, 'the text' if same else 'another text')
        scored = json.loads(self.heed('evaluate', f'runs/{name}', '--data', 'scored.txt', '--json'))
        loss = float(torch.nn.functional.cross_entropy(model(ids[:, :-1]).logits[0].double(), ids[0, 1:]))
        apart = abs(scored['loss'] - loss) / loss
        self.check(f'out, {name}, loss of {ids.shape[1] - 1} tokens, {loss:.6f} nats there', apart <= 1e-5, f'{apart:.2e} apart, at most 1e-05')
        if coded:
            self.same_logits(name, model, ids[:, :-1])

    def same_logits(self, name, model, ids):
        """Logits of a run and of the model that went out, of tokens at once, and one by one and in a padded batch there."""
        self.compiled_logits()
        subprocess.run([self.room / 'model_logits', f'runs/{name}', 'logits.npy', *map(str, ids[0].tolist())], cwd=self.room, check=True)
        ours = torch.from_numpy(np.load(self.room / 'logits.npy')).reshape(1, ids.shape[1], -1)
        steps, cache = [], None
        for t in range(ids.shape[1]):
            made = model(ids[:, t:t + 1], past_key_values=cache, use_cache=True)
            steps.append(made.logits)
            cache = made.past_key_values
        padded = torch.cat([torch.zeros_like(ids[:, :9]), ids], 1)
        mask = torch.ones_like(padded)
        mask[:, :9] = 0
        places = (mask.cumsum(-1) - 1).clamp(min=0)
        for how, theirs in (('at once', model(ids).logits), ('one by one', torch.cat(steps, 1)),
                            ('padded', model(padded, attention_mask=mask, position_ids=places).logits[:, 9:])):
            apart = float((ours - theirs).abs().max() / theirs.abs().max())
            self.check(f'out, {name}, logits of {ids.shape[1]} tokens {how}', apart <= 1e-5, f'{apart:.2e} apart, at most 1e-05')

    def compiled_logits(self):
        if not (self.room / 'model_logits').exists():
            compiled_judge(self.program, self.room, 'model_logits')


    def translates(self, kind, lines):
        model, tokenizer = marian(self.room / kind, lines, kind)
        self.heed('import', kind, '--name', kind)
        sentences = [line.strip() for line in lines[:40] if line.strip()][:4] + ['>>ita<< a \u65e5 z', '</x> 1,024']
        for line in sentences:
            said, target = json.loads(self.heed('inspect', f'runs/{kind}', f'{line} ||| {lines[-1].strip()}', '--logit-lens', '--json')), lines[-1].strip()
            ids = tokenizer(line, return_tensors='pt').input_ids
            with_start = torch.tensor([[model.config.pad_token_id, *tokenizer(text_target=target).input_ids[:-1]]])
            log_p = model(ids, decoder_input_ids=with_start).logits[0].double().log_softmax(-1)
            ours = [[(guess['token'], np.log(guess['probability'])) for guess in cell['best']] for cell in said['cells'][-1]]
            apart = max(abs(value - float(log_p[t, tokenizer.convert_tokens_to_ids(token)])) / max(abs(value), 1)
                        for t, cell in enumerate(ours) for token, value in cell)
            if line == sentences[0]:
                self.heed('inspect', f'runs/{kind}', f'{line} ||| {target}', '--out', f'maps-{kind}')
                theirs = model(ids, decoder_input_ids=with_start, output_attentions=True)
                maps = max(float(np.abs(np.load(self.room / f'maps-{kind}' / f'{name}-{layer}.npy') - one[0].numpy()).max())
                           for name, all_layers in (('encoder-self', theirs.encoder_attentions), ('decoder-self', theirs.decoder_attentions),
                                                    ('cross', theirs.cross_attentions)) for layer, one in enumerate(all_layers))
                self.check(f'Marian {kind}, maps', maps <= 1e-5, f'{maps:.2e} apart, at most 1e-05')
            self.check(f'Marian {kind}, log probabilities of {with_start.shape[1]} tokens', apart <= 1e-5, f'{apart:.2e} apart, at most 1e-05')
        for beams in (1, 4):
            said = self.heed('translate', f'runs/{kind}', '--beam-size', str(beams), *sentences).split('\n')[:-1]
            wanted = [translation(model, tokenizer, line, beams) for line in sentences]
            same = sum(one == other for one, other in zip(said, wanted))
            self.check(f'Marian {kind}, translations by a beam of {beams}, {sum(map(len, wanted))} characters', same == len(sentences) == len(said) and sum(map(len, wanted)) > 100,
                       f'{same} of {len(sentences)} the same' + ''.join(f'\n  {a!r}\n  {b!r}' for a, b in zip(said, wanted) if a != b))
        self.heed('export', f'runs/{kind}', '--as', 'huggingface', '--out', f'{kind}-out')
        before, after = (safetensors.torch.load_file(self.room / folder / 'model.safetensors') for folder in (kind, f'{kind}-out'))
        same = before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
        self.check(f'Marian {kind}, in and out, {len(before)} tensors', same, 'the same bits' if same else f'{before.keys() ^ after.keys()}')
        again, words = MarianMTModel.from_pretrained(self.room / f'{kind}-out', attn_implementation='eager').eval(), AutoTokenizer.from_pretrained(self.room / f'{kind}-out')
        ids = words(sentences[0], return_tensors='pt').input_ids
        same = torch.equal(again(ids, decoder_input_ids=ids).logits, model(ids, decoder_input_ids=ids).logits) and all(
            tokenizer(line).input_ids == words(line).input_ids for line in sentences)
        self.check(f'Marian {kind}, logits and tokens of the folder that went out', same, 'the same' if same else 'others')


def main():
    parser = argparse.ArgumentParser(description='Holds heed import and heed export of folders to transformers.')
    parser.add_argument('heed')
    parser.add_argument('text')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as room, torch.no_grad():
        judge = Judge(args.heed, args.text, pathlib.Path(room))
        for kind in ('tied', 'untied'):
            judge.goes_in(kind)
            judge.in_parts(kind)
        judge.goes_in('unigram')
        judge.out_again('unigram')
        for shape in SHAPES:
            judge.goes_out(shape)
        for attention, shape in CODED.items():
            judge.goes_out(shape, attention)
        lines = open(args.text, encoding='utf-8').read().split('\n')
        for kind in MARIANS:
            judge.translates(kind, [line[:70] for line in lines if len(line.strip()) > 20][:2000])
        sys.exit(1 if judge.failed else 0)


main()
