# Pathfinder-32 by growing curves: seven runs, each from the weights of the one before, the last two on the benchmark's curves.
# Prints a Markdown table.
import shlex

from curriculum import parsed, parser_of, run_stage

# Dashes of the two curves, steps, learning rate, steps of warm-up, schedule, training images.
STAGES = (
    (2, 4500, 1e-3, 300, 'constant', 400000),
    (3, 3000, 7e-4, 200, 'constant', 400000),
    (4, 3000, 7e-4, 200, 'constant', 400000),
    (6, 5000, 7e-4, 200, 'constant', 400000),
    (9, 5000, 7e-4, 200, 'constant', 400000),
    (14, 10000, 7e-4, 200, 'constant', 400000),
    (14, 10000, 7e-4, 200, 'cosine', 1000000),
)


def main():
    parser = parser_of('Pathfinder by growing curves.', 'runs/pathfinder-curriculum', len(STAGES))
    parser.add_argument('--settings', default='--patch 8 --layers 4 --d-model 128 --heads 4 --d-ff 256 --position-deviation 0.3',
                        help='of the model, as heed train takes them')
    options = parsed(parser)
    begin = ['lra-pathfinder', '--side', '32', '--max-length', '16', '--dropout', '0', *shlex.split(options.settings)]
    lines = ['| dashes | steps | validation, best | test |', '|---:|---:|---:|---:|']
    for number, (dashes, steps, rate, warmup, schedule, images) in enumerate(STAGES[:options.stages], 1):
        best, test = run_stage(number, begin, {
            'data.contour': dashes, 'data.num_examples': images, 'train.max_steps': steps, 'train.batch_size': 128,
            'train.learning_rate': rate, 'train.warmup_steps': warmup, 'train.schedule': schedule, 'train.validate_every': 500}, options)
        lines.append(f'| {dashes} | {steps:,} | {best:.1f} % | {test:.1f} % |')
    print('\n'.join(lines))


if __name__ == '__main__':
    main()
