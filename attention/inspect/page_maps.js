// The viewer of a section of attention maps; needs page_tools.js and page_views.js.

// A block of weights as the page carries it: base64 of 16-bit steps between low and high, [heads, rows, columns].
heed.Block = class {
  constructor(json, heads) {
    Object.assign(this, json);
    this.heads = heads;
  }
  code(head, i, j) {
    if (!this.codes) {
      const text = atob(this.weights), bytes = new Uint8Array(text.length);
      for (let at = 0; at < text.length; ++at) bytes[at] = text.charCodeAt(at);
      const view = new DataView(bytes.buffer);
      this.codes = Uint16Array.from({length: bytes.length / 2}, (_, at) => view.getUint16(2 * at, true));
      this.weights = null;
    }
    return this.codes[(head * this.rows.length + i) * this.columns.length + j];
  }
  // The weight of a head; the head after the last one is their mean.
  at(head, i, j) {
    if (head < this.heads) {
      const code = this.code(head, i, j);
      return code === 65535 ? NaN : this.low + (this.high - this.low) * code / 65534;
    }
    let sum = 0;
    for (let h = 0; h < this.heads; ++h) sum += this.at(h, i, j);
    return sum / this.heads;
  }
  largest(head) {
    let most = 0;
    for (let i = 0; i < this.rows.length; ++i)
      for (let j = 0; j < this.columns.length; ++j) most = Math.max(most, this.at(head, i, j) || 0);
    return most || 1;
  }
};

heed.kindNames = {"encoder self": "Encoder self", "decoder self": "Decoder self", "cross": "Cross"};

heed.Maps = class {
  constructor(root) {
    const json = JSON.parse(root.querySelector("script").textContent);
    this.root = root;
    this.groups = [];
    json.maps.forEach((map, index) => {
      map.view = new heed.Block(map.view, map.heads);
      if (map.whole) map.whole = new heed.Block(map.whole, map.heads);
      let group = this.groups.find((one) => one.kind === map.kind);
      if (!group) this.groups.push(group = {kind: map.kind, maps: []});
      group.maps.push(map);
      if (index === json.first.map) this.state = {kind: map.kind, map, head: json.first.head, view: "matrix"};
    });
    for (const group of this.groups) group.maps.sort((a, b) => a.layer - b.layer);
    this.chosen = new Set([this.state.head]);
    this.ownScale = false;
    this.build();
    this.readHash();
    this.render();
    heed.scheme.addEventListener("change", () => this.render());
    addEventListener("hashchange", () => this.readHash() && this.render());
    let width = innerWidth;
    addEventListener("resize", () => {
      if (Math.abs(innerWidth - width) < 24) return;
      width = innerWidth;
      this.render();
    });
  }

  // The address remembers what is shown: #cross-0-3-lines, or "mean" for the mean of the heads.
  readHash() {
    const found = decodeURIComponent(location.hash).match(/^#(.+)-(\d+)-(\d+|mean)-(matrix|lines)(-all)?$/);
    const group = found && this.groups.find((one) => one.kind.replaceAll(" ", "-") === found[1]);
    const map = group && group.maps.find((one) => one.layer === +found[2]);
    if (!map || (found[3] !== "mean" && +found[3] >= map.heads)) return false;
    this.state = {kind: group.kind, map, head: found[3] === "mean" ? map.heads : +found[3], view: found[4]};
    this.chosen = new Set(found[5] ? Array.from({length: map.heads}, (_, head) => head) : [this.state.head]);
    return true;
  }
  writeHash() {
    const {kind, map, view} = this.state, all = this.chosen.size === map.heads && map.heads > 1 ? "-all" : "";
    try {
      history.replaceState(null, "", `#${kind.replaceAll(" ", "-")}-${map.layer}-${this.headName("mean")}-${view}${all}`);
    } catch {
      // Some browsers refuse to change the address of a local file; nothing is lost.
    }
  }
  headName(mean = "mean of the heads") {
    return this.state.head < this.state.map.heads ? String(this.state.head) : mean;
  }
  title() {
    const {kind, map, head, view} = this.state, several = view === "lines" && this.chosen.size > 1;
    const heads = several && this.chosen.size === map.heads ? "all heads"
      : several ? `heads ${[...this.chosen].sort((a, b) => a - b).join(" ")}`
      : head < map.heads ? `head ${head}` : "mean of the heads";
    return `${heed.kindNames[kind] || kind} attention, layer ${map.layer}, ${heads}`;
  }
  fileName() {
    return `${this.title().toLowerCase().replaceAll(",", "").replaceAll(" ", "-")}-${this.state.view}`;
  }
  change(part) {
    if (part.kind && part.kind !== this.state.kind) {
      const group = this.groups.find((one) => one.kind === part.kind);
      part.map = group.maps.find((one) => one.layer === this.state.map.layer) || group.maps[0];
      part.head = Math.min(this.state.head, part.map.heads - 1);
    }
    Object.assign(this.state, part);
    if ("head" in part) this.chosen = new Set([this.state.head]);
    heed.tip.hide();
    this.render();
    this.writeHash();
  }

  build() {
    const choice = (words, pressed, click) =>
      heed.make("button", {type: "button", "aria-pressed": String(pressed()), onclick: click}, words);
    this.kinds = heed.make("div", {class: "choice", role: "group", "aria-label": "Kind of attention"});
    this.thumbs = heed.make("div", {class: "thumbs", role: "group", "aria-label": "All layers and heads"});
    this.table = heed.make("div", {class: "scroll"});
    this.heading = heed.make("h3", {"aria-live": "polite"});
    this.views = heed.make("div", {class: "choice", role: "group", "aria-label": "View"});
    this.scale = heed.make("div", {class: "choice", role: "group", "aria-label": "Colour scale"});
    this.chips = heed.make("div", {class: "chips", role: "group", "aria-label": "Heads shown"});
    this.picture = heed.make("div", {class: "picture scroll"});
    this.note = heed.make("p", {class: "note"});
    this.zoom = heed.make("div", {class: "zoom"});
    this.choice = choice;
    const saving = heed.make("div", {class: "choice right"},
      ...heed.saveButtons(() => this.picture.querySelector("svg"), () => this.fileName()));
    this.root.append(
      heed.make("div", {class: "overview"}, this.kinds, this.thumbs, this.table),
      heed.make("div", {class: "detail"}, this.heading,
        heed.make("div", {class: "bar"}, this.views, this.scale, saving), this.chips, this.picture, this.note, this.zoom));
    this.thumbs.addEventListener("keydown", (event) => this.moveInThumbs(event));
  }

  render() {
    const {kind, map, head, view} = this.state;
    this.kinds.replaceChildren(...this.groups.map((group) => this.choice(heed.kindNames[group.kind] || group.kind,
      () => group.kind === kind, () => this.change({kind: group.kind}))));
    this.kinds.hidden = this.groups.length < 2;
    this.views.replaceChildren(...[["matrix", "Matrix"], ["lines", "Lines"]].map(([name, words]) =>
      this.choice(words, () => view === name, () => this.change({view: name}))));
    this.scale.replaceChildren(...[[false, "0 to 1"], [true, "0 to largest"]].map(([own, words]) =>
      this.choice(words, () => this.ownScale === own, () => {
        this.ownScale = own;
        this.render();
      })));
    this.scale.hidden = view !== "matrix";
    this.heading.textContent = this.title();
    this.renderThumbs();
    this.renderTable();
    this.chips.hidden = view !== "lines" || map.heads < 2;
    const width = Math.max(280, this.picture.clientWidth || 560);
    const {view: block} = map;
    if (view === "matrix") {
      this.picture.replaceChildren(heed.matrix({rows: block.rows, columns: block.columns,
        value: (i, j) => block.at(head, i, j), top: this.ownScale ? block.largest(head) : 1, width: width - 190,
        label: `${this.title()}, ${block.rows.length} queries by ${block.columns.length} keys. Arrow keys read the weights.`,
        pick: map.whole ? (i, j) => this.renderZoom(i * map.tile[0], j * map.tile[1]) : null}));
    } else {
      this.renderChips();
      const heads = [...this.chosen].sort((a, b) => a - b);
      this.picture.replaceChildren(heed.lines({rows: block.rows, columns: block.columns, width,
        heads: heads.map((one) => ({name: one, colour: heed.series(one), value: (i, j) => block.at(one, i, j)})),
        label: `${this.title()} as lines. Arrow keys walk over the tokens.`}));
    }
    const tiled = map.tile[0] > 1 || map.tile[1] > 1;
    this.note.textContent = !tiled ? "" : `${map.queries} queries and ${map.keys} keys are shown in tiles of ` +
      `${map.tile[0]} by ${map.tile[1]} tokens. ` + (map.whole ? "Click a tile to see its weights one by one."
        : "The single weights are too many for this page; they are in the saved matrices.");
    this.note.hidden = !tiled;
    this.zoom.replaceChildren();
    if (tiled && map.whole && view === "matrix") this.renderZoom(...(this.corner || [0, 0]));
  }

  renderThumbs() {
    const group = this.groups.find((one) => one.kind === this.state.kind);
    const heads = Math.max(...group.maps.map((map) => map.heads)), columns = heads + (heads > 1 ? 1 : 0);
    const size = heed.clamp(Math.floor((this.thumbs.clientWidth - 56) / columns) - 6, 22, 84);
    this.thumbs.style.gridTemplateColumns = `48px repeat(${columns}, ${size}px)`;
    const cells = [heed.make("span", {class: "mark side"}, "head")];
    for (let head = 0; head < columns; ++head)
      cells.push(heed.make("span", {class: "mark", "aria-hidden": "true"}, head < heads ? String(head) : "mean"));
    for (const map of group.maps) {
      cells.push(heed.make("span", {class: "mark side", title: map.name}, `layer ${map.layer}`));
      for (let head = 0; head < columns; ++head) {
        if (head >= map.heads && head < heads) {
          cells.push(heed.make("span"));
          continue;
        }
        const index = Math.min(head, map.heads), here = map === this.state.map && index === this.state.head;
        const name = index < map.heads ? `head ${index}, entropy ${heed.short(map.statistics[index].entropy, 2)}` : "mean of the heads";
        const {rows, columns: keys} = map.view, ratio = rows.length / keys.length;
        const canvas = map.thumbnails?.[heed.scheme.matches]?.[index] ||
          heed.pixels(rows.length, keys.length, (i, j) => map.view.at(index, i, j), 1);
        ((map.thumbnails ||= {})[heed.scheme.matches] ||= [])[index] = canvas;
        canvas.style.width = `${ratio > 1 ? size / ratio : size}px`;
        canvas.style.height = `${ratio > 1 ? size : size * ratio}px`;
        cells.push(heed.make("button", {type: "button", class: "thumb", "aria-pressed": String(here),
          tabindex: here ? 0 : -1, "aria-label": `layer ${map.layer}, ${name}`, title: `layer ${map.layer}, ${name}`,
          onclick: () => this.change({map, head: index})}, canvas));
      }
    }
    const focused = this.thumbs.contains(document.activeElement);
    this.thumbs.replaceChildren(...cells);
    if (focused) this.thumbs.querySelector("[aria-pressed=true]")?.focus();
  }
  moveInThumbs(event) {
    const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
    if (!step) return;
    event.preventDefault();
    const {maps} = this.groups.find((one) => one.kind === this.state.kind);
    const map = maps[heed.clamp(maps.indexOf(this.state.map) + step[0], 0, maps.length - 1)];
    this.change({map, head: heed.clamp(this.state.head + step[1], 0, map.heads > 1 ? map.heads : 0)});
  }

  renderChips() {
    const {map} = this.state, all = this.chosen.size === map.heads;
    const chip = (head) => heed.make("button", {type: "button", class: "chip", "aria-pressed": String(this.chosen.has(head)),
      style: `--chip:${heed.series(head)}`, "aria-label": `head ${head}`, onclick: () => {
        if (!this.chosen.delete(head)) this.chosen.add(head);
        this.chosen.delete(map.heads);
        if (!this.chosen.size) this.chosen.add(head);
        this.render();
        this.writeHash();
      }}, String(head));
    this.chips.replaceChildren(heed.make("span", {class: "mark"}, "heads"),
      ...Array.from({length: map.heads}, (_, head) => chip(head)),
      heed.make("button", {type: "button", class: "quiet", onclick: () => {
        this.chosen = new Set(all ? [Math.min(this.state.head, map.heads - 1)] : Array.from({length: map.heads}, (_, h) => h));
        this.render();
        this.writeHash();
      }}, all ? "only one" : "all"));
  }

  renderTable() {
    const {map} = this.state, diagonal = map.kind === "cross" ? "diagonal" : "self";
    const names = [["head", "head of this layer"], ["entropy", "mean entropy of a row in nats; the bar ends at uniform attention"],
      ["largest", "mean of the largest weight in each row, the end of the sentence left out"],
      [diagonal, "mean weight on the key at the query's own place"], ["previous", "mean weight one place before"],
      ["next", "mean weight one place after"], ["near", "mean weight within three places"],
      ["distance", "mean distance between query and key"], ["favourite", "the key with the largest mean weight"]];
    const row = (one, head) => {
      const favourite = map.favourites[head];
      return heed.make("tr", {"aria-selected": String(head === this.state.head), onclick: () => this.change({head})},
        heed.make("th", {scope: "row"}, heed.make("button", {type: "button", class: "plain"}, String(head))),
        heed.make("td", {class: "meter", style: `--part:${(one.entropy / (one.uniform || 1)).toFixed(3)}`},
          heed.short(one.entropy, 2)),
        ...[one.confidence, one.diagonal, one.previous, one.next, one.near].map((value) => heed.make("td", {}, heed.short(value, 2))),
        heed.make("td", {}, heed.short(one.distance, 1)),
        heed.make("td", {class: "word", title: `${favourite} receives ${heed.short(one.mass, 3)} of all attention`},
          ...(/^\u2581./.test(favourite) ? [heed.make("span", {class: "faint"}, "\u2581"), favourite.slice(1)] : [favourite])));
    };
    this.table.replaceChildren(heed.make("table", {class: "numbers"},
      heed.make("caption", {}, `Layer ${map.layer}: what each head does. Uniform attention has entropy ` +
        `${map.statistics[0].uniform.toFixed(2)}.`),
      heed.make("thead", {}, heed.make("tr", {}, ...names.map(([name, help]) => heed.make("th", {scope: "col", title: help}, name)))),
      heed.make("tbody", {}, ...map.statistics.map(row))));
  }

  // The window of single weights around a tile that was picked in a long map.
  renderZoom(row, column) {
    const {map, head} = this.state, {whole} = map, size = 40;
    const first = heed.clamp(row - size / 2, 0, Math.max(0, whole.rows.length - size));
    const from = heed.clamp(column - size / 2, 0, Math.max(0, whole.columns.length - size));
    this.corner = [first + size / 2, from + size / 2];
    const rows = whole.rows.slice(first, first + size), columns = whole.columns.slice(from, from + size);
    const value = (i, j) => whole.at(head, first + i, from + j);
    let top = 0;
    rows.forEach((_, i) => columns.forEach((_, j) => top = Math.max(top, value(i, j) || 0)));
    const pan = (words, help, down, right) => heed.make("button", {type: "button", class: "quiet", "aria-label": help,
      title: help, onclick: () => this.renderZoom(this.corner[0] + down * size / 2, this.corner[1] + right * size / 2)}, words);
    const svg = heed.matrix({rows, columns, value, top: this.ownScale ? top || 1 : 1,
      width: Math.max(280, this.picture.clientWidth - 190),
      label: `Single weights of queries ${first} to ${first + rows.length - 1} and keys ${from} to ${from + columns.length - 1}`});
    this.zoom.replaceChildren(heed.make("div", {class: "bar"},
      heed.make("h4", {}, `Queries ${first}–${first + rows.length - 1}, keys ${from}–${from + columns.length - 1}`),
      heed.make("div", {class: "choice right"}, pan("←", "earlier keys", 0, -1), pan("→", "later keys", 0, 1),
        pan("↑", "earlier queries", -1, 0), pan("↓", "later queries", 1, 0),
        ...heed.saveButtons(() => svg, () => `${this.fileName()}-${first}-${from}`))),
      heed.make("div", {class: "picture scroll"}, svg));
  }
};

heed.viewers = [...document.querySelectorAll("section.maps")].map((root) => new heed.Maps(root));
