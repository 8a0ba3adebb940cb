# Trains Zoology's own attention model beside Heed on the task mqar: its modules with Heed's initial weights, on Heed's
# batches, with Heed's learning rates, dropout 0, PyTorch's AdamW, in f64. All losses must agree:
#     python3 tests/peers/zoology_attention.py build/release/heed --zoology FOLDER
# FOLDER is a checkout of HazyResearch/zoology. Needs torch, NumPy, pydantic; einops and torchvision are replaced where they
# are missing.
#
# One thing is replaced in any case: a block of Zoology without a state mixer (torch.nn.Identity) adds the norm of its output
# to that output. Heed adds nothing, so the mixer here returns zeros.
import argparse
import functools
import importlib
import os
import subprocess
import sys
import tempfile
import types


def rearrange(x, pattern, three=None, d=None):
    """The two patterns that Zoology's attention gives to einops."""
    if pattern == '... (three h d) -> ... three h d':
        return x.unflatten(-1, (three, -1, d))
    if pattern == '... h d -> ... (h d)':
        return x.flatten(-2)
    raise ValueError(pattern)


def stochastic_depth(p, mode):
    """torchvision's StochasticDepth with probability 0."""
    if p != 0:
        raise ValueError(f'drop_path {p}, where 0 is expected')
    return __import__('torch').nn.Identity()


def import_zoology(folder):
    """Imports Zoology's model, and stands in for the packages that it imports and that are not installed."""
    sys.path.insert(0, folder)
    members = {'einops': {'rearrange': rearrange}, 'torchvision': {}, 'torchvision.ops': {'StochasticDepth': stochastic_depth},
               'wandb': {}, 'pandas': {'DataFrame': None}}  # the last two are not used here
    replaced = []
    for name in members:
        try:
            importlib.import_module(name)
        except ImportError:
            sys.modules[name] = types.ModuleType(name)
            vars(sys.modules[name]).update(members[name])
            replaced.append(name)
    for name in ('zoology.model', 'zoology.config', 'zoology.mixers.attention'):
        importlib.import_module(name)
    for name in replaced:  # PyTorch asks which packages are there
        del sys.modules[name]


def arguments():
    parser = argparse.ArgumentParser(description="Zoology's attention beside Heed's, step by step.")
    parser.add_argument('heed')
    parser.add_argument('--zoology', required=True)
    parser.add_argument('--steps', type=int, default=100)
    parser.add_argument('--within', type=float, default=1e-9, help='largest relative difference of a loss')
    parser.add_argument('--keep-identity', action='store_true', help="leave Zoology's state mixer: the losses then differ")
    return parser.parse_args()


def run_heed(heed, steps, scratch):
    """Exports and trains a small mqar with Heed. Gives the arguments with which heed_torch trains beside it."""
    batch = 64
    settings = ['mqar', '--precision', 'f64', '--device', 'cpu', '--steps', str(steps), '--batch-size', str(batch),
                '--dropout', '0', '--attention-dropout', '0']
    for one in ('data.vocabulary=1024', f'data.num_examples={batch * steps}', 'data.validation=64', 'data.test_size=64',
                'model.embedding_dropout=0', f'train.validate_every={steps}'):
        settings += ['--set', one]
    start = os.path.join(scratch, 'start')
    for command in (['export', *settings, '--out', start, '--rounds', str(steps)],
                    ['train', *settings, '--quiet', '--out', scratch, '--name', 'run']):
        subprocess.run([heed, *command], check=True, stdout=subprocess.DEVNULL)
    return [start, '--compare', os.path.join(scratch, 'run', 'metrics.jsonl')]


ARGUMENTS = arguments()
SCRATCH = tempfile.TemporaryDirectory()
# heed_torch reads its options when it is imported.
sys.argv[1:] = [*run_heed(ARGUMENTS.heed, ARGUMENTS.steps, SCRATCH.name), '--within', str(ARGUMENTS.within), '--dtype', 'f64',
                '--quiet']
import heed_torch  # noqa: E402
import torch  # noqa: E402
import_zoology(ARGUMENTS.zoology)
import zoology.model  # noqa: E402
from zoology.config import ModelConfig  # noqa: E402


class Nothing(torch.nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)


def by_their_names(weights, layers):
    """Heed's weights by the names of Zoology's, which has queries, keys and values in one matrix."""
    left = dict(weights)
    table = left.pop('embedder.tokens.weight')
    out = {'backbone.embeddings.word_embeddings.weight': table, 'lm_head.weight': table,
           'backbone.embeddings.position_embeddings.weight': left.pop('embedder.position.table')}

    def norm(theirs, ours):
        for their_part, our_part in (('weight', 'gain'), ('bias', 'bias')):
            out[f'backbone.{theirs}.{their_part}'] = left.pop(f'{ours}.{our_part}')
    for i in range(layers):
        block, layer = f'decoder.blocks.{i}', f'layers.{i}'
        norm(layer + '.norm1', block + '.attention_norm')
        for kind in ('weight', 'bias'):
            parts = [left.pop(f'{block}.attention.{part}.{kind}') for part in ('query', 'key', 'value')]
            out[f'backbone.{layer}.sequence_mixer.Wqkv.{kind}'] = torch.cat(parts)
            out[f'backbone.{layer}.sequence_mixer.out_proj.{kind}'] = left.pop(f'{block}.attention.output.{kind}')
    norm('ln_f', 'decoder.norm')
    if left:
        sys.exit(f'weights of Heed that Zoology does not have: {", ".join(sorted(left))}')
    return out


class Zoology:
    """Zoology's LanguageModel over the weights of Heed, which stay the leaves that the optimizer moves."""

    def __init__(self, weights, config, with_dropout):
        c = config['model']
        for key, wanted in (('d_ff', 0), ('position', 'learned'), ('norm', 'pre'), ('tie_embeddings', 'output'),
                            ('scale_embedding', False), ('norm_epsilon', 1e-5)):
            if c[key] != wanted:
                sys.exit(f'model.{key} = {c[key]}, where Zoology has {wanted}')
        # The embeddings ask for a GPU by default.
        zoology.model.TokenEmbeddings = functools.partial(zoology.model.TokenEmbeddings, device='cpu')
        self.model = zoology.model.LanguageModel(ModelConfig(
            d_model=c['d_model'], n_layers=c['layers'], max_position_embeddings=c['max_length'],
            vocab_size=weights['embedder.tokens.weight'].shape[0], embed_dropout=0.0, resid_dropout=0.0,
            sequence_mixer={'name': 'zoology.mixers.attention.MHA', 'kwargs': {'num_heads': c['heads'], 'dropout': 0.0}},
            state_mixer={'name': 'torch.nn.Identity', 'kwargs': {}})).double()
        for layer in self.model.backbone.layers if not ARGUMENTS.keep_identity else ():
            layer.state_mixer = Nothing()
        self.weights, self.layers = weights, c['layers']

    def loss(self, batch, smoothing):
        ids = batch['ids']
        labels = torch.full((ids.numel(),), -100)
        labels[batch['places']] = batch['targets']
        logits = torch.func.functional_call(self.model, by_their_names(self.weights, self.layers), (ids,),
                                            {'return_embeddings': False})
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels, ignore_index=-100, label_smoothing=smoothing)


heed_torch.train(Zoology)
print('the losses agree' + ('' if ARGUMENTS.keep_identity else '; each state mixer of Zoology returned zeros'))
