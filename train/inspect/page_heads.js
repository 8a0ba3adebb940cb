// The table of attention heads: sorting, the detail of a head with its examples, clustered distances; needs page_tools.js.

heed.HeadReport = class {
  // Heading, what it means, how it is read, and whether the short table has it too.
  static columns = [
    ["head", "kind of attention, layer and number, from 0", (h) => h.name, true],
    ["role", "what the head does, by published criteria. positional: the largest weight is at one offset in 90 % of the " +
      "rows; rare words: on the rarest word in 50 %, of rows where one word is the rarest; special tokens, punctuation, vertical (one column): half of the " +
      "weight is there; previous token, induction: weight 0.4 in repeated sequences; alignment: 10 points above the best " +
      "single offset; uniform: 95 % of the entropy of equal weights. Fewer than 8 rows give none. – for none of these",
      (h) => h.roles.map((r) => r.name).join(", "), true],
    ["entropy, share", "entropy of a row over that of equal weights: 0 for one key alone, 1 for all keys alike",
      (h) => h.measures.entropy / h.measures.uniform_entropy, true],
    ["entropy, nats", "entropy of a row", (h) => h.measures.entropy],
    ["largest weight", "largest weight in a row; weights on the end-of-sentence token are not counted", (h) => h.measures.confidence, true],
    ["self", "weight on the query's own position", (h) => h.measures.self, true],
    ["previous", "weight on the position before", (h) => h.measures.previous, true],
    ["next", "weight on the position after", (h) => h.measures.next, true],
    ["first", "weight on the first token", (h) => h.measures.first, true],
    ["special tokens", "weight on marks such as [SOS] and [EOS]", (h) => h.measures.special, true],
    ["punctuation", "weight on punctuation", (h) => h.measures.punctuation, true],
    ["same word", "weight on other positions that have the query's token", (h) => h.measures.same_word],
    ["distance, tokens", "mean distance of the weight from the query", (h) => h.measures.distance, true],
    ["within 3", "weight at most three positions away", (h) => h.measures.band_3],
    ["one column", "mean weight of the key that gets most in its map", (h) => h.measures.column],
    ["effective rank", "of the maps: 1 where all rows are alike", (h) => h.measures.effective_rank],
    ["rarest word", "share of the rows whose largest weight is on the rarest word, where one word is rarer than all others", (h) => h.measures.rarest_word_rows],
    ["alignment", "share of the words whose largest weight is on the word that they translate",
      (h) => h.word_alignment && h.word_alignment.accuracy, true],
    ["induction", "weight on what followed the same token before, in repeated sequences",
      (h) => h.repeated_sequences && h.repeated_sequences.induction, true],
  ];
  // The measures of heads.json in words; band_3 and its like are made below.
  static measures = {
    entropy: "entropy, nats", uniform_entropy: "entropy of equal weights, nats",
    information: "difference between the rows, nats", confidence: "largest weight of a row",
    distance: "mean distance, tokens", offset: "mean offset, tokens", self: "weight on itself",
    previous: "weight on the position before", next: "weight on the position after", first: "weight on the first token",
    special: "weight on special tokens", end_from_end: "weight from the end of the sentence on itself",
    end_from_rest: "weight from the rest on the end", punctuation: "weight on punctuation",
    same_word: "weight on the same word elsewhere", column: "weight of the key that gets most",
    effective_rank: "effective rank", favourite_offset: "most frequent offset of the largest weight",
    favourite_offset_rows: "share of rows with that offset", rarest_word_rows: "rows that look most at the rarest word",
    two_rarest_words_rows: "rows that look most at one of the two rarest", row_sum: "sum of a row",
    uniform: "entropy, as a share of that of equal weights", rarest_word: "share of rows that look most at the rarest word",
    word_alignment: "agreement with the word alignment",
  };
  static inWords(measure) {
    const band = /^band_(\d+)$/.exec(measure);
    return band ? `weight at most ${band[1]} positions away` : heed.HeadReport.measures[measure] || measure.replaceAll("_", " ");
  }
  // What a square of a long map is; its labels are "0-1", "2-3" and so on.
  static tiles({rows, columns}) {
    const side = (labels) => {
      const ends = labels.map((label) => /^(\d+)[-\u2013](\d+)$/.exec(label)).filter(Boolean);
      return ends.length && ends.length >= labels.length - 1 ? ends[0][2] - ends[0][1] + 1 : 1;
    };
    const [down, across] = [side(rows), side(columns)];
    return down * across > 1 ? ` (each square is ${down} x ${across} tokens)` : "";
  }
  static examplesBy(measure) {
    if (measure === "information") return "Examples where its rows differ most";
    return `Examples with the highest ${heed.HeadReport.inWords(measure).replace(", nats", "")}`;
  }
  constructor(root) {
    Object.assign(this, JSON.parse(root.querySelector("script").textContent));
    this.heads.forEach((head, i) => (head.maps = this.maps[i]));
    const known = (read) => this.heads.some((head) => read(head) !== undefined && read(head) !== null);
    this.known = heed.HeadReport.columns.filter(([, , read]) => known(read));
    [this.down, this.kind] = [true, "all"];
    [this.body, this.headingRow] = [heed.make("tbody"), heed.make("tr")];
    this.explained = heed.make("dl", {class: "explained"});
    const kinds = ["all", ...new Set(this.heads.map((head) => head.kind))];
    this.kindButtons = kinds.map((kind) => heed.make("button", {type: "button", "aria-pressed": String(kind === "all"),
      onclick: () => this.choose(kind)}, kind));
    this.detail = heed.make("div", {class: "head-detail", "aria-live": "polite"});
    this.widthButtons = [false, true].map((all) => heed.make("button", {type: "button", "aria-pressed": String(!all),
      onclick: () => this.showColumns(all)}, all ? "all measures" : "main measures"));
    root.append(
      heed.make("p", {class: "note"}, `Means over ${this.examples} example${this.examples === 1 ? "" : "s"}; weights and shares are from 0 to 1. A click on ` +
        "a heading sorts, a click on a line shows that head below."),
      heed.make("div", {class: "bar"},
        heed.make("div", {class: "choice", role: "group", "aria-label": "Kind of attention"}, ...this.kindButtons),
        heed.make("div", {class: "choice", role: "group", "aria-label": "Columns"}, ...this.widthButtons)),
      heed.make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Measures of heads"},
        heed.make("table", {class: "heads"}, heed.make("thead", {}, this.headingRow), this.body)),
      heed.make("details", {class: "folded", open: ""}, heed.make("summary", {}, "What the columns mean"), this.explained),
      heed.make("h2", {}, "One head"), this.detail,
      heed.make("h2", {}, "Which heads look alike"),
      heed.make("p", {class: "note"}, "Mean Jensen-Shannon divergence of the rows of two heads, in nats; similar heads are " +
        "side by side, by average linkage. Equal maps: 0; maps that share no key: log 2 = 0.693."),
      heed.make("div", {class: "squares"}, ...this.jensen_shannon.map((group) => this.square(group))));
    this.showColumns(false);
    this.select(this.heads[0]);
    heed.scheme.addEventListener("change", () => this.select(this.chosen));
  }
  showColumns(all) {
    this.shown = this.known.filter(([, , , main]) => all || main);
    this.sort = -1;
    this.widthButtons.forEach((button, i) => button.setAttribute("aria-pressed", String(all === (i === 1))));
    this.headings = this.shown.map(([name, help], i) => heed.make("th", {scope: "col", "aria-sort": "none"},
      heed.make("button", {type: "button", title: help, onclick: () => this.order(i)}, name)));
    this.headingRow.replaceChildren(...this.headings);
    this.explained.replaceChildren(...this.shown.flatMap(([name, help]) =>
      [heed.make("dt", {}, name), heed.make("dd", {}, help)]));
    this.fill();
  }
  choose(kind) {
    this.kind = kind;
    this.kindButtons.forEach((button) => button.setAttribute("aria-pressed", String(button.textContent === kind)));
    this.fill();
  }
  order(i) {
    this.down = this.sort === i ? !this.down : i > 1;
    this.sort = i;
    this.headings.forEach((heading, j) =>
      heading.setAttribute("aria-sort", j !== i ? "none" : this.down ? "descending" : "ascending"));
    this.fill();
  }
  fill() {
    const rows = this.heads.filter((head) => this.kind === "all" || head.kind === this.kind);
    if (this.sort >= 0) {
      const read = this.shown[this.sort][2], blank = (value) => value === undefined || value === null || value === "";
      rows.sort((a, b) => {
        const [x, y] = [read(a), read(b)];
        if (blank(x) || blank(y)) return blank(x) - blank(y);
        const least = typeof x === "string" ? x.localeCompare(y, "en", {numeric: true}) : x - y;
        return this.down ? -least : least;
      });
    }
    this.rows = new Map(rows.map((head) => [head, heed.make("tr", {tabindex: 0, "aria-selected": String(head === this.chosen),
      onclick: () => this.select(head), onkeydown: (event) => this.key(event, head)},
      ...this.shown.map(([, , read]) => heed.make("td", {}, this.cell(read(head)))))]));
    this.body.replaceChildren(...this.rows.values());
  }
  cell(value) {
    return value === undefined || value === null ? "–" : typeof value === "string" ? value || "–" : heed.short(value, 2);
  }
  key(event, head) {
    const list = [...this.rows.keys()], at = list.indexOf(head);
    const to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: list.length - 1, Enter: at}[event.key];
    if (to === undefined || !list[to]) return;
    event.preventDefault();
    this.select(list[to]);
    this.rows.get(list[to]).focus();
  }
  select(head) {
    this.chosen = head;
    for (const [other, row] of this.rows) row.setAttribute("aria-selected", String(other === head));
    const terms = (list) => heed.make("dl", {}, ...list.flatMap(([name, value]) =>
      [heed.make("dt", {}, name), heed.make("dd", {}, this.cell(value))]));
    const words = head.roles.length ? head.roles.map((role) => heed.make("p", {},
      heed.make("strong", {}, role.name), `: ${role.evidence}`)) : [heed.make("p", {class: "note"}, "No known role: this head meets none of the criteria.")];
    const lists = [terms(Object.entries(head.measures).map(([name, value]) => [heed.HeadReport.inWords(name), value]))];
    const more = (title, list) => list.length && lists.push(heed.make("h4", {}, title), terms(list));
    more("weight on each special token", Object.entries(head.special));
    more("token that gets the most weight, and in what share of the maps", head.column_tokens.map((one) => [heed.named(one.token), one.maps]));
    if (head.word_alignment)
      more("agreement with the word alignment (in brackets: of the best single offset)", Object.entries(head.word_alignment.kinds).map(([kind, one]) =>
        [kind, `${heed.short(one.accuracy, 2)} (${heed.short(one.baseline, 2)})`]));
    const figures = head.examples.map((one, i) => {
      const svg = this.matrix(head.maps[i], `${head.name}, example ${one.number}`);
      const tiles = heed.HeadReport.tiles(head.maps[i]);
      return heed.make("figure", {}, heed.make("figcaption", {}, `example ${one.number}: ${one.caption}${tiles}`, heed.make("span",
        {class: "right"}, ...heed.saveButtons(() => svg, () => `${head.name}-${one.number}`))), svg);
    });
    this.detail.replaceChildren(
      heed.make("div", {}, heed.make("h3", {}, head.name), heed.make("p", {class: "note"}, head.module), ...words, ...lists),
      heed.make("div", {}, heed.make("h3", {}, heed.HeadReport.examplesBy(head.chosen_by)),
        heed.make("div", {class: "head-examples"}, ...figures)));
  }
  matrix({rows, columns, weights}, label) {
    const side = heed.clamp(Math.floor(460 / Math.max(rows.length, columns.length)), 7, 20), labelled = side >= 10;
    const left = labelled ? heed.measure(rows.map(heed.cut), "11px system-ui") + 10 : 4;
    const above = labelled ? heed.measure(columns.map(heed.cut), "11px system-ui") + 10 : 4;
    const [W, H] = [left + side * columns.length + 4, above + side * rows.length + 4];
    const svg = heed.draw("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label, style: `width:${W}px`,
      "font-size": 11});
    const top = Math.max(...weights.map((weight) => Math.abs(weight)), 1);
    rows.forEach((word, i) => {
      if (labelled) svg.append(heed.word(heed.cut(word), {x: left - 5, y: above + side * (i + 0.5) + 4, "text-anchor": "end"}));
      columns.forEach((other, j) => {
        const weight = weights[i * columns.length + j];
        svg.append(heed.draw("rect", {x: left + side * j, y: above + side * i, width: side, height: side,
          "shape-rendering": "crispEdges", fill: heed.shade(weight === null ? NaN : weight / top), onpointerleave: () => heed.tip.hide(),
          onpointermove: (event) => heed.tip.show(event.clientX, event.clientY, `${word} to ${other}`,
            weight === null ? "not finite" : (weight / 1000).toFixed(3))}));
      });
    });
    if (labelled) columns.forEach((word, j) => {
      const [x, y] = [left + side * (j + 0.5) + 4, above - 5];
      svg.append(heed.word(heed.cut(word), {x, y, transform: `rotate(-90 ${x} ${y})`}));
    });
    return svg;
  }
  square(group) {
    const names = group.order.map((i) => group.heads[i]), most = Math.max(...group.nats.flat(), 1e-9);
    const weights = group.order.flatMap((i) => group.order.map((j) => Math.round(group.nats[i][j] * 1000)));
    const svg = this.matrix({rows: names, columns: names, weights}, `distances of heads, ${group.kind}`);
    return heed.make("figure", {}, heed.make("figcaption", {}, `${group.kind}, up to ${heed.short(most, 2)} nats`,
      heed.make("span", {class: "right"}, ...heed.saveButtons(() => svg, () => `distances-${group.kind.replaceAll(" ", "-")}`))), svg);
  }
};
for (const root of document.querySelectorAll("section.head-report")) new heed.HeadReport(root);
