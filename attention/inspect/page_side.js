// Heads of two models side by side, with their difference; needs page_tools.js and page_grid.js.

heed.Side = class {
  constructor(root) {
    Object.assign(this, JSON.parse(root.querySelector("script").textContent));
    this.root = root;
    this.kinds = [...new Set(this.models[0].maps.map((map) => map.kind))];
    this.state = {other: 1, kind: this.kinds[0], pair: 0, order: "head", own: false};
    const cross = this.kinds.indexOf("cross");
    if (cross >= 0) this.state.kind = "cross";
    this.build();
    this.readHash();
    this.render();
    addEventListener("hashchange", () => this.readHash() && this.render());
    heed.scheme.addEventListener("change", () => this.render());
    let width = innerWidth;
    addEventListener("resize", () => {
      if (Math.abs(innerWidth - width) < 24) return;
      width = innerWidth;
      this.render();
    });
  }
  map(model, at) {
    return this.models[model].maps[at];
  }
  // A weight of a model's map, as it was computed.
  weight(model, at, head, i, j) {
    const map = this.map(model, at);
    map.numbers ||= heed.floats(map.weights);
    return map.numbers[(head * map.rows.length + i) * map.columns.length + j];
  }
  // The pairs of the chosen kind, in the chosen order.
  pairs() {
    const all = this.matches[this.state.other - 1].filter((pair) => this.map(0, pair.one[0]).kind === this.state.kind);
    if (this.state.order === "head") return all;
    return [...all].sort((a, b) => (b.distance ?? -1) - (a.distance ?? -1));
  }
  value(pair, which) {
    const one = (i, j) => this.weight(0, ...pair.one, i, j);
    if (which === 0) return one;
    const other = (i, j) => this.weight(this.state.other, ...pair.other, i, j);
    return which === 1 ? other : (i, j) => other(i, j) - one(i, j);
  }
  name(model, [at, head]) {
    return `layer ${this.map(model, at).layer}, head ${head}`;
  }
  // The scale of both maps, or of their difference.
  top(pair) {
    if (!this.state.own) return 1;
    const {rows, columns} = this.map(0, pair.one[0]);
    let most = 0;
    for (const which of pair.other ? [0, 1] : [0])
      rows.forEach((_, i) => columns.forEach((_, j) => most = Math.max(most, this.value(pair, which)(i, j) || 0)));
    return most || 1;
  }

  // The address remembers what is shown: #cross-0-3 is a head of the first model, #cross-0-3-with-2 beside model 2.
  readHash() {
    const found = decodeURIComponent(location.hash).match(/^#(.+?)-(\d+)-(\d+)(?:-with-(\d+))?$/);
    if (!found) return false;
    const kind = this.kinds.find((one) => one.replaceAll(" ", "-") === found[1]), other = +(found[4] || 1);
    if (!kind || other < 1 || other >= this.models.length) return false;
    Object.assign(this.state, {kind, other});
    const pair = this.pairs().findIndex((one) => this.map(0, one.one[0]).layer === +found[2] && one.one[1] === +found[3]);
    this.state.pair = Math.max(0, pair);
    return true;
  }
  writeHash() {
    const pair = this.pairs()[this.state.pair], {kind, other} = this.state;
    try {
      history.replaceState(null, "", `#${kind.replaceAll(" ", "-")}-${this.map(0, pair.one[0]).layer}-${pair.one[1]}` +
        (other > 1 ? `-with-${other}` : ""));
    } catch {
      // Some browsers refuse to change the address of a local file; nothing is lost.
    }
  }
  build() {
    const group = (label) => heed.make("div", {class: "choice", role: "group", "aria-label": label});
    this.kindBar = group("Kind of attention");
    this.otherBar = group("Compared with");
    this.scale = group("Colour scale");
    this.orderBar = group("Order");
    this.heading = heed.make("h3", {"aria-live": "polite"});
    this.panels = heed.make("div", {class: "panels"});
    this.cards = heed.make("div", {class: "pairs", role: "group", "aria-label": "All pairs of heads"});
    this.root.append(heed.make("div", {class: "bar"}, this.kindBar, this.otherBar, this.scale), this.heading, this.panels,
      heed.make("div", {class: "bar pairsBar"}, heed.make("h4", {}, "All pairs"), this.orderBar), this.cards,
      heed.make("p", {class: "note"}, "Heads are paired so that the Jensen-Shannon distances between the maps of all pairs add up to " +
        "as little as possible: 0 is the same map, 0.69 nats no key in common. The difference is the second model less the first: " +
        "blue where the second looks more, orange where the first does."));
    this.cards.addEventListener("keydown", (event) => {
      const step = {ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1}[event.key];
      if (!step) return;
      event.preventDefault();
      this.change({pair: heed.clamp(this.state.pair + step, 0, this.pairs().length - 1)});
    });
  }
  change(part) {
    if ("kind" in part || "other" in part || "order" in part) part.pair = 0;
    Object.assign(this.state, part);
    heed.tip.hide();
    this.render();
    this.writeHash();
  }
  render() {
    const {kind, other, own, order} = this.state, pairs = this.pairs(), pair = pairs[this.state.pair];
    const names = {"encoder self": "Encoder self", "decoder self": "Decoder self", cross: "Cross"};
    const choice = (words, on, click) => heed.make("button", {type: "button", "aria-pressed": String(on), onclick: click}, words);
    this.kindBar.replaceChildren(...this.kinds.map((one) => choice(names[one] || one, one === kind, () => this.change({kind: one}))));
    this.kindBar.hidden = this.kinds.length < 2;
    this.otherBar.replaceChildren(...this.models.slice(1).map((one, at) =>
      choice(one.name, at + 1 === other, () => this.change({other: at + 1}))));
    this.otherBar.hidden = this.models.length < 3;
    this.scale.replaceChildren(...[[false, "0 to 1"], [true, "0 to largest"]].map(([is, words]) =>
      choice(words, own === is, () => this.change({own: is}))));
    this.orderBar.replaceChildren(...[["head", "by head"], ["distance", "most different first"]].map(([is, words]) =>
      choice(words, order === is, () => this.change({order: is}))));
    this.renderPanels(pair);
    this.renderCards(pairs);
  }
  renderPanels(pair) {
    const {other, kind} = this.state, {rows, columns} = this.map(0, pair.one[0]), top = this.top(pair);
    this.heading.textContent = pair.other ? `${this.name(0, pair.one)}  and  ${this.name(other, pair.other)}: ` +
      `distance ${pair.distance.toFixed(3)} nats` : `${this.name(0, pair.one)}: without a counterpart`;
    const width = Math.max(260, (this.root.clientWidth - 60) / 3 - 60), grids = [];
    const titles = [`${this.models[0].name}, ${this.name(0, pair.one)}`, pair.other && `${this.models[other].name}, ${this.name(other, pair.other)}`,
      "difference"];
    const panels = (pair.other ? [0, 1, 2] : [0]).map((which) => {
      const grid = new heed.Grid({rows, columns, width, tallest: 420, label: `${titles[which]}, ${kind} attention. Arrow keys read the weights.`,
        shares: which === 2 ? [-1, 0, 1] : [0, 0.5, 1],
        point: (i, j) => grids.forEach((one, at) => at !== which && one.mark(i, j))});
      grids.push(grid);
      grid.paint(this.value(pair, which), top);
      const file = () => titles[which].toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
      return heed.make("figure", {}, heed.make("figcaption", {}, heed.make("span", {}, titles[which]),
        heed.make("span", {class: "right"}, ...heed.saveButtons(() => grid.svg, file))), heed.make("div", {class: "scroll"}, grid.svg));
    });
    this.panels.replaceChildren(...panels);
  }
  renderCards(pairs) {
    const size = 84, focused = this.cards.contains(document.activeElement);
    this.cards.replaceChildren(...pairs.map((pair, index) => {
      const {rows, columns} = this.map(0, pair.one[0]), ratio = rows.length / columns.length, here = index === this.state.pair;
      const pictures = (pair.other ? [0, 1, 2] : [0]).map((which) => {
        const canvas = heed.make("canvas", {"aria-hidden": "true"});
        heed.paint(canvas, rows.length, columns.length, this.value(pair, which), this.state.own ? this.top(pair) : 1);
        canvas.style.width = `${ratio > 1 ? size / ratio : size}px`;
        canvas.style.height = `${ratio > 1 ? size : size * ratio}px`;
        return canvas;
      });
      const words = pair.other ? `${this.name(0, pair.one)} ~ ${this.name(this.state.other, pair.other)}` : `${this.name(0, pair.one)} alone`;
      return heed.make("button", {type: "button", class: "pair", "aria-pressed": String(here), tabindex: here ? 0 : -1,
        onclick: () => this.change({pair: index})}, heed.make("span", {class: "row"}, ...pictures),
      heed.make("span", {class: "pairName"}, words), pair.other
        ? heed.make("span", {class: "distance", style: `--part:${Math.min(1, pair.distance / Math.LN2)}`}, `${pair.distance.toFixed(3)} nats`) : "");
    }));
    if (focused) this.cards.querySelector("[aria-pressed=true]")?.focus();
  }
};
heed.sides = [...document.querySelectorAll("section.side")].map((root) => new heed.Side(root));
