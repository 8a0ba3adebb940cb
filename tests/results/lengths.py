# Tables of time and memory against length out of the attention.csv that `heed bench attention --out FOLDER` writes: Markdown, one row an attention.
import argparse
import csv

LENGTHS = (256, 1024, 4096, 16384, 65536)


def shown(value):
    return f'{value:.0f}' if value >= 100 else f'{value:.3g}'


def table(rows, width, causal):
    """Milliseconds of a step at each length, and MiB at the greatest length that was reached."""
    here = [row for row in rows if int(row['head_dim']) == width and (row['causal'] == '1') == causal]
    names = list(dict.fromkeys(row['attention'] for row in here))
    lines = ['| attention | ' + ' | '.join(f'{length:,}' for length in LENGTHS) + ' | MiB | at |', '|---|' + '---:|' * (len(LENGTHS) + 2)]
    for name in names:
        costs = {int(row['length']): row for row in here if row['attention'] == name}
        longest = max(costs)
        cells = [shown(float(costs[length]['step_ms'])) if length in costs else '' for length in LENGTHS]
        lines.append(f'| {name} | ' + ' | '.join(cells) + f" | {shown(float(costs[longest]['step_mib']))} | {longest:,} |")
    return '\n'.join(lines)


def main():
    parser = argparse.ArgumentParser(description='Markdown tables out of attention.csv.')
    parser.add_argument('files', nargs='+', help='attention.csv of each run')
    for name in parser.parse_args().files:
        with open(name, newline='') as file:
            rows = list(csv.DictReader(file))
        for width in sorted({int(row['head_dim']) for row in rows}):
            for causal in (True, False):
                print(f"\n**Head width {width}, {'causal' if causal else 'full'}**\n\n{table(rows, width, causal)}")


if __name__ == '__main__':
    main()
