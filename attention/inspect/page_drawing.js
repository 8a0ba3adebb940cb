// What the viewer draws: a picture for each view, the notes below it, the numbers as a table; and the keyboard.

Object.assign(heed.Maps.prototype, {
  // The elements of the chosen view.
  draw(width) {
    const {map, view, shown} = this.state, layered = this.layered(), head = this.headOf();
    if (view === "overview") return this.drawOverview(width);
    if (view === "neurons") return [this.drawNeurons(width)];
    if (view === "picture") return [this.drawPictures(width)];
    if (view === "text") return [this.drawText(width)];
    const {rows, columns} = this.visible(), {least} = this.filter;
    if (!rows.length || !columns.length)
      return [heed.make("p", {class: "note"}, "The filter leaves no token. Escape clears it.")];
    const words = {rows: rows.map((i) => map.rowLabels[i]), columns: columns.map((j) => map.columnLabels[j])};
    const isSigned = shown === "attribution";
    if (view === "matrix") {
      const hasWindow = map.isTiled && map.hasSingles(shown), top = this.top();
      const value = (i, j) => layered.at(head, rows[i], columns[j]);
      const svg = heed.matrix({...words, value, top, isSigned, width: width - 190,
        shown: least > 0 ? (i, j) => (Math.abs(value(i, j)) / top < least ? 0 : value(i, j)) : value,
        read: map.isTiled ? null : (i, j) => this.read(rows[i], columns[j]),
        label: `${this.title()}, ${rows.length} queries by ${columns.length} keys. Arrow keys read the weights.`,
        marked: this.query === null ? -1 : map.isTiled ? Math.floor(this.query / map.tile[0]) : rows.indexOf(this.query),
        pickRow: map.isTiled ? null : (i) => this.pick(rows[i]),
        pick: hasWindow ? (i, j) => this.window.move((i + 0.5) * map.tile[0], (j + 0.5) * map.tile[1]) : null});
      if (hasWindow) this.window.attach(svg);
      return [svg];
    }
    const heads = shown === "rollout" ? [0] : [...this.chosen].sort((a, b) => a - b);
    const top = shown === "attribution" ? Math.max(...heads.map((one) => layered.largest(one))) : 1;
    return [heed.lines({...words, width, top, least: Math.max(least, 0.03),
      marked: this.query === null || map.isTiled ? -1 : rows.indexOf(this.query),
      pick: map.isTiled ? null : (i) => this.pick(rows[i]),
      heads: heads.map((one) => ({name: one, colour: heed.series(one), value: (i, j) => layered.at(one, rows[i], columns[j])})),
      label: `${this.title()} as lines. Arrow keys walk over the tokens, Enter keeps one.`})];
  },
  // The weight of the darkest shade of a matrix.
  top() {
    const {shown, map} = this.state, layered = this.layered(), head = this.headOf();
    if (this.scale() === "common" && map.isTiled) return layered.common(head);
    return this.scale() === "largest" || shown === "attribution" ? layered.largest(head) : 1;
  },
  // The chosen scale of colours; while none is chosen, one on which this map's weights can be seen.
  scale() {
    const {map} = this.state;
    if (this.scaleTo && (this.scaleTo !== "common" || map.isTiled)) return this.scaleTo;
    return map.isTiled ? "common" : map.isFaint() ? "largest" : "one";
  },
  // Every layer and head of every kind, as large as fits.
  drawOverview(width) {
    return this.groups.flatMap((group) => {
      const count = Math.max(...group.maps.map((one) => one.heads)) + 2;
      const grid = heed.thumbnails(this, group, heed.clamp(Math.floor((width - 56) / count) - 8, 22, 200));
      grid.classList.add("large");
      grid.addEventListener("keydown", (event) => heed.moveInThumbnails(this, group, event));
      grid.addEventListener("dblclick", () => this.change({view: this.state.map.picture ? "picture" : "matrix"}));
      return [heed.make("h4", {}, heed.kindNames[group.kind] || group.kind), grid];
    });
  },
  // The running text: of a long input, a part around the query that is kept.
  drawText(width) {
    const {map} = this.state, layered = this.layered(), head = this.headOf(), most = 1200;
    const part = (tokens, middle) => {
      const from = heed.clamp(middle - most / 2, 0, Math.max(0, tokens.length - most));
      return [from, tokens.slice(from, from + most)];
    };
    const [i0, queries] = part(map.queryTokens, this.query ?? 0);
    const [j0, keys] = map.isSame ? [i0, queries] : part(map.keyTokens, this.query ?? 0);
    const usable = map.hasSingles(this.state.shown), {least} = this.filter;
    const value = (i, j) => (usable ? layered.single(head, i0 + i, j0 + j) ?? 0 : 0);
    const highest = new Map(), topOf = (i) => {
      if (!highest.has(i)) highest.set(i, Math.max(1e-9, ...keys.map((_, j) => Math.abs(value(i, j)) || 0)));
      return highest.get(i);
    };
    this.textPart = {from: i0, count: queries.length};
    return heed.text({queries, keys, isSame: map.isSame, top: 1, width, read: (i, j) => this.read(i0 + i, j0 + j),
      value: (i, j) => {
        const share = value(i, j) / (this.state.shown === "weights" && !map.isTiled && !map.isFaint() ? 1 : topOf(i));
        return Math.abs(share) < least ? 0 : share;
      },
      chosen: this.query === null || this.query < i0 || this.query >= i0 + queries.length ? null : this.query - i0,
      pick: (i) => this.pick(i0 + i), label: `${this.title()} in the text. Arrow keys walk over the queries, Enter keeps one.`});
  },
  drawPictures(width) {
    const {map, shown} = this.state, layered = this.layered(), {picture} = map;
    const count = shown === "rollout" ? 1 : map.heads > 1 ? map.heads + 1 : 1;
    const all = Array.from({length: count}, (_, head) => {
      const received = new Map();
      const mean = (key) => {
        if (!received.has(key)) {
          let sum = 0;
          if (shown === "weights") {
            const some = head < map.heads ? [head] : Array.from({length: map.heads}, (_, h) => h);
            for (const h of some) sum += map.received.at(h, 0, key) / some.length;
          } else {
            for (let i = 0; i < map.queries; ++i) sum += (layered.single(head, i, key) || 0) / map.queries;
          }
          received.set(key, sum);
        }
        return received.get(key);
      };
      const weight = (query, key) => (query === null ? mean(key) : layered.single(head, query, key) ?? 0);
      const tops = new Map(), top = (query) => {
        if (!tops.has(query)) {
          let most = 1e-12;
          for (let key = picture.first; key < map.keys; ++key) most = Math.max(most, Math.abs(weight(query, key)) || 0);
          tops.set(query, most);
        }
        return tops.get(query);
      };
      return {name: shown === "rollout" ? "rollout" : head < map.heads ? `head ${head}` : "mean", weight, top};
    });
    const chosen = this.query ?? (picture.first > 0 ? 0 : null);
    const shownHead = shown === "rollout" ? 0 : Math.min(this.state.head, count - 1);
    return heed.pictures({picture, heads: all, shownHead, chosen, width, pick: (query) => this.pick(query ?? this.query),
      pickHead: (head) => this.change({head}),
      read: (query, key) => (query === null ? [heed.number(all[shownHead].weight(null, key))] : this.read(query, key)),
      label: `${this.title()} over the picture. Arrow keys choose the patch that looks, Enter keeps it.`});
  },
  drawNeurons(width) {
    const {map, head} = this.state, {factors} = map, one = Math.min(head, map.heads - 1), query = this.query ?? 0;
    return heed.neurons({query: map.queryTokens[query], keys: map.keyTokens, size: factors.queries.columns, scale: factors.scale,
      vector: (d) => factors.queries.at(one, query, d), keyVector: (j, d) => factors.keys.at(one, j, d), width,
      weight: (j) => map.weights.single(one, query, j), isSoftmax: factors.softmax,
      label: `${this.title()}: query ${map.queryTokens[query]} and the keys behind its weights. Arrow keys choose the query.`,
      step: (by) => this.pick(heed.clamp(query + by, 0, map.queries - 1))});
  },

  // What must be known to read the picture.
  notes() {
    const {map, view, shown} = this.state, out = [];
    if (shown === "attribution")
      out.push("Attribution is weight times gradient: how much the log probability of what the model chose would grow, to first " +
        `order, with this weight. ${view === "lines" ? "Dashed" : "Orange"}: it would fall.`);
    if (shown === "rollout")
      out.push("Rollout follows the weights through all layers so far: the mean of the heads and the identity, each row divided " +
        "by its sum, one layer times the next (Abnar and Zuidema 2020).");
    if (view === "matrix" && shown === "weights" && this.scale() === "largest")
      out.push(`The darkest colour is the largest weight of this head, ${heed.number(this.top())}.`);
    const [low, high] = map.sumRange(this.headOf());
    if (shown === "weights" && view !== "overview" && !(Math.abs(low - 1) < 0.002 && Math.abs(high - 1) < 0.002))
      out.push(`Rows do not sum to one here: they sum to ${heed.number(low)} to ${heed.number(high)}.`);
    if (view === "neurons") {
      out.push(map.factors.softmax ? `The weights are the softmax of the scores; a score is the sum of the products ` +
        `times ${heed.tick(map.factors.scale)}.`
        : "The weights are not a plain softmax of these products: this attention computes them in another way.");
      if (map.keys > 48) out.push("The 48 keys with the largest weights are shown.");
    }
    if (view === "text" && this.textPart.count < map.queries)
      out.push(`Tokens ${this.textPart.from} to ${this.textPart.from + this.textPart.count - 1} of ${map.queries} are shown. ` +
        "Keep a query in the matrix to see the text around it.");
    if (map.isTiled && view !== "overview") {
      const whole = this.layered()?.whole;
      if (view === "matrix" || view === "lines") out.push(`${map.queries} queries and ${map.keys} keys are shown in tiles of ` +
        `${map.tile[0]} by ${map.tile[1]} tokens. ` + (whole ? "Click a tile, or drag, to see its weights one by one."
        : "The single weights are too many for this page; they are in the saved matrices."));
      if (whole && !whole.isComplete) out.push(`The page has the ${whole.count} largest weights of each row; of the ` +
        "others it has a bound. The saved matrices have all.");
    }
    const {rows, columns} = this.visible();
    if (view !== "overview" && (rows.length < map.rowLabels.length || columns.length < map.columnLabels.length))
      out.push(`The filter leaves ${rows.length} of ${map.rowLabels.length} queries and ${columns.length} of ` +
        `${map.columnLabels.length} keys. Weights are as without it.`);
    return out;
  },
  renderNumbers() {
    const {map, view} = this.state, {rows, columns} = this.visible(), layered = this.layered(), head = this.headOf();
    this.numbers.hidden = view === "overview";
    if (!this.numbers.open || this.numbers.hidden) return;
    this.numbers.lastChild.replaceChildren(heed.weightTable({title: this.title(), rows: rows.map((i) => map.rowLabels[i]),
      columns: columns.map((j) => map.columnLabels[j]), value: (i, j) => layered.at(head, rows[i], columns[j])}));
  },
  renderChips() {
    const {map} = this.state, isAll = this.chosen.size === map.heads;
    const changed = () => {
      this.render();
      this.writeHash();
    };
    const chip = (head) => heed.make("button", {type: "button", class: "chip", "aria-pressed": String(this.chosen.has(head)),
      style: `--chip:${heed.series(head)}`, "aria-label": `head ${head}`, onclick: () => {
        if (!this.chosen.delete(head)) this.chosen.add(head);
        this.chosen.delete(map.heads);
        if (!this.chosen.size) this.chosen.add(head);
        changed();
      }}, String(head));
    this.chips.replaceChildren(heed.make("span", {class: "mark"}, "heads"),
      ...Array.from({length: map.heads}, (_, head) => chip(head)),
      heed.make("button", {type: "button", class: "quiet", onclick: () => {
        this.chosen = new Set(isAll ? [Math.min(this.state.head, map.heads - 1)] : Array.from({length: map.heads}, (_, h) => h));
        changed();
      }}, isAll ? "only one" : "all"));
  },

  help() {
    this.dialog ||= heed.helpDialog();
    this.dialog.showModal();
  },
  // One key pressed outside of a text field; true where it means something.
  press(key) {
    const {kind, map, head, shown} = this.state, group = this.groups.find((one) => one.kind === kind);
    const views = {m: "matrix", l: "lines", t: "text", p: "picture", n: "neurons", o: "overview"};
    const next = (list, now, by) => list[(list.indexOf(now) + by + list.length) % list.length];
    if (views[key]) return this.hasView(map, views[key]) && (this.change({view: views[key]}), true);
    const actions = {
      "[": () => this.change({map: next(group.maps, map, -1)}), "]": () => this.change({map: next(group.maps, map, 1)}),
      ",": () => this.change({head: (head + map.heads) % (map.heads + 1)}),
      ".": () => this.change({head: (head + 1) % (map.heads + 1)}),
      a: () => this.change({head: map.heads > 1 ? map.heads : 0}),
      k: () => this.change({kind: next(this.groups.map((one) => one.kind), kind, 1)}),
      w: () => this.change({shown: next(Object.keys(heed.shownNames).filter((name) => map.has(name)), shown, 1)}),
      "/": () => this.filterText.focus(),
      s: () => this.specials.click(),
      e: () => {
        const svg = this.svg();
        if (svg) heed.save(svg, this.fileName(), "svg");
      },
      "?": () => this.help(),
      Escape: () => {
        this.query = null;
        this.filter = {...this.filter, text: "", specials: true, least: 0};
        [this.filterText.value, this.least.value] = ["", 0];
        heed.tip.hide();
        this.render();
        this.writeHash();
      },
    };
    return actions[key] ? (actions[key](), true) : false;
  },
});

// After the controls are drawn anew, the one that had the focus has it again.
heed.focusKeeper = (root) => {
  const element = document.activeElement, inside = root.contains(element) && element !== root;
  const box = inside ? element.closest("[role=group], .picture, .zoom") : null;
  const label = box?.getAttribute("aria-label"), words = element?.textContent;
  const name = element?.classList?.value, tag = element?.tagName;
  return () => {
    if (!inside || document.contains(element)) return;
    const pressed = tag === "BUTTON" && [...root.querySelectorAll("button[aria-pressed=true]")].find((one) =>
      one.closest("[role=group]")?.getAttribute("aria-label") === label);
    const same = [...root.querySelectorAll(tag)].find((one) =>
      one.classList.value === name && (tag !== "BUTTON" || one.textContent === words));
    (pressed || same)?.focus({preventScroll: true});
  };
};

heed.viewers = [...document.querySelectorAll("section.maps")].map((root) => new heed.Maps(root));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const isTyping = event.target.matches("input, select, textarea");
  if (isTyping && event.key !== "Escape") return;
  if (document.querySelector("dialog[open]")) return;
  const viewer = heed.viewers.find((one) => one.root.contains(event.target)) || heed.viewers[0];
  if (!viewer?.press(event.key)) return;
  event.preventDefault();
  if (isTyping) event.target.blur();
});
