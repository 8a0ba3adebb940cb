// What pages over several steps or models draw: matrices that are repainted, curves with a marker; needs page_tools.js.

// Numbers of a map as the page carries them: base64 of little-endian f32.
heed.floats = (base64) => {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; ++at) bytes[at] = text.charCodeAt(at);
  const view = new DataView(bytes.buffer);
  return Float32Array.from({length: bytes.length / 4}, (_, at) => view.getFloat32(4 * at, true));
};

// Paints one head on a canvas with one pixel a cell. `top` is the weight of the darkest shade.
heed.paint = (canvas, rows, columns, value, top) => {
  if (canvas.width !== columns || canvas.height !== rows) Object.assign(canvas, {width: columns, height: rows});
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  for (let i = 0, at = 0; i < rows; ++i)
    for (let j = 0; j < columns; ++j, at += 4)
      image.data.set([...heed.shade(value(i, j) / top).match(/\d+/g).map(Number), 255], at);
  context.putImageData(image, 0, 0);
};

// A matrix with token labels: {rows, columns, width, label, legend, point(i, j)}. paint(value, top) may be called again and
// again; point is called for the cell under the pointer or the keys, with nulls when there is none.
heed.Grid = class {
  constructor({rows, columns, width, tallest = 560, label, legend = true, point = () => {}, shares = [0, 0.5, 1]}) {
    Object.assign(this, {rows, columns, point, shares, here: null});
    const room = heed.clamp(Math.min((width - 40) / columns.length, tallest / rows.length), 1.5, 34);
    const side = this.side = room >= 6 ? Math.floor(room) : room;
    const labelled = side >= 8, font = heed.clamp(side * 0.8, 9, 13), face = `bold ${font}px system-ui, sans-serif`;
    const [rowWords, columnWords] = [rows.map(heed.cut), columns.map(heed.cut)];
    const upright = side < 15, deep = labelled ? heed.measure(columnWords, face) : 0;
    const left = this.left = (labelled ? heed.measure(rowWords, face) + 9 : 2);
    const above = this.above = (upright ? deep : deep * 0.71) + 10;
    const [w, h] = [side * columns.length, side * rows.length];
    const right = Math.max(labelled && !upright ? deep * 0.71 - side / 2 : 0, legend ? 62 : 4);
    const legendHeight = legend ? heed.clamp(h, 60, 132) : 0, [W, H] = [left + w + right, above + Math.max(h, legendHeight) + 6];
    this.svg = heed.draw("svg", {class: "matrix", viewBox: `0 0 ${W} ${H}`, tabindex: 0, role: "img", "aria-label": label,
      style: `width:${W}px`});
    this.canvas = heed.make("canvas");
    this.cells = [];
    const body = heed.draw("g", {"shape-rendering": "crispEdges"});
    if (rows.length * columns.length <= 3600) {
      rows.forEach((_, i) => columns.forEach((_, j) =>
        this.cells.push(heed.draw("rect", {x: left + side * j, y: above + side * i, width: side, height: side}))));
      body.append(...this.cells);
    } else {
      this.image = heed.draw("image", {x: left, y: above, width: w, height: h, preserveAspectRatio: "none",
        style: "image-rendering:pixelated"});
      body.append(this.image);
    }
    this.svg.append(body, heed.draw("rect", {class: "frame", x: left, y: above, width: w, height: h}));
    this.rowLabels = [];
    this.columnLabels = [];
    if (labelled) {
      this.rowLabels = rowWords.map((word, i) => heed.word(word, {x: left - 7, y: above + side * (i + 0.5) + font * 0.36,
        "text-anchor": "end", "font-size": font}));
      this.columnLabels = columnWords.map((word, j) => {
        const [x, y] = [left + side * (j + 0.5) + (upright ? font * 0.36 : 2), above - 6];
        return heed.word(word, {x, y, "font-size": font, transform: `rotate(${upright ? -90 : -45} ${x} ${y})`});
      });
      this.svg.append(...this.rowLabels, ...this.columnLabels);
    }
    this.shades = [];
    this.ticks = [];
    if (legend) {
      for (let i = 0; i < 44; ++i)
        this.shades.push(heed.draw("rect", {x: left + w + 16, y: above + legendHeight * i / 44, width: 9,
          height: legendHeight / 44 + 0.4, "shape-rendering": "crispEdges"}));
      this.ticks = shares.map((share) => heed.draw("text", {class: "axis", x: left + w + 29,
        y: above + legendHeight * (1 - (share - shares[0]) / (shares.at(-1) - shares[0])) + (share === shares.at(-1) ? 9 : share === shares[0] ? 0 : 4)}));
      this.svg.append(...this.shades, ...this.ticks);
    }
    this.cursor = heed.draw("rect", {class: "cursor", width: side, height: side, visibility: "hidden"});
    this.svg.append(this.cursor);
    this.listen();
  }
  paint(value, top) {
    Object.assign(this, {value, top});
    const [rows, columns] = [this.rows.length, this.columns.length];
    if (this.image) {
      heed.paint(this.canvas, rows, columns, value, top);
      this.image.setAttribute("href", this.canvas.toDataURL());
    }
    this.cells.forEach((cell, at) => cell.setAttribute("fill", heed.shade(value(Math.floor(at / columns), at % columns) / top)));
    const [low, high] = [this.shares[0], this.shares.at(-1)];
    this.shades.forEach((one, i) => one.setAttribute("fill", heed.shade(high - (high - low) * (i + 0.5) / this.shades.length)));
    this.ticks.forEach((one, i) => one.textContent = String(+(top * this.shares[i]).toFixed(3)));
  }
  // Marks a cell, or none; says nothing to `point`.
  mark(i, j) {
    if (this.here) for (const word of [this.rowLabels[this.here[0]], this.columnLabels[this.here[1]]]) word?.classList.remove("on");
    this.here = i === null || i === undefined ? null : [i, j];
    this.cursor.setAttribute("visibility", this.here ? "visible" : "hidden");
    if (!this.here) return;
    for (const word of [this.rowLabels[i], this.columnLabels[j]]) word?.classList.add("on");
    this.cursor.setAttribute("x", this.left + this.side * j);
    this.cursor.setAttribute("y", this.above + this.side * i);
  }
  go(i, j, x, y) {
    this.mark(i, j);
    this.point(i, j);
    if (!this.here) return heed.tip.hide();
    heed.tip.show(x, y, `${this.rows[i]} → ${this.columns[j]}`, heed.number(this.value(i, j)));
  }
  listen() {
    const {svg, side} = this;
    svg.addEventListener("pointermove", (event) => {
      const {x, y} = heed.place(svg, event), i = Math.floor((y - this.above) / side), j = Math.floor((x - this.left) / side);
      if (i >= 0 && j >= 0 && i < this.rows.length && j < this.columns.length) this.go(i, j, event.clientX, event.clientY);
      else this.go(null, null);
    });
    for (const name of ["pointerleave", "blur"]) svg.addEventListener(name, () => this.go(null, null));
    svg.addEventListener("keydown", (event) => {
      const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
      if (event.key === "Escape") this.go(null, null);
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      const [i, j] = this.here ? [this.here[0] + step[0], this.here[1] + step[1]] : [0, 0];
      const [row, column] = [heed.clamp(i, 0, this.rows.length - 1), heed.clamp(j, 0, this.columns.length - 1)];
      const at = heed.onScreen(svg, this.left + side * (column + 1), this.above + side * (row + 1));
      this.go(row, column, at.x - 10, at.y - 14);
    });
  }
};

// Ticks at round numbers between two values, about `count` of them.
heed.ticks = (low, high, count) => {
  const rough = (high - low || 1) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999) * power;
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) out.push(+(i * step).toPrecision(12));
  return out;
};

// Curves over steps with a marker: {series: [{name, colour, x, y}], x: [low, high], y: [low, high], width, height, label,
// pick(x)}. mark(x) moves the marker, chosen(index) brings one curve forward.
heed.Curves = class {
  constructor({series, x, y, width, height, label, pick}) {
    Object.assign(this, {series, x, y});
    const [left, right, top, bottom] = [44, width - 26, 8, height - 22];
    this.across = (value) => left + (value - x[0]) / (x[1] - x[0] || 1) * (right - left);
    this.down = (value) => bottom - (value - y[0]) / (y[1] - y[0] || 1) * (bottom - top);
    const svg = this.svg = heed.draw("svg", {class: "curves", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label});
    for (const tick of heed.ticks(...y, 3))
      svg.append(heed.draw("path", {stroke: "var(--line)", d: `M${left} ${this.down(tick)}H${right}`}),
        heed.draw("text", {class: "axis", x: left - 7, y: this.down(tick) + 4, "text-anchor": "end"}, String(tick)));
    for (const tick of heed.ticks(...x, Math.max(2, Math.floor(width / 130))))
      svg.append(heed.draw("text", {class: "axis", x: this.across(tick), y: height - 6, "text-anchor": "middle"}, tick.toLocaleString("en")));
    this.lines = series.map((one) => heed.draw("path", {fill: "none", stroke: one.colour, "stroke-width": 1.75,
      "stroke-linejoin": "round", d: this.path(one)}));
    this.rule = heed.draw("path", {stroke: "var(--text)", "stroke-opacity": 0.55});
    this.dots = series.map((one) => heed.draw("circle", {r: 3.5, fill: one.colour}));
    svg.append(this.rule, ...this.lines, ...this.dots);
    this.ends = [top, bottom];
    const drag = (event) => pick(x[0] + (heed.place(svg, event).x - left) / (right - left) * (x[1] - x[0]));
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      drag(event);
    });
    svg.addEventListener("pointermove", (event) => event.buttons && drag(event));
  }
  path({x, y}) {
    let out = "", pen = "M";
    x.forEach((at, i) => {
      const ok = y[i] !== null && Number.isFinite(y[i]);
      if (ok) out += `${pen}${this.across(at).toFixed(1)} ${this.down(y[i]).toFixed(1)}`;
      pen = ok ? "L" : "M";
    });
    return out;
  }
  mark(x) {
    this.rule.setAttribute("d", `M${this.across(x)} ${this.ends[0]}V${this.ends[1]}`);
    this.series.forEach((one, index) => {
      const value = heed.valueAt(one, x), dot = this.dots[index];
      dot.setAttribute("visibility", value === null ? "hidden" : "visible");
      if (value !== null) dot.setAttribute("cx", this.across(x)), dot.setAttribute("cy", this.down(value));
    });
  }
  chosen(index) {
    this.lines.forEach((line, at) => {
      line.setAttribute("stroke-width", at === index ? 3 : 1.5);
      line.setAttribute("opacity", index < 0 || at === index ? 1 : 0.55);
    });
  }
};

// A curve's value at x: on the line between its neighbours, behind its end the last one; null before it.
heed.valueAt = ({x, y}, at) => {
  if (x.length && at > x.at(-1)) return y.at(-1);
  let high = x.findIndex((one) => one >= at);
  if (high < 0 || (high === 0 && x[0] > at)) return null;
  if (x[high] === at || high === 0) return y[high];
  const low = high - 1, [a, b] = [y[low], y[high]];
  if (a === null || b === null) return null;
  return a + (b - a) * (at - x[low]) / (x[high] - x[low]);
};
