# Opens the pages of heed inspect over steps, runs and layers in Chromium: through_training.py PROGRAM. 77 where there is none.
import ast
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the tree stays as it is
import chromium

SMALL = ['translate', '--set', 'data.num_examples=300', '--set', 'data.validation=12', '--set', 'data.test_size=8',
         '--set', 'data.bleu_pairs=2', '--d-model', '16', '--heads', '2', '--d-ff', '16', '--max-length', '32',
         '--batch-tokens', '200', '--steps', '12', '--validate-every', '3', '--keep-checkpoints', '9',
         '--out', '.', '--quiet', '--threads', '1']


def run(folder, program, *words):
    done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'heed {" ".join(words)}: exit code {done.returncode}\n{done.stderr}')
    return done.stdout


def npy(path):
    """Shape and f32 bit patterns of a NumPy file."""
    data = path.read_bytes()
    size = struct.unpack('<H', data[8:10])[0]
    header = ast.literal_eval(data[10:10 + size].decode())
    assert header['descr'] == '<f4', header
    numbers = data[10 + size:]
    return list(header['shape']), list(struct.unpack(f'<{len(numbers) // 4}I', numbers))


def kept_input(path):
    """The input that a run kept the maps of, as inspect takes it."""
    data = path.read_bytes()
    header = json.loads(data[8:8 + struct.unpack('<Q', data[:8])[0]])
    return json.loads(header['__metadata__']['maps'])['input']


# Bit patterns of f32 numbers, which a JSON number of JavaScript would hide.
BITS = '(numbers) => Array.from(new Uint32Array(Float32Array.from(numbers).buffer))'


def check(condition, words):
    if not condition:
        sys.exit(f'fault: {words}')


def check_quiet(browser, page):
    check(not browser.errors, f'{page}: {browser.errors}')
    outside = [url for url in browser.requests if not url.startswith(('file:', 'data:', 'blob:', 'about:'))]
    check(not outside, f'{page} asks the network for {outside}')


def kept_frames(browser, folder, program):
    """Each frame of the slider has the weights that inspect computes from the checkpoint of its step."""
    run(folder, program, 'inspect', 'one', '--through-training')
    page = folder / 'one/inspect/through-training.html'
    browser.open(page.as_uri())
    steps = browser.evaluate('heed.trainings[0].steps')
    check(steps == [0, 3, 6, 9, 12], f'steps {steps}')
    given = kept_input(folder / 'one/maps/step_000012.safetensors')
    for frame, step in list(enumerate(steps))[1:]:  # of step 0 there is no checkpoint
        run(folder, program, 'inspect', 'one', given, '--checkpoint', str(step), '--out', f'at{step}')
        for map, kind in enumerate(['encoder-self-0', 'decoder-self-0', 'cross-0']):
            shape, expected = npy(folder / f'at{step}/{kind}.npy')
            browser.evaluate(f'heed.trainings[0].change({{map: {map}, head: 1}}), heed.trainings[0].go({frame})')
            got = browser.evaluate(f'''(() => {{
              const one = heed.trainings[0], out = [];
              for (let h = 0; h < {shape[0]}; ++h) for (let i = 0; i < {shape[1]}; ++i) for (let j = 0; j < {shape[2]}; ++j)
                out.push(one.weight({frame}, {map}, h, i, j));
              return ({BITS})(out);
            }})()''')
            check(got == expected, f'step {step}, {kind}: the page has other weights than its checkpoint')
            # What is drawn: the fill of each cell is the shade of its weight.
            drawn = browser.evaluate('''(() => {
              const {grid} = heed.trainings[0];
              return grid.cells.every((cell, at) => cell.getAttribute("fill") ===
                heed.shade(grid.value(Math.floor(at / grid.columns.length), at % grid.columns.length)));
            })()''')
            shown = browser.evaluate(f'({BITS})(heed.trainings[0].grid.cells.map((_, at) => heed.trainings[0].grid.value('
                                     'Math.floor(at / heed.trainings[0].grid.columns.length), at % heed.trainings[0].grid.columns.length)))')
            check(drawn and shown == expected[len(shown):2 * len(shown)], f'step {step}, {kind}: another head is drawn')
    return page


def keyboard(browser):
    frame = 'heed.trainings[0].state.frame'
    browser.evaluate('document.activeElement.blur()')
    browser.key('Home')
    check(browser.evaluate(frame) == 0, 'Home does not go to the first step')
    browser.key('ArrowRight')
    check(browser.evaluate(frame) == 1, 'the arrow key does not go on')
    check(browser.evaluate('heed.trainings[0].slider.value') == '1', 'the slider does not follow')
    check(browser.evaluate('location.hash').startswith('#step-3-'), 'the address does not follow')
    browser.key(' ')
    check(browser.evaluate('Boolean(heed.trainings[0].timer)'), 'Space does not play')
    browser.evaluate('new Promise((done) => setTimeout(done, 2600))')
    check(browser.evaluate(frame) == 4, 'playing does not reach the last step')
    check(browser.evaluate('heed.trainings[0].timer') is None, 'playing does not end')
    marker = browser.evaluate('heed.trainings[0].lossPlot.rule.getAttribute("d")')
    browser.evaluate('heed.trainings[0].go(1)')
    check(browser.evaluate('heed.trainings[0].lossPlot.rule.getAttribute("d")') != marker, 'the marker stays')


def animation(browser, folder):
    """Each frame of the film is seen in its share of the time, and no other."""
    browser.open((folder / 'one/inspect/through-training.svg').as_uri())
    for at, step in [(0.1, 0), (2.0, 3), (3.5, 6), (5.5, 9), (7.5, 12), (9.8, 12)]:
        seen = browser.evaluate(f'''(() => {{
          const svg = document.documentElement;
          svg.pauseAnimations();
          svg.setCurrentTime({at});
          return [...svg.querySelectorAll("text")].filter((one) => one.textContent.startsWith("step ") &&
            getComputedStyle(one).visibility === "visible").map((one) => one.textContent);
        }})()''')
        check(seen == [f'step {step}'], f'after {at} s the animation shows {seen}, not step {step}')


def side_by_side(browser, folder, program):
    run(folder, program, 'inspect', 'one', 'two', 'Anna reads. ||| Anna legge.', '--out', 'both')
    browser.open((folder / 'both/side-by-side.html').as_uri())
    for model, name in enumerate(['one', 'two']):
        run(folder, program, 'inspect', name, 'Anna reads. ||| Anna legge.', '--out', f'maps-{name}')
        shape, expected = npy(folder / f'maps-{name}/cross-0.npy')
        got = browser.evaluate(f'''(() => {{
          const side = heed.sides[0], at = side.models[{model}].maps.findIndex((map) => map.kind === "cross");
          side.weight({model}, at, 0, 0, 0);
          return ({BITS})(side.models[{model}].maps[at].numbers);
        }})()''')
        check(got == expected, f'{name}: the page has other weights than its run')
    pair = browser.evaluate('heed.sides[0].pairs()[0]')
    difference = browser.evaluate('heed.sides[0].value(heed.sides[0].pairs()[0], 2)(1, 1)')
    parts = [browser.evaluate(f'heed.sides[0].value(heed.sides[0].pairs()[0], {which})(1, 1)') for which in (0, 1)]
    check(pair['distance'] >= 0 and difference == parts[1] - parts[0], 'the difference is not the second less the first')
    count = browser.evaluate('document.querySelectorAll(".panels svg.matrix").length')
    check(count == 3, f'{count} matrices instead of three')
    browser.evaluate('document.querySelector(".pair[aria-pressed=true]").focus()')
    browser.key('ArrowRight')
    check(browser.evaluate('heed.sides[0].state.pair') == 1, 'the arrow key does not go to the next pair')


def lens(browser, folder, program):
    run(folder, program, 'inspect', 'one', 'Anna reads.', '--logit-lens')
    expected = json.loads(run(folder, program, 'inspect', 'one', 'Anna reads.', '--logit-lens', '--json'))
    browser.open((folder / 'one/inspect/logit-lens.html').as_uri())
    got = browser.evaluate('[...document.querySelectorAll("table.lens tbody tr")].map((row) => [...row.querySelectorAll("td")]'
                           '.map((cell) => cell.querySelector("span").textContent))')
    check(got == [[cell['best'][0]['token'] for cell in row] for row in expected['cells']], 'the table has other tokens')


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    if not chromium.find():
        print('skipped: no Chromium here')
        sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        run(folder, program, 'train', *SMALL, '--name', 'one', '--maps-every', '3')
        run(folder, program, 'train', *SMALL, '--name', 'two', '--seed', '2')
        with chromium.Browser() as browser:
            kept_frames(browser, folder, program)
            keyboard(browser)
            check_quiet(browser, 'through-training.html')
            animation(browser, folder)
            side_by_side(browser, folder, program)
            check_quiet(browser, 'side-by-side.html')
            lens(browser, folder, program)
            check_quiet(browser, 'logit-lens.html')
    print('all pages are right')


main()
