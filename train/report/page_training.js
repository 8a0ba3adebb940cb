// The page of maps through training: a slider over the kept steps; needs page_tools.js and page_grid.js.

heed.statistics = [["entropy", "entropy of a row, as a share of uniform attention"], ["largest", "mean largest weight of a row"],
  ["diagonal", "mean weight on the query's own place"], ["previous", "mean weight one place before"],
  ["next", "mean weight one place after"], ["induction", "mean weight on the token behind the last occurrence of the query's token"]];

heed.Training = class {
  constructor(root) {
    Object.assign(this, JSON.parse(root.querySelector("script").textContent));
    this.root = root;
    this.steps = this.frames.map((frame) => frame.step);
    this.kinds = [...new Set(this.maps.map((map) => map.kind))];
    this.state = {map: this.first.map, head: this.first.head, frame: this.frames.length - 1, statistic: 0, own: false};
    this.build();
    this.readHash();
    this.layout();
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("hashchange", () => this.readHash() && this.layout());
    heed.scheme.addEventListener("change", () => this.layout());
    let width = innerWidth;
    addEventListener("resize", () => {
      if (Math.abs(innerWidth - width) < 24) return;
      width = innerWidth;
      this.layout();
    });
  }

  // The weight as the run kept it.
  weight(frame, map, head, i, j) {
    const of = this.frames[frame];
    if (!of.numbers) of.numbers = heed.floats(of.weights);
    let at = 0;
    for (let before = 0; before < map; ++before)
      at += this.maps[before].heads * this.rows(frame, before).length * this.columns(frame, before).length;
    const rows = this.rows(frame, map).length, columns = this.columns(frame, map).length;
    return of.numbers[at + (head * rows + i) * columns + j];
  }
  rows(frame, map) {
    return this.tokens[this.frames[frame].maps[map].rows];
  }
  columns(frame, map) {
    return this.tokens[this.frames[frame].maps[map].columns];
  }
  statistic(frame, map, head, which = this.state.statistic) {
    const [entropy, uniform, largest, diagonal, previous, next, induction] = this.frames[frame].maps[map].heads[head];
    return [uniform > 0 ? entropy / uniform : 0, largest, diagonal, previous, next, induction][which];
  }
  has(which) {
    return this.maps.some((one, map) => this.frames.some((_, frame) => this.statistic(frame, map, 0, which) !== null));
  }
  largest(map) {
    this.tops ||= [];
    if (this.tops[map] === undefined) {
      let most = 0;
      this.frames.forEach((_, frame) => {
        const [rows, columns] = [this.rows(frame, map).length, this.columns(frame, map).length];
        for (let head = 0; head < this.maps[map].heads; ++head)
          for (let i = 0; i < rows; ++i)
            for (let j = 0; j < columns; ++j) most = Math.max(most, this.weight(frame, map, head, i, j) || 0);
      });
      this.tops[map] = most || 1;
    }
    return this.tops[map];
  }

  // The address remembers what is shown: #step-400-cross-0-3.
  readHash() {
    const found = decodeURIComponent(location.hash).match(/^#step-(\d+)-(.+)-(\d+)-(\d+)$/);
    const frame = found ? this.steps.indexOf(+found[1]) : -1;
    const map = found ? this.maps.findIndex((one) => one.kind.replaceAll(" ", "-") === found[2] && one.layer === +found[3]) : -1;
    if (frame < 0 || map < 0 || +found[4] >= this.maps[map].heads) return false;
    Object.assign(this.state, {frame, map, head: +found[4]});
    return true;
  }
  writeHash() {
    const {frame, map, head} = this.state, {kind, layer} = this.maps[map];
    try {
      history.replaceState(null, "", `#step-${this.steps[frame]}-${kind.replaceAll(" ", "-")}-${layer}-${head}`);
    } catch {
      // Some browsers refuse to change the address of a local file; nothing is lost.
    }
  }

  build() {
    const last = this.frames.length - 1;
    this.loss = heed.make("div", {class: "lossCurve"});
    this.lossLegend = heed.make("div", {class: "legend"});
    this.button = heed.make("button", {type: "button", class: "play", onclick: () => this.play(!this.timer)});
    this.slider = heed.make("input", {type: "range", min: 0, max: last, step: 1, "aria-label": "Step of the training",
      oninput: () => this.go(+this.slider.value)});
    this.where = heed.make("output", {class: "where"});
    this.caption = heed.make("p", {class: "reading"});
    this.kindBar = heed.make("div", {class: "choice", role: "group", "aria-label": "Kind of attention"});
    this.thumbs = heed.make("div", {class: "steps", role: "group", "aria-label": "All layers and heads"});
    this.heading = heed.make("h3", {"aria-live": "polite"});
    this.scale = heed.make("div", {class: "choice", role: "group", "aria-label": "Colour scale"});
    this.picture = heed.make("div", {class: "picture scroll"});
    this.statisticBar = heed.make("div", {class: "choice", role: "group", "aria-label": "Statistic"});
    this.curves = heed.make("div");
    this.legend = heed.make("div", {class: "legend"});
    this.over = heed.make("div", {}, heed.make("div", {class: "bar over"}, this.statisticBar), this.legend, this.curves);
    const saving = heed.make("div", {class: "choice right"},
      ...heed.saveButtons(() => this.picture.querySelector("svg"), () => this.fileName()));
    this.root.append(
      heed.make("div", {class: "timeline"}, this.lossLegend, this.loss,
        heed.make("div", {class: "player"}, this.button, this.slider, this.where)),
      this.caption,
      heed.make("div", {class: "halves"},
        this.overview = heed.make("div", {class: "overview"}, heed.make("div", {class: "bar"}, this.kindBar), this.thumbs),
        this.detail = heed.make("div", {class: "detail"}, this.heading, heed.make("div", {class: "bar"}, this.scale, saving),
          this.picture)),
      heed.make("p", {class: "note"}, "Space plays and stops, the arrow keys go one step on or back, Home and End to the " +
        "first and the last. A click on a curve goes there."));
  }
  title() {
    const {kind, layer} = this.maps[this.state.map], kinds = {"encoder self": "Encoder self", "decoder self": "Decoder self", cross: "Cross"};
    return `${kinds[kind] || kind} attention, layer ${layer}, head ${this.state.head}`;
  }
  fileName() {
    return `${this.title().toLowerCase().replaceAll(",", "").replaceAll(" ", "-")}-step-${this.steps[this.state.frame]}`;
  }

  // Everything that depends on the width, the kind and the head, but not on the step.
  layout() {
    const {map, head, statistic, own} = this.state, {kind} = this.maps[map];
    const choice = (words, on, click, title) =>
      heed.make("button", {type: "button", "aria-pressed": String(on), title, onclick: click}, words);
    const names = {"encoder self": "Encoder self", "decoder self": "Decoder self", cross: "Cross"};
    this.kindBar.hidden = this.kinds.length < 2;
    this.kindBar.replaceChildren(...this.kinds.map((one) => choice(names[one] || one, one === kind,
      () => this.change({map: this.maps.findIndex((of) => of.kind === one), head: 0}))));
    this.scale.replaceChildren(...[[false, "0 to 1"], [true, "0 to largest of all steps"]].map(([is, words]) =>
      choice(words, own === is, () => this.change({own: is}))));
    this.statisticBar.replaceChildren(...heed.statistics.map(([name, help], at) => this.has(at)
      ? choice(name, at === statistic, () => this.change({statistic: at}), help) : ""));
    this.heading.textContent = this.title();
    // Below the thumbnails, unless many layers would push the curves off the screen.
    (this.maps.filter((one) => one.kind === kind).length <= 2 ? this.overview : this.detail).append(this.over);
    const x = [this.steps[0], Math.max(this.steps.at(-1), ...this.lossOf.map((one) => one.x.at(-1) ?? 0))];
    const pick = (value) => this.go(this.nearest(value));
    const losses = this.lossOf.flatMap((one) => one.y).filter((value) => value !== null);
    this.lossPlot = null;
    if (losses.length) {
      this.lossPlot = new heed.Curves({series: this.lossOf.map((one, at) => ({...one, colour: heed.series(at)})), x,
        y: [Math.min(0, ...losses), Math.max(...losses)], width: this.loss.clientWidth || 900, height: 132, label: "Loss over steps", pick});
      this.loss.replaceChildren(this.lossPlot.svg);
    }
    const series = Array.from({length: this.maps[map].heads}, (_, one) => ({name: `head ${one}`, colour: heed.series(one),
      x: this.steps, y: this.steps.map((_, frame) => this.statistic(frame, map, one))}));
    this.plot = new heed.Curves({series, x, y: [0, Math.max(1, ...series.flatMap((one) => one.y))],
      width: this.curves.clientWidth || 640, height: 172, label: `${heed.statistics[statistic][0]} of each head over steps`, pick});
    this.plot.chosen(this.maps[map].heads > 1 ? head : -1);
    this.curves.replaceChildren(this.plot.svg);
    this.layoutThumbs();
    this.grid = null;
    this.paint();
  }
  layoutThumbs() {
    const {map, head} = this.state, {kind} = this.maps[map];
    const shown = this.maps.map((one, index) => ({...one, index})).filter((one) => one.kind === kind).sort((a, b) => a.layer - b.layer);
    const heads = Math.max(...shown.map((one) => one.heads));
    const size = heed.clamp(Math.floor((this.thumbs.clientWidth - 60) / heads) - 10, 34, 118);
    this.thumbs.style.gridTemplateColumns = `52px repeat(${heads}, ${size}px)`;
    const cells = [heed.make("span", {class: "mark side"}, "head")];
    for (let one = 0; one < heads; ++one) cells.push(heed.make("span", {class: "mark", "aria-hidden": "true"}, String(one)));
    this.drawings = [];
    for (const one of shown) {
      cells.push(heed.make("span", {class: "mark side", title: one.name}, `layer ${one.layer}`));
      for (let at = 0; at < heads; ++at) {
        if (at >= one.heads) {
          cells.push(heed.make("span"));
          continue;
        }
        const here = one.index === map && at === head, canvas = heed.make("canvas");
        const y = this.steps.map((_, frame) => this.statistic(frame, one.index, at)), last = this.steps.length - 1 || 1;
        const place = (frame) => [2 + (size - 4) * frame / last, 22 - 18 * Math.min(1, Math.max(0, y[frame] ?? 0))];
        const spark = heed.draw("svg", {viewBox: `0 0 ${size} 25`, class: "spark", "aria-hidden": "true"},
          heed.draw("path", {fill: "none", stroke: heed.series(at), "stroke-width": 1.5,
            d: y.map((_, frame) => `${frame ? "L" : "M"}${place(frame).map((v) => v.toFixed(1)).join(" ")}`).join("")}));
        const dot = heed.draw("circle", {r: 2.5, fill: heed.series(at)});
        spark.append(dot);
        this.drawings.push({map: one.index, head: at, canvas, dot, place, size});
        cells.push(heed.make("button", {type: "button", class: "thumb tall", "aria-pressed": String(here),
          "aria-label": `layer ${one.layer}, head ${at}`, onclick: () => this.change({map: one.index, head: at})}, canvas, spark));
      }
    }
    this.thumbs.replaceChildren(...cells);
  }

  // What depends on the step.
  paint() {
    const {frame, map, head, own} = this.state, of = this.frames[frame], step = this.steps[frame];
    const top = own ? this.largest(map) : 1;
    for (const {map: one, head: at, canvas, dot, place, size} of this.drawings) {
      const [rows, columns] = [this.rows(frame, one).length, this.columns(frame, one).length], ratio = rows / columns;
      heed.paint(canvas, rows, columns, (i, j) => this.weight(frame, one, at, i, j), own ? this.largest(one) : 1);
      canvas.style.width = `${ratio > 1 ? size / ratio : size}px`;
      canvas.style.height = `${ratio > 1 ? size : size * ratio}px`;
      const [cx, cy] = place(frame);
      dot.setAttribute("cx", cx);
      dot.setAttribute("cy", cy);
    }
    const key = `${of.maps[map].rows} ${of.maps[map].columns}`;
    if (!this.grid || this.grid.key !== key) {
      this.grid = new heed.Grid({rows: this.rows(frame, map), columns: this.columns(frame, map), tallest: 460,
        width: Math.max(280, (this.picture.clientWidth || 620) - 150), label: `${this.title()}. Arrow keys read the weights.`});
      this.grid.key = key;
      this.picture.replaceChildren(this.grid.svg);
    }
    this.grid.paint((i, j) => this.weight(this.state.frame, map, head, i, j), top);
    this.lossPlot?.mark(step);
    this.plot.mark(step);
    this.slider.value = frame;
    this.slider.setAttribute("aria-valuetext", `step ${step}`);
    this.where.textContent = `step ${step.toLocaleString("en")} of ${this.steps.at(-1).toLocaleString("en")}`;
    this.caption.textContent = of.caption;
    const named = (index, name, value) => heed.make("span", {}, heed.make("i", {class: `series-${index % 8}`}),
      `${name} ${value === null || value === undefined ? "–" : value.toFixed(2)}`);
    this.lossLegend.replaceChildren(...this.lossOf.map((one, at) => named(at, one.name, heed.valueAt(one, step))));
    this.legend.replaceChildren(...this.plot.series.map((one, at) => named(at, one.name, one.y[frame])));
    this.button.textContent = this.timer ? "Stop" : "Play";
    this.button.setAttribute("aria-pressed", String(Boolean(this.timer)));
  }
  nearest(step) {
    let best = 0;
    this.steps.forEach((one, at) => Math.abs(one - step) < Math.abs(this.steps[best] - step) && (best = at));
    return best;
  }
  go(frame) {
    this.state.frame = heed.clamp(frame, 0, this.frames.length - 1);
    heed.tip.hide();
    this.paint();
    if (!this.timer) this.writeHash();
  }
  change(part) {
    Object.assign(this.state, part);
    heed.tip.hide();
    this.layout();
    this.writeHash();
  }
  play(on) {
    clearInterval(this.timer);
    this.timer = null;
    const last = this.frames.length - 1;
    if (on && last > 0) {
      if (this.state.frame === last) this.state.frame = 0;
      this.timer = setInterval(() => (this.state.frame < last ? this.go(this.state.frame + 1) : this.play(false)),
        heed.clamp(8000 / last, 50, 500));
    }
    this.paint();
    if (!this.timer) this.writeHash();
  }
  key(event) {
    const inside = event.target.closest?.("input, button, svg.matrix");
    if (event.key === " " && !event.target.closest?.("button")) {
      event.preventDefault();
      return this.play(!this.timer);
    }
    const to = {ArrowLeft: this.state.frame - 1, ArrowRight: this.state.frame + 1, Home: 0, End: this.frames.length - 1}[event.key];
    if (to === undefined || inside || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.go(to);
  }
};
heed.trainings = [...document.querySelectorAll("section.training")].map((root) => new heed.Training(root));
