// The window of single weights in a long map, and its frame on the map of tiles; needs page_views.js.

heed.Window = class {
  // `viewer` is a heed.Maps; the window remembers its middle and its size while heads change.
  constructor(viewer) {
    this.viewer = viewer;
    this.size = 40;
    this.middle = null;
    this.root = heed.make("div", {class: "zoom"});
  }
  get range() {
    const {map} = this.viewer.state, {size} = this;
    this.middle ||= [0, 0];
    const first = heed.clamp(Math.round(this.middle[0] - size / 2), 0, Math.max(0, map.queries - size));
    const from = heed.clamp(Math.round(this.middle[1] - size / 2), 0, Math.max(0, map.keys - size));
    return {first, from, rows: Math.min(size, map.queries), columns: Math.min(size, map.keys)};
  }
  move(query, key) {
    this.middle = [query, key];
    this.render();
  }
  // Moves by shares of the window's own size.
  pan(down, right) {
    const {first, from} = this.range;
    this.move(first + this.size * (0.5 + down), from + this.size * (0.5 + right));
  }
  resize(size) {
    const {first, from, rows, columns} = this.range;
    this.middle = [first + rows / 2, from + columns / 2];
    this.size = heed.clamp(size, 12, 320);
    this.render();
  }
  // Draws the frame on the matrix of tiles, and lets the pointer drag it.
  attach(svg) {
    this.tiles = svg;
    this.frame = heed.draw("rect", {class: "window"});
    svg.append(this.frame);
    const {map} = this.viewer.state, {left, above, side} = svg.frame;
    const go = (event) => {
      const {x, y} = heed.place(svg, event);
      this.move((y - above) / side * map.tile[0], (x - left) / side * map.tile[1]);
    };
    svg.addEventListener("pointerdown", (event) => {
      const {x, y} = heed.place(svg, event);
      if (x < left || y < above) return;
      this.isDragging = true;
      go(event);
    });
    svg.addEventListener("pointermove", (event) => this.isDragging && event.buttons && go(event));
    svg.addEventListener("pointerup", () => this.isDragging = false);
  }
  render() {
    const {viewer} = this, {map, shown} = viewer.state, layered = viewer.layered(), head = viewer.headOf();
    const {first, from, rows: count, columns: across} = this.range;
    if (this.frame) {
      const {left, above, side} = this.tiles.frame;
      heed.fill(this.frame, {x: left + from / map.tile[1] * side, y: above + first / map.tile[0] * side,
        width: Math.max(across / map.tile[1] * side, 3), height: Math.max(count / map.tile[0] * side, 3)}, []);
    }
    const rows = map.queryTokens.slice(first, first + count), columns = map.keyTokens.slice(from, from + across);
    const value = (i, j) => layered.single(head, first + i, from + j);
    const drawn = (i, j) => value(i, j) ?? 0;
    let top = 0;
    rows.forEach((_, i) => columns.forEach((_, j) => top = Math.max(top, Math.abs(drawn(i, j)) || 0)));
    const button = (words, help, click) => heed.make("button", {type: "button", class: "quiet", "aria-label": help,
      title: help, onclick: click}, words);
    const place = (label, at, most, set) => heed.make("label", {class: "place"}, `${label} `,
      heed.make("input", {type: "number", min: 0, max: most - 1, value: at,
        onchange: (event) => set(heed.clamp(+event.target.value || 0, 0, most - 1))}));
    const isScaled = viewer.scale() !== "one" || shown !== "weights";
    const svg = heed.matrix({rows, columns, value, shown: drawn, top: isScaled ? top || 1 : 1,
      isSigned: shown === "attribution", width: Math.max(280, this.root.clientWidth - 190),
      read: (i, j) => viewer.read(first + i, from + j),
      pickRow: (i) => viewer.pick(first + i), marked: viewer.query === null ? -1 : viewer.query - first,
      label: `Single weights of queries ${first} to ${first + rows.length - 1} and keys ${from} to ${from + columns.length - 1}`});
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      this.resize(this.size * (event.deltaY > 0 ? 1.25 : 0.8));
    }, {passive: false});
    this.root.replaceChildren(heed.make("div", {class: "bar"},
      heed.make("h4", {}, `Single weights: queries ${first}–${first + rows.length - 1}, keys ${from}–${from + columns.length - 1}`),
      place("query", first, map.queries, (at) => this.move(at + this.size / 2, from + this.size / 2)),
      place("key", from, map.keys, (at) => this.move(first + this.size / 2, at + this.size / 2)),
      heed.make("div", {class: "choice right"}, button("←", "earlier keys", () => this.pan(0, -0.5)),
        button("→", "later keys", () => this.pan(0, 0.5)), button("↑", "earlier queries", () => this.pan(-0.5, 0)),
        button("↓", "later queries", () => this.pan(0.5, 0)), button("−", "a larger window", () => this.resize(this.size * 2)),
        button("+", "a smaller window", () => this.resize(this.size / 2)),
        ...heed.saveButtons(() => svg, () => `${viewer.fileName()}-${first}-${from}`))),
      heed.make("div", {class: "picture scroll"}, svg));
  }
};
