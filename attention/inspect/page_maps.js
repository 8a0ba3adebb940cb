// The viewer of a section of attention maps: what is chosen, the controls, the keyboard; needs the other page scripts.

heed.viewNames = {matrix: "Matrix", lines: "Lines", text: "Text", picture: "Picture", neurons: "Neurons", overview: "All heads"};

heed.Maps = class {
  constructor(root) {
    const json = JSON.parse(root.querySelector("script").textContent);
    this.root = root;
    this.groups = [];
    json.maps.forEach((one, index) => {
      const map = new heed.Map(one, json);
      let group = this.groups.find((other) => other.kind === map.kind);
      if (!group) this.groups.push(group = {kind: map.kind, maps: []});
      group.maps.push(map);
      if (index === json.first.map)
        this.state = {kind: map.kind, map, head: json.first.head, view: map.picture ? "picture" : "matrix", shown: "weights"};
    });
    for (const group of this.groups) group.maps.sort((a, b) => a.layer - b.layer);
    this.chosen = new Set([this.state.head]);
    this.scaleTo = null;  // what a reader chose; see scale()
    this.query = null;
    this.filter = {text: "", of: "queries", specials: true, least: 0};
    this.window = new heed.Window(this);
    this.build();
    this.readHash();
    this.render();
    const redraw = () => this.render();
    heed.scheme.addEventListener("change", redraw);
    addEventListener("beforeprint", () => (heed.isPrinting = true, redraw()));
    addEventListener("afterprint", () => (heed.isPrinting = false, redraw()));
    addEventListener("hashchange", () => this.readHash() && redraw());
    let width = innerWidth;
    addEventListener("resize", () => {
      if (Math.abs(innerWidth - width) < 24) return;
      width = innerWidth;
      redraw();
    });
  }

  // The address remembers what is shown: #cross-0-3-lines, with "mean" for the mean of the heads, "-all" for the lines of
  // all heads, and then ";attribution" or ";rollout" and ";query=5" where they are chosen.
  readHash() {
    const [place, ...more] = decodeURIComponent(location.hash).split(";");
    const found = place.match(/^#(.+)-(\d+)-(\d+|mean)-([a-z]+?)(-all)?$/);
    const group = found && this.groups.find((one) => one.kind.replaceAll(" ", "-") === found[1]);
    const map = group && group.maps.find((one) => one.layer === +found[2]);
    if (!map || (found[3] !== "mean" && +found[3] >= map.heads) || !this.hasView(map, found[4])) return false;
    const shown = more.find((word) => word in heed.shownNames && map.has(word)) || "weights";
    this.state = {kind: group.kind, map, head: found[3] === "mean" ? map.heads : +found[3], view: found[4], shown};
    this.chosen = new Set(found[5] ? Array.from({length: map.heads}, (_, head) => head) : [this.state.head]);
    const query = more.find((word) => /^query=\d+$/.test(word));
    this.query = query && +query.slice(6) < map.queries ? +query.slice(6) : null;
    return true;
  }
  writeHash() {
    const {kind, map, view, shown} = this.state, all = this.chosen.size === map.heads && map.heads > 1 ? "-all" : "";
    const more = (shown === "weights" ? "" : `;${shown}`) + (this.query === null ? "" : `;query=${this.query}`);
    try {
      history.replaceState(null, "", `#${kind.replaceAll(" ", "-")}-${map.layer}-${this.headName("mean")}-${view}${all}${more}`);
    } catch {
      // Some browsers refuse to change the address of a local file; nothing is lost.
    }
  }
  hasView(map, view) {
    return view in heed.viewNames && (view !== "picture" || Boolean(map.picture)) &&
      (view !== "neurons" || Boolean(map.factors)) && (view !== "text" || !map.picture);
  }
  headName(mean = "mean of the heads") {
    return this.state.head < this.state.map.heads ? String(this.state.head) : mean;
  }
  title() {
    const {kind, map, head, view, shown} = this.state, several = view === "lines" && this.chosen.size > 1;
    const name = `${heed.kindNames[kind] || kind} attention`;
    if (view === "overview") return "All layers and heads";
    if (shown === "rollout") return `${name}, rollout of layers 0 to ${map.layer}`;
    const heads = several && this.chosen.size === map.heads ? "all heads"
      : several ? `heads ${[...this.chosen].sort((a, b) => a - b).join(" ")}`
      : head < map.heads ? `head ${head}` : "mean of the heads";
    return `${name}, layer ${map.layer}, ${heads}${shown === "attribution" ? ", weight times gradient" : ""}`;
  }
  fileName() {
    return `${this.title().toLowerCase().replaceAll(",", "").replaceAll(" ", "-")}-${this.state.view}`;
  }
  change(part) {
    const before = this.state;
    if (part.kind && part.kind !== before.kind && !part.map) {
      const group = this.groups.find((one) => one.kind === part.kind);
      part.map = group.maps.find((one) => one.layer === before.map.layer) || group.maps[0];
      part.head = Math.min(before.head, part.map.heads - 1);
    }
    this.state = {...before, ...part};
    const {map} = this.state;
    if (part.map && part.map.kind !== before.map.kind) this.query = null;
    if (!map.has(this.state.shown)) this.state.shown = "weights";
    if (!this.hasView(map, this.state.view)) this.state.view = "matrix";
    if (this.state.view === "neurons") this.state.head = Math.min(this.state.head, map.heads - 1);
    if ("head" in part) this.chosen = new Set([this.state.head]);
    heed.tip.hide();
    this.render();
    this.writeHash();
  }
  // Keeps a query in every view; the same one again lets it go.
  pick(query) {
    this.query = query === this.query ? null : query;
    heed.tip.hide();
    this.render();
    this.writeHash();
  }

  // The picture that is saved.
  svg() {
    return this.state.view === "overview" ? heed.overviewSvg(this) : this.picture.querySelector("svg");
  }

  // What is shown, the head of it, and what the tooltip says of one of its numbers.
  layered() {
    return this.state.map[this.state.shown];
  }
  headOf() {
    return this.state.shown === "rollout" ? 0 : this.state.head;
  }
  read(i, j) {
    const {map, shown} = this.state, layered = this.layered(), head = this.headOf(), value = layered.single(head, i, j);
    if (value === undefined)
      return [`below ${heed.number(layered.bound(head, i))}`, "not among the largest of its row, which this page has"];
    const lines = [heed.number(value)];
    if (shown === "attribution") lines.push(`weight ${heed.number(map.weights.single(head, i, j))}`);
    return lines;
  }
  // Indices of the rows and columns that the filter leaves.
  visible() {
    const {map} = this.state, {text, of, specials} = this.filter, wanted = text.toLowerCase();
    const keep = (labels, side) => labels.map((_, at) => at).filter((at) =>
      map.isTiled || ((specials || !heed.isSpecial(labels[at])) &&
      (!wanted || (of !== side && of !== "both") || labels[at].toLowerCase().includes(wanted))));
    return {rows: keep(map.rowLabels, "queries"), columns: keep(map.columnLabels, "keys")};
  }

  build() {
    const group = (label, name = "choice") => heed.make("div", {class: name, role: "group", "aria-label": label});
    this.kinds = group("Kind of attention");
    this.shownChoice = group("What is shown");
    this.views = group("View");
    this.scaleBar = group("Colour scale");
    this.chips = group("Heads shown", "chips");
    this.thumbs = heed.make("div");
    this.table = heed.make("div", {class: "scroll"});
    this.heading = heed.make("h3", {"aria-live": "polite"});
    this.picture = heed.make("div", {class: "picture scroll"});
    this.note = heed.make("div", {class: "notes"});
    this.numbers = heed.make("details", {class: "as-table", "aria-label": "Numbers"},
      heed.make("summary", {}, "These numbers as a table"), heed.make("div", {class: "scroll"}));
    this.numbers.addEventListener("toggle", () => this.renderNumbers());
    const changed = (part) => {
      Object.assign(this.filter, part);
      this.render();
    };
    this.filterText = heed.make("input", {type: "search", "aria-label": "Show only tokens that contain", size: 10,
      oninput: (event) => changed({text: event.target.value})});
    this.filterOf = heed.make("select", {"aria-label": "Which tokens are filtered",
      onchange: (event) => changed({of: event.target.value})},
      ...["queries", "keys", "both"].map((name) => heed.make("option", {value: name}, name)));
    this.specials = heed.make("button", {type: "button", class: "quiet", title: "Show special tokens: [SOS], <s> and the like",
      onclick: () => changed({specials: !this.filter.specials})}, "special tokens");
    this.least = heed.make("input", {type: "range", min: 0, max: 0.5, step: 0.01, value: 0,
      "aria-label": "Leave out weights below this share of the scale",
      oninput: (event) => changed({least: +event.target.value})});
    this.leastWord = heed.make("output", {}, "");
    this.filterBar = heed.make("div", {class: "bar filter", role: "search"},
      heed.make("label", {}, "Filter ", this.filterText), this.filterOf, this.specials,
      heed.make("label", {}, "at least ", this.least, this.leastWord));
    const help = heed.make("button", {type: "button", class: "quiet", title: "Keyboard", "aria-label": "Keyboard help",
      onclick: () => this.help()}, "?");
    const saving = heed.make("div", {class: "choice right"},
      ...heed.saveButtons(() => this.svg(), () => this.fileName()), help);
    this.overviewBox = heed.make("div", {class: "overview"}, this.thumbs, this.table);
    this.root.append(heed.make("div", {class: "controls"}, this.kinds, this.shownChoice, this.views, saving), this.overviewBox,
      heed.make("div", {class: "detail"}, this.heading, heed.make("div", {class: "bar"}, this.scaleBar, this.filterBar),
        this.chips, this.picture, this.note, this.window.root, this.numbers));
  }
  choice(words, pressed, click) {
    return heed.make("button", {type: "button", "aria-pressed": String(pressed), onclick: click}, words);
  }

  render() {
    const {kind, map, view, shown} = this.state, focus = heed.focusKeeper(this.root);
    this.kinds.replaceChildren(...this.groups.map((group) => this.choice(heed.kindNames[group.kind] || group.kind,
      group.kind === kind, () => this.change({kind: group.kind}))));
    this.kinds.hidden = this.groups.length < 2;
    const sources = Object.keys(heed.shownNames).filter((name) => map.has(name));
    this.shownChoice.replaceChildren(...sources.map((name) =>
      this.choice(heed.shownNames[name], shown === name, () => this.change({shown: name}))));
    this.shownChoice.hidden = sources.length < 2;
    this.views.replaceChildren(...Object.keys(heed.viewNames).filter((name) => this.hasView(map, name)).map((name) =>
      this.choice(heed.viewNames[name], view === name, () => this.change({view: name}))));
    const scales = [["one", "0 to 1"], ["largest", "0 to largest"], ...(map.isTiled ? [["common", "0 to 99 %"]] : [])];
    this.scaleBar.replaceChildren(...scales.map(([name, words]) => this.choice(words, this.scale() === name, () => {
      this.scaleTo = name;
      this.render();
    })));
    this.scaleBar.hidden = view !== "matrix" || shown === "attribution";
    this.heading.textContent = this.title();
    const isWide = view === "overview";
    this.root.classList.toggle("wide", isWide);
    this.overviewBox.hidden = isWide;
    this.filterBar.hidden = isWide || map.isTiled || view === "picture" || view === "neurons";
    this.specials.setAttribute("aria-pressed", String(this.filter.specials));
    this.specials.hidden = ![...map.rowLabels, ...map.columnLabels].some(heed.isSpecial);
    this.leastWord.textContent = this.filter.least.toFixed(2);
    this.chips.hidden = view !== "lines" || map.heads < 2 || shown === "rollout";
    if (!isWide) {
      const group = this.groups.find((one) => one.kind === kind), count = Math.max(...group.maps.map((one) => one.heads)) + 2;
      const grid = heed.thumbnails(this, group, heed.clamp(Math.floor((this.thumbs.clientWidth - 56) / count) - 6, 22, 84));
      grid.addEventListener("keydown", (event) => heed.moveInThumbnails(this, group, event));
      this.thumbs.replaceChildren(grid);
      this.table.replaceChildren(heed.statisticsTable(this));
    }
    if (!this.chips.hidden) this.renderChips();
    this.window.frame = null;
    this.picture.replaceChildren(...this.draw(Math.max(280, this.picture.clientWidth || 560)));
    this.note.replaceChildren(...this.notes().map((words) => heed.make("p", {class: "note"}, words)));
    const hasWindow = map.isTiled && view === "matrix" && map.hasSingles(shown);
    this.window.root.hidden = !hasWindow;
    if (hasWindow) this.window.render();
    this.renderNumbers();
    focus();
  }
};
