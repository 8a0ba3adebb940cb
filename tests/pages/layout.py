# Looks at every page that the program writes in Chromium, 390 and 1400 pixels wide, light and dark: layout.py PROGRAM [PICTURES].
# 77 where there is no Chromium. With a folder, a picture of each page goes there.
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the tree stays as it is
import chromium

SMALL = ['--d-model', '16', '--heads', '2', '--d-ff', '16', '--steps', '12', '--validate-every', '4', '--keep-checkpoints', '9',
         '--out', '.', '--quiet', '--threads', '1']
TRANSLATE = ['translate', '--set', 'data.num_examples=300', '--set', 'data.validation=12', '--set', 'data.test_size=40',
             '--set', 'data.bleu_pairs=2', '--layers', '2', '--max-length', '32', '--batch-tokens', '200', *SMALL]
SENTENCE = 'Anna buys the red book and reads it. ||| Anna compra il libro rosso e lo legge.'

# What is wrong with the page as it is shown now, as a list of sentences.
LOOK = r'''(() => {
  const wrong = [], say = (...words) => wrong.push(words.join(" "));
  const shown = (one) => one.checkVisibility({checkOpacity: true, checkVisibilityCSS: true});
  const name = (one) => `${one.tagName.toLowerCase()}${one.className && one.className.baseVal === undefined ? "." + one.className : ""}`;
  if (document.documentElement.scrollWidth > innerWidth + 1) {
    const wide = [...document.body.querySelectorAll("*")].filter((one) => shown(one) && !one.parentElement.closest(".scroll, pre") &&
      one.getBoundingClientRect().right > innerWidth + 1).map(name);
    say("the page is", document.documentElement.scrollWidth, "pixels wide:", [...new Set(wide)].slice(0, 6));
  }

  // Words of tables: each table has a row of headings, and words of neighbouring cells do not touch.
  const extent = (one) => {
    const range = document.createRange();
    range.selectNodeContents(one);
    return range.getBoundingClientRect();
  };
  for (const table of document.querySelectorAll("table")) {
    if (!shown(table)) continue;
    const headings = [...(table.tHead?.rows[0]?.cells || [])];
    const label = table.closest("[aria-label]")?.getAttribute("aria-label") || table.className;
    if (!headings.some((one) => one.tagName === "TH")) say("no row of headings:", label);
    if (headings.some((one, i) => i > 0 && !one.textContent.trim())) say("a column without a heading:", label);
    for (const row of table.rows) {
      const cells = [...row.cells].filter((cell) => cell.textContent.trim());
      cells.forEach((cell, i) => {
        if (i === 0) return;
        const [before, here] = [extent(cells[i - 1]), extent(cell)];
        if (before.width && here.width && before.right + 4 > here.left && before.bottom > here.top && here.bottom > before.top)
          say("cells touch in", label + ":", cells[i - 1].textContent, "|", cell.textContent);
      });
    }
    const data = [...table.tBodies[0]?.rows || []];
    for (let column = 0; data.length && column < data[0].cells.length; ++column) {
      if (data.every((row) => ["–", "-", ""].includes(row.cells[column]?.textContent.trim() ?? "")))
        say("an empty column of", label + ":", headings[column]?.textContent);
    }
  }

  for (const one of document.querySelectorAll("caption, p, dd, figcaption")) {
    if (shown(one) && !one.closest("pre") && extent(one).right > innerWidth) say("cut on the right:", one.textContent);
  }

  // Words of pictures: none overlap, none leave the picture. Turned ones are left out unless they stand upright.
  for (const svg of document.querySelectorAll("svg")) {
    if (!shown(svg)) continue;
    const frame = svg.getBoundingClientRect();
    const words = [...svg.querySelectorAll("text")].filter((one) => shown(one) && one.textContent.trim() &&
      [0, 90].includes(Math.abs(Math.round(Math.atan2(one.getScreenCTM().b, one.getScreenCTM().a) * 180 / Math.PI))))
      .map((one) => ({text: one.textContent, box: one.getBoundingClientRect(), upright: Math.abs(one.getScreenCTM().b) < 0.5,
        size: parseFloat(getComputedStyle(one).fontSize) * Math.hypot(one.getScreenCTM().a, one.getScreenCTM().b)}));
    const label = svg.getAttribute("aria-label") || svg.className.baseVal;
    for (const {text, box, size} of words) {
      if (size < 6.5) say(`words of ${size.toFixed(1)} pixels in`, label + ":", text);
      if (box.left < frame.left - 2 || box.right > frame.right + 2 || box.top < frame.top - 2 || box.bottom > frame.bottom + 2)
        say("cut by the picture", label + ":", text);
    }
    const overlaps = [];
    words.forEach((a, i) => words.slice(i + 1).forEach((b) => {
      const across = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
      const down = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
      const [wide, high] = ["width", "height"].map((side) => Math.min(a.box[side], b.box[side]));
      // The box of a word is higher than its letters.
      if (a.upright && b.upright ? across > 1 && down > 0.4 * high : down > 1 && across > 0.4 * wide)
        overlaps.push(`${a.text} | ${b.text}`);
    }));
    if (overlaps.length) say(overlaps.length, "words overlap in", label + ":", ...overlaps.slice(0, 3));
  }

  // Light words on dark ground or dark ones on light ground: a contrast of 3 at least.
  const parts = (colour) => {  // red, green and blue of 0 to 255, and opacity; color(srgb ...) has them of 0 to 1
    const numbers = (colour.match(/[\d.]+/g) || []).map(Number);
    return colour.startsWith("color(") ? numbers.map((c, i) => i < 3 ? 255 * c : c) : numbers;
  };
  const luminance = (colour) => parts(colour).slice(0, 3).map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const opaque = (colour) => colour && colour !== "none" && (parts(colour)[3] ?? 1) > 0.6;
  const paper = getComputedStyle(document.body).backgroundColor;
  const onPaper = (colour) => {
    const [above, below] = [parts(colour), parts(paper)], share = above[3] ?? 1;
    return `rgb(${[0, 1, 2].map((c) => Math.round(share * above[c] + (1 - share) * below[c]))})`;
  };
  const ground = (one, box) => {
    for (const below of document.elementsFromPoint(box.left + box.width / 2, box.top + box.height / 2)) {
      if (below.tagName === "text" || below.tagName === "tspan") continue;
      const style = getComputedStyle(below);
      if (below.tagName === "rect" && opaque(style.fill) && +style.fillOpacity > 0.6) return style.fill;
      if (!(below instanceof SVGElement) && opaque(style.backgroundColor)) return onPaper(style.backgroundColor);
    }
    return paper;
  };
  const faint = new Set();
  for (const one of document.querySelectorAll("text, h1, h2, h3, h4, p, th, td, dt, dd, button, summary, figcaption, pre, li, label")) {
    if (!shown(one) || !one.textContent.trim() || [...one.children].some((child) => child.textContent.trim() && child.tagName !== "tspan")) continue;
    const style = getComputedStyle(one), ink = one.tagName === "text" ? style.fill : style.color, box = extent(one);
    const [a, b] = [luminance(ink), luminance(ground(one, box))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (box.width && box.right <= innerWidth && contrast < 3) faint.add(`${name(one)} "${one.textContent.trim().slice(0, 30)}" ${contrast.toFixed(1)}`);
    if (style.textDecorationLine.includes("line-through")) say("struck through:", one.textContent);
  }
  for (const one of [...faint].slice(0, 5)) say("too little contrast:", one);
  return wrong;
})()'''


def run(folder, program, *words):
    done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'heed {" ".join(words)}: exit code {done.returncode}\n{done.stderr}')
    return done.stdout


def make_pages(folder, program):
    """Makes small runs and every page of them: name and path."""
    run(folder, program, 'train', *TRANSLATE, '--name', 'one', '--maps-every', '4')
    run(folder, program, 'train', *TRANSLATE, '--name', 'two', '--attention', 'linear')
    run(folder, program, 'train', 'mnist-fast', '--set', 'data.num_examples=200', '--set', 'data.test_size=50', *SMALL, '--name', 'digits')
    run(folder, program, 'train', 'lm', '--set', 'data.num_examples=60000', '--set', 'data.eval_batches=1', '--max-length', '64',
        '--batch-size', '2', *SMALL, '--name', 'text')
    run(folder, program, 'heads', 'one', '--examples', '20')
    run(folder, program, 'heads', 'text', '--examples', '4')
    run(folder, program, 'ablate', 'one', '--examples', '12')
    run(folder, program, 'ablate', 'one', '--examples', '12', '--heads', 'cross.0', '--outputs', '4', '--out', 'ablated-with-bleu')
    run(folder, program, 'structure', 'one', SENTENCE, '--num-pos', '1', '--out', 'structure')
    run(folder, program, 'compare', 'one', 'two', '--out', '.')
    run(folder, program, 'evaluate', 'one', '--by-length')
    run(folder, program, 'inspect', 'one', SENTENCE)
    run(folder, program, 'inspect', 'one', SENTENCE, '--logit-lens')
    run(folder, program, 'inspect', 'one', '--through-training')
    run(folder, program, 'inspect', 'one', 'two', SENTENCE, '--out', 'both')
    pages = {'report of a translator': 'one/report.html', 'report of a language model': 'text/report.html',
             'report of digits': 'digits/report.html', 'heads': 'one/heads/heads.html', 'heads of a language model': 'text/heads/heads.html',
             'ablation': 'one/ablate/ablation.html', 'ablation with BLEU': 'ablated-with-bleu/ablation.html',
             'structure': 'structure/structure.html', 'comparison': 'compare/compare.html', 'BLEU by length': 'one/by-length.html',
             'maps': 'one/inspect/maps.html', 'logit lens': 'one/inspect/logit-lens.html',
             'through training': 'one/inspect/through-training.html', 'side by side': 'both/side-by-side.html'}
    return {name: folder / path for name, path in pages.items()}


faults = []


def check(page, holds, words):
    if not holds:
        faults.append(words)
        print(f'wrong: {page}: {words}', flush=True)


def look(browser, name, page, pictures):
    for width in (390, 1400):
        for scheme in ('light', 'dark'):
            browser.media(scheme=scheme)
            browser.send('Emulation.setDeviceMetricsOverride', width=width, height=900, deviceScaleFactor=1, mobile=False)
            browser.open(page.as_uri())
            height = min(12000, browser.evaluate('document.documentElement.scrollHeight'))
            browser.send('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)
            browser.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
            for words in browser.evaluate(LOOK):
                check(f'{name}, {width} px, {scheme}', False, words)
            if pictures:
                browser.screenshot(pictures / f'{name.replace(" ", "-")}-{width}-{scheme}.png')
    check(name, not browser.errors, browser.errors)
    browser.errors.clear()


def contents(browser, pages):
    """What readers missed or stumbled over."""
    def of(page, script):
        browser.open(pages[page].as_uri())
        return browser.evaluate(script)

    words = '[...document.querySelectorAll("{}")].map((one) => one.textContent)'.format
    for page in ('heads', 'heads of a language model'):
        headings = of(page, words('table.heads thead th'))
        explained = browser.evaluate(words('dl.explained dt'))
        check(page, headings == explained, f'columns {headings}, explained {explained}')
        check(page, browser.evaluate('(([one]) => one.scrollWidth <= one.clientWidth)(document.querySelectorAll(".scroll"))'),
              'the table is cut at 1400 pixels')
        browser.evaluate('[...document.querySelectorAll(".choice button")].find((one) => one.textContent === "all measures").click()')
        all_headings = browser.evaluate(words('table.heads thead th'))
        check(page, len(all_headings) > len(headings) and all_headings == browser.evaluate(words('dl.explained dt')),
              f'all columns {all_headings}')
    values = of('ablation', words('svg text'))
    check('ablation', values.count('0') >= 2, f'single heads and whole layers have one axis: {values}')
    check('ablation', not any('BLEU' in one for one in browser.evaluate(words('th'))), 'a column of BLEU that was not measured')
    check('ablation with BLEU', any('BLEU' in one for one in of('ablation with BLEU', words('th'))), 'no column of BLEU')
    legends = of('structure', words('.legend span'))
    check('structure', legends[:2] == ['head 0', 'head 1'], legends)
    check('structure', browser.evaluate('document.querySelectorAll("section.maps svg, section.maps canvas").length') > 0, 'no maps')
    check('BLEU by length', of('BLEU by length', words('.legend span')) == ['test'], browser.evaluate(words('.legend span')))
    for page in ('report of a translator', 'comparison'):
        order = of(page, '[...document.querySelectorAll("h2")].map((one) => one.textContent)')
        settings = browser.evaluate(words('th[scope=row]'))
        check(page, 'train.max_steps' in settings, f'changed settings: {settings}')
        folded = browser.evaluate('[...document.querySelectorAll("pre")].map((one) => !!one.closest("details:not([open])"))')
        check(page, folded == [True], 'all settings are not folded')
        if page != 'comparison':
            check(page, order[0] == 'Settings', order)
    browser.evaluate('document.querySelector("figure.chart button[aria-pressed]").click()')
    pressed = browser.evaluate('(({textContent, ariaPressed}) => [textContent, ariaPressed])(document.querySelector("figure.chart button[aria-pressed]"))')
    check('comparison', pressed == ['log scale', 'true'], pressed)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    pictures = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
    if not chromium.find():
        print('skipped: no Chromium here')
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix='heed-layout-') as scratch:
        pages = make_pages(pathlib.Path(scratch), program)
        with chromium.Browser(width=1400) as browser:
            for name, page in pages.items():
                look(browser, name, page, pictures)
            browser.media(scheme='light')
            browser.send('Emulation.setDeviceMetricsOverride', width=1400, height=900, deviceScaleFactor=1, mobile=False)
            contents(browser, pages)
    if faults:
        sys.exit(f'{len(faults)} faults')
    print(f'{len(pages)} pages are right')


main()
