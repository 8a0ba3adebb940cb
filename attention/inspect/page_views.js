// One head as a matrix, several heads as lines between tokens; needs page_tools.js.

// A matrix: {rows, columns, value(i, j), top, width, label}, with `top` the weight of the darkest shade. Optional:
// shown(i, j), what is drawn where it is not the value; read(i, j), the lines of the tooltip; pick(i, j), called by a
// click on a cell, pickRow(i) by one on a row's token; marked, a row that stays marked; isSigned, for numbers below zero.
heed.matrix = ({rows, columns, value, top, width, label, pick, pickRow, marked, read, isSigned, shown = value,
  height = 620}) => {
  const cells = rows.length * columns.length;
  const room = heed.clamp(Math.min(width / columns.length, height / rows.length), 0.25, 34);
  const side = room >= 6 ? Math.floor(room) : room;
  const labelled = side >= 8, font = heed.clamp(side * 0.8, 9, 13), face = `${font}px system-ui, sans-serif`;
  const upright = side < 15;
  const [rowWords, columnWords] = [rows.map(heed.cut), columns.map(heed.cut)];
  const tallest = labelled ? heed.measure(columnWords, `bold ${face}`) : 0;
  const left = (labelled ? heed.measure(rowWords, `bold ${face}`) : 0) + 28;
  const above = (upright ? tallest : tallest * 0.71) + 26;
  const [mapWidth, mapHeight] = [side * columns.length, side * rows.length];
  const right = Math.max(labelled && !upright ? tallest * 0.71 - side / 2 : 0, 62) + 6;
  const legendHeight = Math.min(Math.max(mapHeight, 48), 132);
  const [W, H] = [left + mapWidth + right, above + Math.max(mapHeight, legendHeight) + 8];
  const svg = heed.draw("svg", {class: "matrix", viewBox: `0 0 ${W} ${H}`, tabindex: 0, role: "img", "aria-label": label,
    style: `width:${W}px`});
  const axis = (x, y, words, turn) => svg.append(heed.draw("text", {class: "axis", x, y, "text-anchor": "middle",
    transform: turn ? `rotate(-90 ${x} ${y})` : null}, words));
  axis(left + mapWidth / 2, 11, "keys");
  axis(11, above + mapHeight / 2, "queries", true);

  const body = heed.draw("g", {"shape-rendering": "crispEdges"});
  if (cells <= 6400) {
    for (let i = 0; i < rows.length; ++i)
      for (let j = 0; j < columns.length; ++j)
        body.append(heed.draw("rect", {x: left + side * j, y: above + side * i, width: side, height: side,
          fill: heed.shade(shown(i, j) / top)}));
  } else {
    body.append(heed.draw("image", {x: left, y: above, width: mapWidth, height: mapHeight, preserveAspectRatio: "none",
      style: "image-rendering:pixelated", href: heed.pixels(rows.length, columns.length, shown, top).toDataURL()}));
  }
  svg.append(body, heed.draw("rect", {class: "frame", x: left, y: above, width: mapWidth, height: mapHeight}));

  const rowLabels = [], columnLabels = [];
  if (labelled) {
    rowWords.forEach((word, i) => rowLabels.push(heed.word(word, {x: left - 7, y: above + side * (i + 0.5) + font * 0.36,
      "text-anchor": "end", "font-size": font})));
    columnWords.forEach((word, j) => {
      const [x, y] = [left + side * (j + 0.5) + (upright ? font * 0.36 : 2), above - 6];
      columnLabels.push(heed.word(word, {x, y, "font-size": font,
        transform: `rotate(${upright ? -90 : -45} ${x} ${y})`}));
    });
    svg.append(...rowLabels, ...columnLabels);
  }
  const legend = heed.draw("g", {"shape-rendering": "crispEdges"});
  for (let i = 0; i < 44; ++i)
    legend.append(heed.draw("rect", {x: left + mapWidth + 16, y: above + legendHeight * i / 44, width: 9,
      height: legendHeight / 44 + 0.4, fill: heed.shade(1 - (i + 0.5) / 44)}));
  svg.append(legend, ...[0, 0.5, 1].map((part) => heed.draw("text", {class: "axis", x: left + mapWidth + 29,
    y: above + legendHeight * (1 - part) + (part === 1 ? 9 : part === 0 ? 0 : 4)}, String(+(top * part).toFixed(3)))));

  const cursor = heed.draw("rect", {class: "cursor", width: side, height: side, visibility: "hidden"});
  const rowBand = heed.draw("rect", {class: "band", x: left, width: mapWidth, height: side, visibility: "hidden"});
  const columnBand = heed.draw("rect", {class: "band", y: above, width: side, height: mapHeight, visibility: "hidden"});
  svg.append(rowBand, columnBand, cursor);
  if (marked >= 0 && marked < rows.length) {
    svg.append(heed.draw("rect", {class: "pinned", x: left, y: above + side * marked, width: mapWidth, height: side}));
    rowLabels[marked]?.classList.add("pin");
  }
  let here = null;
  const go = (i, j, x, y) => {
    if (here) for (const word of [rowLabels[here[0]], columnLabels[here[1]]]) word?.classList.remove("on");
    const shown = i === null ? "hidden" : "visible";
    for (const mark of [cursor, rowBand, columnBand]) mark.setAttribute("visibility", shown);
    here = i === null ? null : [i, j];
    if (!here) return heed.tip.hide();
    for (const word of [rowLabels[i], columnLabels[j]]) word?.classList.add("on");
    for (const mark of [cursor, rowBand]) mark.setAttribute("y", above + side * i);
    for (const mark of [cursor, columnBand]) mark.setAttribute("x", left + side * j);
    heed.tip.show(x, y, `${rows[i]} → ${columns[j]}`, ...(read ? read(i, j) : [heed.number(value(i, j))]));
  };
  const cellAt = (event) => {
    const {x, y} = heed.place(svg, event), i = Math.floor((y - above) / side), j = Math.floor((x - left) / side);
    return i >= 0 && j >= 0 && i < rows.length && j < columns.length ? [i, j] : null;
  };
  const visit = (i, j) => {
    const at = heed.onScreen(svg, left + side * (j + 1), above + side * (i + 1));
    go(i, j, at.x - 10, at.y - 14);
  };
  svg.addEventListener("pointermove", (event) => {
    const cell = cellAt(event);
    go(...(cell || [null, null]), event.clientX, event.clientY);
  });
  svg.addEventListener("pointerleave", () => go(null));
  svg.addEventListener("blur", () => go(null));
  svg.addEventListener("click", (event) => {
    const cell = cellAt(event), {x, y} = heed.place(svg, event), i = Math.floor((y - above) / side);
    if (cell && pick) pick(...cell);
    else if (pickRow && (cell || x < left) && i >= 0 && i < rows.length) pickRow(i);
  });
  svg.addEventListener("keydown", (event) => {
    const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (event.key === "Enter" && here) (pick ? pick(...here) : pickRow?.(here[0]));
    if (event.key === "Escape") go(null);
    if (!step) return;
    event.preventDefault();
    const [i, j] = here ? [here[0] + step[0], here[1] + step[1]] : [0, 0];
    visit(heed.clamp(i, 0, rows.length - 1), heed.clamp(j, 0, columns.length - 1));
  });
  svg.visit = visit;
  svg.frame = {left, above, side};
  return svg;
};

// The cells of a matrix as a canvas with one pixel each.
heed.pixels = (rows, columns, value, top) => {
  const canvas = heed.make("canvas", {width: columns, height: rows});
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  const colour = heed.shadeBytes(), pixels = new Uint32Array(image.data.buffer);
  for (let i = 0, at = 0; i < rows; ++i) for (let j = 0; j < columns; ++j, ++at) pixels[at] = colour(value(i, j) / top);
  context.putImageData(image, 0, 0);
  return canvas;
};

// Lines from queries to keys: {rows, columns, heads: [{name, colour, value(i, j)}], width, label, top, least, pick(i),
// marked}. A token under the pointer (or the one that the arrow keys chose, or row `marked`) keeps its lines; the rest
// fade. Lines of less than `least` of the largest weight `top` are left out; those of numbers below zero are dashed.
heed.lines = ({rows, columns, heads, width, label, top: full = 1, least = 0.03, pick, marked = -1}) => {
  const most = Math.max(rows.length, columns.length), step = heed.clamp(720 / most, 5, 24);
  const font = heed.clamp(step * 0.6, 5, 13), face = `bold ${font}px system-ui, sans-serif`;
  const [rowWords, columnWords] = [rows.map(heed.cut), columns.map(heed.cut)];
  const [leftWidth, rightWidth] = [heed.measure(rowWords, face), heed.measure(columnWords, face)];
  const bars = Math.min(heads.length, 24) * 7, span = heed.clamp(width - leftWidth - rightWidth - bars - 90, 120, 340);
  const left = leftWidth + 10, right = left + span, top = 30;
  const [W, H] = [right + rightWidth + bars + 72, top + most * step + 8];
  const svg = heed.draw("svg", {class: "lines", viewBox: `0 0 ${W} ${H}`, tabindex: 0, role: "img", "aria-label": label,
    style: `width:${W}px`});
  const middle = (i) => top + step * (i + 0.5);
  svg.append(heed.draw("text", {class: "axis", x: left - 6, y: 12, "text-anchor": "end"}, "queries"),
    heed.draw("text", {class: "axis", x: right + 6, y: 12}, "keys"));

  // At most eight lines a query and head in long sentences, so that the page stays quick.
  const groups = {query: rows.map(() => heed.draw("g")), key: columns.map(() => [])};
  const bend = span * 0.42;
  for (const head of heads)
    rows.forEach((_, i) => {
      let picks = columns.map((_, j) => [head.value(i, j), j]).filter(([weight]) => Math.abs(weight) / full > least);
      if (columns.length > 40) picks = picks.sort((a, b) => Math.abs(b[0]) - Math.abs(a[0])).slice(0, 8);
      for (const [weight, j] of picks) {
        const line = heed.draw("path", {class: "link", stroke: head.colour,
          "stroke-opacity": Math.min(1, Math.abs(weight) / full).toFixed(3),
          "stroke-dasharray": weight < 0 ? "3 3" : null,
          d: `M${left} ${middle(i)}C${left + bend} ${middle(i)} ${right - bend} ${middle(j)} ${right} ${middle(j)}`});
        groups.query[i].append(line);
        groups.key[j].push(line);
      }
    });
  svg.append(...groups.query);
  const words = {
    query: rowWords.map((word, i) => heed.word(word, {x: left - 6, y: middle(i) + font * 0.36, "text-anchor": "end",
      "font-size": font})),
    key: columnWords.map((word, j) => heed.word(word, {x: right + 6, y: middle(j) + font * 0.36, "font-size": font})),
  };
  const notes = heed.draw("g");
  svg.append(...words.query, ...words.key, notes);

  let here = null;
  const go = (side, at) => {
    here = side ? [side, at] : null;
    svg.classList.toggle("focus", Boolean(side));
    for (const node of svg.querySelectorAll(".on")) node.classList.remove("on");
    notes.replaceChildren();
    if (!side) return;
    words[side][at].classList.add("on");
    const lines = side === "query" ? [...groups.query[at].children] : groups.key[at];
    for (const line of lines) line.classList.add("on");
    const other = side === "query" ? columns : rows;
    other.forEach((_, k) => {
      const weights = heads.map((head) => (side === "query" ? head.value(at, k) : head.value(k, at)));
      const mean = weights.reduce((sum, weight) => sum + weight, 0) / weights.length;
      if (Math.max(...weights.map(Math.abs)) / full >= 0.05) words[side === "query" ? "key" : "query"][k].classList.add("on");
      if (side !== "query") return;
      weights.slice(0, 24).forEach((weight, h) => notes.append(heed.draw("rect", {x: right + rightWidth + 14 + 7 * h,
        y: middle(k) - step * 0.4, width: 6, height: step * 0.8, fill: heads[h].colour,
        "fill-opacity": heed.clamp(Math.abs(weight) / full, 0, 1).toFixed(3)})));
      if (Math.abs(mean) / full >= 0.005) notes.append(heed.draw("text", {class: "axis", x: right + rightWidth + 20 + bars,
        y: middle(k) + 4}, heed.number(mean)));
    });
    if (side === "key") {
      const total = heads.reduce((sum, head) => sum + rows.reduce((all, _, i) => all + head.value(i, at), 0), 0);
      notes.append(heed.draw("text", {class: "axis", x: right + rightWidth + 14, y: middle(at) + 4},
        `mean ${heed.number(total / heads.length / rows.length)}`));
    }
  };
  svg.addEventListener("pointermove", (event) => {
    const {x, y} = heed.place(svg, event), at = Math.floor((y - top) / step);
    const side = x < left ? "query" : x > right ? "key" : null;
    if (side && at >= 0 && at < words[side].length) go(side, at);
    else if (!side || at < 0) go(null);
  });
  const rest = () => (marked >= 0 && marked < rows.length ? go("query", marked) : go(null));
  rest();
  svg.addEventListener("pointerleave", rest);
  svg.addEventListener("blur", rest);
  svg.addEventListener("click", () => here?.[0] === "query" && pick?.(here[1]));
  svg.addEventListener("keydown", (event) => {
    let [side, at] = here || ["query", -1];
    if (event.key === "ArrowDown") ++at;
    else if (event.key === "ArrowUp") --at;
    else if (event.key === "ArrowLeft") side = "query";
    else if (event.key === "ArrowRight") side = "key";
    else if (event.key === "Enter" && here?.[0] === "query") return pick?.(here[1]);
    else return event.key === "Escape" ? go(null) : undefined;
    event.preventDefault();
    go(side, heed.clamp(at, 0, words[side].length - 1));
  });
  svg.visit = go;
  return svg;
};
