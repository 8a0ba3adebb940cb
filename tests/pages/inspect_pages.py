# The pages of `heed inspect` in a headless Chromium: inspect_pages.py PROGRAM WHAT, with WHAT one of text, picture, long.
# 0: as it should be; 1: a fault, which is named; 77: there is no Chromium here.
import ast
import base64
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

sys.dont_write_bytecode = True  # the tree stays as it is
import chromium

faults = []


def check(name, holds, *found):
    if not holds:
        faults.append(name)
        print(f'wrong: {name}', *found, flush=True)


def near(a, b, within=1e-6):
    return abs(a - b) <= within


class Npy:
    """A NumPy file of floats, read by hand: at(i, j, k) of any number of axes."""

    def __init__(self, path):
        data = pathlib.Path(path).read_bytes()
        length = struct.unpack('<H', data[8:10])[0]
        self.shape = ast.literal_eval(data[10 : 10 + length].decode())['shape']
        self.numbers = memoryview(data[10 + length :]).cast('f')

    def at(self, *place):
        index = 0
        for extent, i in zip(self.shape, place):
            index = index * extent + i
        return self.numbers[index]


def shown(value):
    """A number as the page writes it."""
    if value == 0 or abs(value) >= 0.001:
        return f'{value:.3f}'
    return f'{value:.1e}'.replace('e-0', 'e-').replace('e+0', 'e+')


def heed(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=500)
    if done.returncode != 0:
        sys.exit(f'heed {" ".join(map(str, arguments))}: {done.returncode}\n{done.stdout}{done.stderr}')
    return done.stdout


VIEWER = 'heed.viewers[0]'


def set_state(browser, **part):
    browser.evaluate(f'{VIEWER}.change({json.dumps(part)})')


def center(browser, selector):
    return browser.evaluate(f'''(() => {{ const box = document.querySelector({json.dumps(selector)});
        box.scrollIntoView({{block: "center"}}); const {{x, y, width, height}} = box.getBoundingClientRect();
        return [x + width / 2, y + height / 2]; }})()''')


def cell(browser, i, j):
    """Where cell i, j of the matrix is on the screen."""
    return browser.evaluate(
        f'''(() => {{ const svg = document.querySelector("svg.matrix"), {{left, above, side}} = svg.frame;
        svg.scrollIntoView({{block: "center"}}); const at = heed.onScreen(svg, left + side * ({j} + 0.5), above + side * ({i} + 0.5));
        return [at.x, at.y]; }})()'''
    )


def tip(browser):
    return browser.evaluate('[...document.querySelectorAll(".tip:not([hidden]) div")].map((line) => line.textContent)')


def offline(browser, name):
    """No error of a script or of the content policy, and no request but for the page itself."""
    outside = [url for url in browser.requests if not url.startswith(('file:', 'data:', 'blob:', 'about:'))]
    check(f'{name}: no network', not outside, outside)
    check(f'{name}: no errors', not browser.errors, browser.errors)
    browser.errors.clear()


def accessible(browser, name):
    nodes = browser.send('Accessibility.getFullAXTree')['nodes']
    kind = lambda node: node.get('role', {}).get('value')
    words = lambda node: node.get('name', {}).get('value', '').strip()
    for role in ('button', 'image', 'searchbox', 'slider', 'combobox', 'group', 'spinbutton'):
        bare = [node['nodeId'] for node in nodes if not node.get('ignored') and kind(node) == role and not words(node)]
        check(f'{name}: every {role} has a name', not bare, len(bare))
    check(
        f'{name}: the picture is an image with a name',
        any(kind(node) in ('image', 'img') and 'attention' in words(node) for node in nodes),
    )


def numbers_match(browser, name, source, npy, map_path=f'{VIEWER}.state.map'):
    """Every number that the page has, single ones of a long map too, equals the saved matrix; gives how many."""
    heads, rows, columns = npy.shape if len(npy.shape) == 3 else (1, *npy.shape)
    values = browser.evaluate(f'''(() => {{ const map = {map_path}, layered = map.{source}, out = [];
        for (let h = 0; h < {heads}; ++h) for (let i = 0; i < {rows}; i += Math.max(1, {rows} >> 6)) for (let j = 0; j < {columns}; ++j) {{
          const value = layered.single(h, i, j); out.push([h, i, j, value === undefined ? null : value, layered.bound(h, i)]); }}
        return out; }})()''')
    low, high = min(npy.numbers), max(npy.numbers)
    step = (high - low) / 65534
    worst, out_of_bound, kept = 0, 0, 0
    for h, i, j, value, bound in values:
        real = npy.at(h, i, j) if len(npy.shape) == 3 else npy.at(i, j)
        if value is None:
            out_of_bound += abs(real) > bound * (1 + 1e-6) + 1e-12
        else:
            kept += 1
            worst = max(worst, abs(real - value))
    check(f'{name}: {source} equal the npy', kept > 0 and worst <= 0.51 * step + 1e-12, worst, step)
    check(f'{name}: {source} that are left out are below their bound', out_of_bound == 0, out_of_bound)
    return len(values)


def text_page(program, folder):
    heed(
        program,
        'train',
        'translate',
        '--steps',
        20,
        '--layers',
        2,
        '--d-model',
        32,
        '--d-ff',
        64,
        '--set',
        'data.num_examples=600',
        '--set',
        'data.validation=20',
        '--set',
        'data.test_size=20',
        '--set',
        'data.bleu_pairs=2',
        '--name',
        'small',
        '--out',
        folder,
    )
    run = folder / 'small'
    heed(program, 'inspect', run, 'Anna buys the red book.', '--out', folder / 'maps')
    url = (folder / 'maps/maps.html').as_uri()
    encoder, attribution, rollout = (
        Npy(folder / f'maps/encoder-self-1{name}.npy') for name in ('', '-attribution', '-rollout')
    )
    with chromium.Browser() as browser:
        browser.open(url + '#encoder-self-1-2-matrix')
        state = browser.evaluate(
            f'(({{map, head, view, kind}}) => [map.queryTokens, map.keyTokens, map.layer, head, view, kind])({VIEWER}.state)'
        )
        check('tokens', state[0][1:5] == ['Anna', 'buys', 'the', 'red'] and state[0] == state[1], state)
        check('address', state[2:] == [1, 2, 'matrix', 'encoder self'], state)
        tokens = state[0]

        for i, j in ((0, 0), (2, 3), (5, 1)):  # by the mouse
            browser.point(*cell(browser, i, j))
            check(
                f'hover {i}, {j}',
                tip(browser) == [f'{tokens[i]} → {tokens[j]}', shown(encoder.at(2, i, j))],
                tip(browser),
                encoder.at(2, i, j),
            )
        browser.point(2, 2)
        browser.evaluate('document.querySelector("svg.matrix").focus()')  # by the keyboard
        for name in ('ArrowDown', 'ArrowDown', 'ArrowRight'):
            browser.key(name)
        check('arrow keys', tip(browser) == [f'{tokens[1]} → {tokens[1]}', shown(encoder.at(2, 1, 1))], tip(browser))
        browser.key('Enter')
        check('Enter keeps the query', browser.evaluate(f'{VIEWER}.query') == 1)
        numbers_match(browser, 'text', 'weights', encoder)
        numbers_match(browser, 'text', 'attribution', attribution)
        numbers_match(browser, 'text', 'rollout', rollout)

        for key, value in (('l', 'lines'), ('t', 'text'), ('n', 'neurons'), ('o', 'overview'), ('m', 'matrix')):
            browser.key(key)
            check(f'key {key}', browser.evaluate(f'{VIEWER}.state.view') == value)
            accessible(browser, value) if value != 'overview' else None
        for key, script, value in (
            ('[', 'map.layer', 0),
            (']', 'map.layer', 1),
            (',', 'head', 1),
            ('.', 'head', 2),
            ('a', 'head', 4),
            ('w', 'shown', 'attribution'),
            ('w', 'shown', 'rollout'),
            ('w', 'shown', 'weights'),
            ('k', 'kind', 'decoder self'),
            ('k', 'kind', 'cross'),
        ):
            browser.key(key)
            check(
                f'key {key}: {script}',
                browser.evaluate(f'{VIEWER}.state.{script}') == value,
                browser.evaluate(f'{VIEWER}.state.{script}'),
            )
        check(
            'the mean of the heads',
            near(
                browser.evaluate(f'{VIEWER}.groups[0].maps[1].weights.at(4, 2, 3)'),
                sum(encoder.at(h, 2, 3) for h in range(4)) / 4,
            ),
        )

        browser.open(url + '#encoder-self-1-2-matrix')
        browser.key('/')
        for letter in 'RED':
            browser.key(letter)
        rows = 'document.querySelectorAll("svg.matrix g:first-of-type rect").length'
        check('the filter leaves one query', browser.evaluate(rows) == len(tokens), browser.evaluate(rows))
        check(
            'the filter says so',
            f'leaves 1 of {len(tokens)} queries' in browser.evaluate('document.querySelector(".notes").textContent'),
        )
        browser.point(*cell(browser, 0, 0))
        check('a filtered row is its own', tip(browser)[0] == f'red → {tokens[0]}', tip(browser))
        browser.key('Escape')
        browser.key('s')
        check('without special tokens', browser.evaluate(rows) == sum(token[0] != '[' for token in tokens) ** 2, browser.evaluate(rows))
        browser.key('Escape')
        check('Escape clears the filter', browser.evaluate(rows) == len(tokens) ** 2)
        browser.click(*center(browser, '.thumb[aria-label^="layer 0, head 1"]'))
        check('a click on a thumbnail', browser.evaluate(f'[{VIEWER}.state.map.layer, {VIEWER}.state.head]') == [0, 1])

        picture = browser.evaluate(f'heed.standalone({VIEWER}.svg())')
        drawing = xml.fromstring(picture['text'])
        names = [words.text or ''.join(words.itertext()) for words in drawing.iter('{http://www.w3.org/2000/svg}text')]
        check(
            'the SVG is one file with the tokens',
            all(token in names for token in tokens)
            and 'var(' not in picture['text']
            and 'class=' not in picture['text'],
            names,
        )
        png = base64.b64decode(
            browser.evaluate(f'''heed.bitmap(heed.standalone({VIEWER}.svg())).then((blob) => blob.arrayBuffer())
            .then((bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))))''')
        )
        width, height = struct.unpack('>II', png[16:24])
        check(
            'the PNG is three times as large',
            png[:8] == b'\x89PNG\r\n\x1a\n'
            and near(width, 3 * picture['width'], 3)
            and near(height, 3 * picture['height'], 3),
        )
        browser.send('Page.setDownloadBehavior', behavior='allow', downloadPath=str(folder))
        browser.click(*center(browser, 'button[aria-label="Save as SVG"]'))
        saved = folder / (browser.evaluate(f'{VIEWER}.fileName()') + '.svg')
        drawn = browser.evaluate(f'heed.standalone({VIEWER}.svg()).text')
        end = time.monotonic() + 30  # the browser writes the file in its own time: its name may be there before its text
        while not (saved.exists() and saved.read_text() == drawn) and time.monotonic() < end:
            browser.drain(0.1)
        check(
            'a click saves the SVG',
            saved.exists() and saved.read_text() == drawn,
            sorted(path.name for path in folder.iterdir()),
            saved.stat().st_size if saved.exists() else 'no file',
            len(drawn),
        )

        browser.evaluate('document.querySelector("details.as-table").open = true')
        browser.drain(0.2)
        table = browser.evaluate('[...document.querySelectorAll("table.weights tbody td")].map((td) => td.textContent)')
        layer = Npy(folder / 'maps/encoder-self-0.npy')
        check(
            'the table has the numbers',
            table == [shown(layer.at(1, i, j)) for i in range(len(tokens)) for j in range(len(tokens))],
            table[:9],
        )

        browser.open(url + '#cross-1-0-text;query=2')
        fills = browser.evaluate('[...document.querySelectorAll("svg.text rect.token")].map((one) => one.style.fill)')
        cross = Npy(folder / 'maps/cross-1.npy')
        row = [cross.at(0, 2, j) for j in range(cross.shape[2])]
        expected = browser.evaluate(
            f'{json.dumps(row)}.map((weight) => Math.abs(weight) > 0.004 ? heed.shade(weight).replaceAll(",", ", ") : "none")'
        )
        check('the text is shaded by the weights', fills[: cross.shape[2]] == expected, fills, expected)
        browser.open(url + '#encoder-self-1-3-neurons;query=2')
        rows = browser.evaluate(
            'document.querySelector("svg.neurons").rowsShown.map(({score, weight}) => [score, weight])'
        )
        total = sum(math.exp(score) for score, _ in rows)
        check(
            'the softmax of the scores is the weights',
            all(near(math.exp(score) / total, weight, 1e-5) for score, weight in rows),
            rows,
        )
        check(
            'their weights are those of the npy',
            all(near(weight, encoder.at(3, 2, j)) for j, (_, weight) in enumerate(rows)),
        )

        stops = []
        browser.open(url)
        for _ in range(60):
            browser.key('Tab')
            stops.append(
                browser.evaluate(
                    'document.activeElement.closest("[role=group], [role=search], .picture, .scroll, details")?.className || document.activeElement.tagName'
                )
            )
        order = [stop for at, stop in enumerate(stops) if at == 0 or stop != stops[at - 1]]
        check(
            'the focus goes through controls, heads, numbers and the picture',
            order[0] == 'choice' and order.index('thumbs') < order.index('picture scroll'),
            order,
        )
        light = browser.evaluate('[getComputedStyle(document.body).backgroundColor, heed.shade(0)]')
        browser.media(scheme='dark')
        dark = browser.evaluate('[getComputedStyle(document.body).backgroundColor, heed.shade(0)]')
        check(
            'light and dark',
            light[0] == 'rgb(255, 255, 255)' and dark[0] != light[0] and dark[1] != light[1],
            light,
            dark,
        )
        browser.media(media='print')
        check(
            'print leaves the controls out',
            browser.evaluate('getComputedStyle(document.querySelector(".controls")).display') == 'none',
        )
        offline(browser, 'text')


def picture_page(program, folder):
    heed(
        program,
        'train',
        'mnist-fast',
        '--steps',
        2,
        '--layers',
        2,
        '--set',
        'data.num_examples=200',
        '--set',
        'data.test_size=50',
        '--name',
        'small',
        '--out',
        folder,
    )
    heed(program, 'inspect', folder / 'small', 3, '--out', folder / 'maps')
    weights = Npy(folder / 'maps/encoder-self-1.npy')
    with chromium.Browser() as browser:
        browser.open((folder / 'maps/maps.html').as_uri())
        check('a picture is shown first', browser.evaluate(f'{VIEWER}.state.view') == 'picture')
        check(
            'the classifying token looks first',
            browser.evaluate('document.querySelector("svg.photos").textContent').startswith(
                'from the classifying token'
            ),
        )
        set_state(browser, head=1)
        accessible(browser, 'picture')
        at = browser.evaluate(
            '''(() => { const svg = document.querySelector("svg.photos"); svg.scrollIntoView();
            const box = svg.querySelector("rect.frame").getBoundingClientRect(); return [box.x, box.y, box.width]; })()'''
        )
        size = at[2] / 7
        place = lambda row, column: (at[0] + (column + 0.5) * size, at[1] + (row + 0.5) * size)
        map_layer = browser.evaluate(f'{VIEWER}.state.map.layer')
        weights = Npy(folder / f'maps/encoder-self-{map_layer}.npy')
        browser.point(*place(2, 3))
        check(
            'hover reads the weight of a patch',
            tip(browser) == ['classifying token → 2,3', shown(weights.at(1, 0, 1 + 2 * 7 + 3))],
            tip(browser),
        )
        browser.click(*place(4, 1))
        check('a click makes a patch the query', browser.evaluate(f'{VIEWER}.query') == 1 + 4 * 7 + 1)
        browser.point(*place(0, 6))
        check(
            'hover reads its weights',
            tip(browser) == ['4,1 → 0,6', shown(weights.at(1, 1 + 4 * 7 + 1, 1 + 6))],
            tip(browser),
        )
        numbers_match(browser, 'picture', 'weights', weights)
        numbers_match(browser, 'picture', 'attribution', Npy(folder / f'maps/encoder-self-{map_layer}-attribution.npy'))
        check(
            'the SVG has the picture inside',
            'data:image/png' in browser.evaluate(f'heed.standalone({VIEWER}.svg()).text'),
        )
        offline(browser, 'picture')


def cpu_seconds(browser):
    session, browser.session = browser.session, None
    try:
        return sum(one['cpuTime'] for one in browser.send('SystemInfo.getProcessInfo')['processInfo'])
    finally:
        browser.session = session


def long_page(program, folder):
    small = ['--layers', 1, '--heads', 2, '--d-model', 32, '--d-ff', 32, '--max-length', 4096, '--batch-size', 1]
    data = ['--set', 'data.num_examples=60000', '--set', 'data.eval_batches=1']
    heed(program, 'train', 'lm', '--steps', 1, *small, *data, '--name', 'small', '--out', folder)
    verse = ' '.join(f'the {word} of the {other}' for word in ('night', 'moon', 'sea') for other in ('wind', 'heart', 'song', 'rain'))
    verse = (verse + ' ') * 99
    text = heed(program, 'inspect', folder / 'small', verse[:4096], '--out', folder / 'maps')
    page = folder / 'maps/maps.html'
    size = page.stat().st_size
    weights = Npy(folder / 'maps/decoder-self-0.npy')
    check('4,096 tokens', weights.shape[1:] == (4096, 4096), weights.shape, text[-300:])
    check('the page is below 20 MB', size < 20e6, size)
    with chromium.Browser() as browser:
        seconds, worked = 99, 99
        for _ in range(3):  # the processor's time where the machine is busy
            before = cpu_seconds(browser)
            seconds = min(seconds, browser.open(page.as_uri()))
            worked = min(worked, cpu_seconds(browser) - before)
        if os.getloadavg()[0] <= 1.5 * (os.cpu_count() or 1):
            check('the page opens in 3 s', min(seconds, worked) < 3, seconds, worked)
        else:
            print(f'not checked: how fast the page opens; the machine is busy, load {os.getloadavg()[0]:.1f}', flush=True)
        print(
            f'4,096 tokens, 1 layer of 2 heads: {size / 1e6:.1f} MB, open in {seconds:.2f} s, {worked:.2f} s of processors',
            flush=True,
        )
        set_state(browser, view='matrix', head=1)
        check(
            'tiles',
            browser.evaluate(f'[{VIEWER}.state.map.tile, {VIEWER}.state.map.weights.view.rows]') == [[16, 16], 256],
        )
        numbers_match(browser, 'long', 'weights', weights)
        tile = sum(weights.at(1, 32 + i, 48 + j) for i in range(16) for j in range(16)) / 16
        check(
            'a tile is the mean of its rows',
            near(browser.evaluate(f'{VIEWER}.state.map.weights.at(1, 2, 3)'), tile, 1e-4),
        )
        browser.click(*cell(browser, 100, 60))
        title = browser.evaluate('document.querySelector(".zoom h4").textContent')
        check('a click opens the window there', 'queries 1588–1627, keys 948–987' in title, title)
        at = browser.evaluate(
            '''(() => { const svg = document.querySelector(".zoom svg"), {left, above, side} = svg.frame; svg.scrollIntoView({block: "center"});
            const place = heed.onScreen(svg, left + side * 5.5, above + side * 7.5); return [place.x, place.y]; })()'''
        )
        browser.point(*at)
        value, real = tip(browser)[1], weights.at(1, 1588 + 7, 948 + 5)
        check(
            'the window reads a single weight, or its bound',
            (
                value == shown(real) or near(float(value), real, 2e-5)
                if not value.startswith('below')
                else abs(real) <= float(value[6:]) * 1.05
            ),
            value,
            real,
        )
        browser.evaluate(f'{VIEWER}.pick(2000)')
        set_state(browser, view='text')
        check(
            'the text around the query',
            'Tokens 1400 to 2599 of 4096' in browser.evaluate('document.querySelector(".notes").textContent'),
            browser.evaluate('document.querySelector(".notes").textContent'),
        )
        set_state(browser, view='lines')
        offline(browser, 'long')


def main():
    if chromium.find() is None:
        print('skipped: there is no Chromium here (HEED_CHROMIUM names one)')
        sys.exit(77)
    program, what = os.path.abspath(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory(prefix='heed-pages-', ignore_cleanup_errors=True) as folder:
        begin = time.monotonic()
        {'text': text_page, 'picture': picture_page, 'long': long_page}[what](program, pathlib.Path(folder))
        print(f'{what}: {len(faults)} faults, {time.monotonic() - begin:.1f} s')
    sys.exit(1 if faults else 0)


main()
