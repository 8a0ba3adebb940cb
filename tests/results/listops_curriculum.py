# ListOps by growing expressions: six runs, each from the weights of the one before, the last on the benchmark's lengths.
# Prints a Markdown table.
import shlex

from curriculum import parsed, parser_of, run_stage

# Tokens above and below, depth of the grammar, share of operators, steps, steps between validations, batch, learning rate, examples.
STAGES = (
    (4, 14, 2, 0.5, 1500, 250, 256, 1e-3, 40000),
    (10, 64, 3, 0.5, 2000, 250, 128, 1e-3, 40000),
    (32, 128, 10, 0.25, 2500, 250, 64, 1e-3, 40000),
    (64, 256, 10, 0.25, 3000, 500, 32, 1e-3, 40000),
    (200, 1000, 10, 0.25, 1500, 250, 16, 3e-4, 40000),
    (500, 2000, 10, 0.25, 1000, 100, 32, 3e-4, 96000),
)


def main():
    parser = parser_of('ListOps by growing expressions.', 'runs/listops-curriculum', len(STAGES))
    parser.add_argument('--settings', default='--attention delta:gated=true --causal true --pool last --position none',
                        help='of the model, as heed train takes them')
    options = parsed(parser)
    begin = ['lra-listops', '--recipe', 'tiny', '--max-length', '2048', *shlex.split(options.settings)]
    lines = ['| tokens | depth | steps | validation, best | test |', '|---|---:|---:|---:|---:|']
    for number, stage in enumerate(STAGES[:options.stages], 1):
        shortest, below, depth, operators, steps, validate_every, batch, rate, examples = stage
        best, test = run_stage(number, begin, {
            'data.shortest': shortest, 'data.below': below, 'data.depth': depth, 'data.arguments': 10, 'data.operators': operators,
            'data.num_examples': examples, 'train.max_steps': steps, 'train.batch_size': batch, 'train.learning_rate': rate,
            'train.validate_every': validate_every}, options)
        lines.append(f'| {shortest} to {below} | {depth} | {steps:,} | {best:.1f} % | {test:.1f} % |')
    print('\n'.join(lines))


if __name__ == '__main__':
    main()
