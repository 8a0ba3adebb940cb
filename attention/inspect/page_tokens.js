// One query's weights in the text, over a picture, and behind them its query and keys; needs page_views.js.

// Places of tokens that are set as running text, a line break after a line's end: [{x, y, width}], and the height.
heed.flow = (tokens, width, font, indent = 0) => {
  const face = `${font}px system-ui, sans-serif`, step = font + 14, places = [];
  let x = indent, y = 0;
  for (const token of tokens) {
    const wide = Math.max(heed.measure([token], face) + 8, 10);
    if (x + wide > width && x > 0) [x, y] = [0, y + step];
    places.push({x, y, width: wide});
    x += wide + 2;
    if (/\u240A$/.test(token)) [x, y] = [0, y + step];
  }
  return {places, height: y + step, line: font + 10};
};

// The text with the weights of one query: {queries, keys, isSame, value(i, j), top, chosen, width, label, read(i, j),
// pick(i)}. Where queries and keys are the same tokens there is one text; otherwise the keys' text is below.
heed.text = ({queries, keys, isSame, value, top, chosen, width, label, read, pick}) => {
  const font = keys.length < 80 ? 17 : 14, title = 22;
  const above = isSame ? null : heed.flow(queries, width, font), below = heed.flow(keys, width, font);
  const keysAt = (above ? title + above.height + 10 : 0) + title;
  const svg = heed.draw("svg", {class: "text", viewBox: `0 0 ${width} ${keysAt + below.height}`, tabindex: 0, role: "img",
    "aria-label": label, style: `width:${width}px`});
  const heading = (y, words) => svg.append(heed.draw("text", {class: "axis", x: 0, y: y + 12}, words));
  if (above) heading(0, "queries: point at a token");
  heading(keysAt - title, above ? "keys: what it attends to" : "point at a token: shaded is what it attends to");
  const set = (flow, from, tokens) => flow.places.map((place, at) => {
    const box = heed.draw("rect", {class: "token", x: place.x, y: from + place.y, width: place.width, height: flow.line, rx: 3});
    const word = heed.word(tokens[at], {x: place.x + 4, y: from + place.y + font + 2, "font-size": font});
    svg.append(box, word);
    return {box, word, ...place, y: from + place.y, height: flow.line};
  });
  const keyTokens = set(below, keysAt, keys), queryTokens = above ? set(above, title, queries) : keyTokens;
  const ring = heed.draw("rect", {class: "ring", rx: 3, visibility: "hidden"});
  svg.append(ring);
  let here = null;
  const go = (i) => {
    here = i;
    keyTokens.forEach((token, j) => {
      const share = i === null ? 0 : (value(i, j) || 0) / top, isShaded = Math.abs(share) > 0.004;
      token.box.style.fill = isShaded ? heed.shade(share) : "none";
      token.word.style.fill = isShaded ? heed.inkOn(share) : "";
    });
    ring.setAttribute("visibility", i === null ? "hidden" : "visible");
    if (i === null) return;
    const {x, y, width: wide, height} = queryTokens[i];
    heed.fill(ring, {x: x + 1, y: y + 1, width: wide - 2, height: height - 2}, []);
  };
  const find = (tokens, {x, y}) => tokens.findIndex((token) =>
    x >= token.x && x < token.x + token.width + 2 && y >= token.y && y < token.y + token.height);
  const rest = () => (go(chosen), heed.tip.hide());
  rest();
  svg.addEventListener("pointermove", (event) => {
    const at = heed.place(svg, event), i = find(queryTokens, at), j = find(keyTokens, at);
    if (event.shiftKey || (!isSame && j >= 0)) {
      if (j >= 0 && here !== null) heed.tip.show(event.clientX, event.clientY, `${queries[here]} → ${keys[j]}`, ...read(here, j));
    } else if (i >= 0 && i !== here) {
      go(i);
    }
    if (i < 0 && j < 0) heed.tip.hide();
  });
  svg.addEventListener("pointerleave", rest);
  svg.addEventListener("blur", rest);
  svg.addEventListener("click", (event) => {
    const i = find(queryTokens, heed.place(svg, event));
    if (i >= 0) pick?.(i);
  });
  svg.addEventListener("keydown", (event) => {
    const step = {ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1}[event.key];
    if (event.key === "Escape") return rest();
    if (event.key === "Enter" && here !== null) return pick?.(here);
    if (!step) return;
    event.preventDefault();
    go(here === null ? 0 : heed.clamp(here + step, 0, queries.length - 1));
    let best = 0;
    keys.forEach((_, j) => Math.abs(value(here, j) || 0) > Math.abs(value(here, best) || 0) && (best = j));
    const at = heed.onScreen(svg, queryTokens[here].x, queryTokens[here].y + 24);
    heed.tip.show(at.x, at.y, `${queries[here]}: most on ${keys[best]}`, ...read(here, best));
  });
  svg.visit = go;
  return svg;
};

// The pixels of a token picture, {height, width, channels, pixels}, as a canvas.
heed.photograph = (picture) => {
  if (picture.canvas) return picture.canvas;
  const canvas = heed.make("canvas", {width: picture.width, height: picture.height});
  const context = canvas.getContext("2d"), image = context.createImageData(picture.width, picture.height);
  const bytes = heed.bytes(picture.pixels), {channels} = picture;
  for (let at = 0; at < picture.width * picture.height; ++at)
    for (let c = 0; c < 4; ++c) image.data[4 * at + c] = c === 3 ? 255 : bytes[at * channels + (channels === 3 ? c : 0)];
  context.putImageData(image, 0, 0);
  picture.href = canvas.toDataURL();
  return picture.canvas = canvas;
};

// One picture with a weight laid over each of its patches: {picture, weight(token), top, side, x, y, isMarked(token)}.
heed.overlay = ({picture, weight, top, side, x, y, marked = -1}) => {
  heed.photograph(picture);
  const {width, height, patch, first} = picture, scale = side / Math.max(width, height);
  const columns = width / patch, rows = height / patch, size = patch * scale;
  const group = heed.draw("g", {}, heed.draw("image", {x, y, width: width * scale, height: height * scale,
    preserveAspectRatio: "none", style: "image-rendering:pixelated", href: picture.href}));
  const canvas = heed.make("canvas", {width: columns, height: rows}), context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows), count = picture.places?.length ?? rows * columns;
  for (let token = 0; token < count; ++token) {
    const place = picture.places ? picture.places[token] : token, share = (weight(first + token) || 0) / top;
    const opacity = Math.round(235 * Math.sqrt(Math.min(1, Math.abs(share))));
    image.data.set([...(share < 0 ? [240, 140, 40] : [255, 64, 96]), opacity], 4 * place);
  }
  context.putImageData(image, 0, 0);
  group.append(heed.draw("image", {x, y, width: width * scale, height: height * scale, preserveAspectRatio: "none",
    style: "image-rendering:pixelated", href: canvas.toDataURL()}));
  group.append(heed.draw("rect", {class: "frame", x, y, width: width * scale, height: height * scale}));
  if (marked >= first) {
    const place = picture.places ? picture.places[marked - first] : marked - first;
    group.append(heed.draw("rect", {class: "patch", x: x + place % columns * size, y: y + Math.floor(place / columns) * size,
      width: size, height: size}));
  }
  return group;
};

// Where a picture was looked at: {picture, heads: [{name, weight(query or null, key), top}], shownHead, chosen, width, label,
// read(query, key), pick(query)}. Without a chosen query the weights are what each patch receives from all queries.
heed.pictures = ({picture, heads, shownHead, chosen, width, label, read, pick, pickHead}) => {
  const side = Math.min(400, Math.floor((width - 24) / 2));
  const small = heed.clamp(Math.floor((width - 12) / heads.length) - 12, 56, 132);
  const per = Math.max(1, Math.floor((width + 12) / (small + 12))), rows = Math.ceil(heads.length / per);
  const H = side + 56 + rows * (small + 26);
  const svg = heed.draw("svg", {class: "photos", viewBox: `0 0 ${width} ${H}`, tabindex: 0, role: "img", "aria-label": label,
    style: `width:${width}px`});
  const {patch, first} = picture, columns = picture.width / patch;
  const tokens = picture.places ? picture.places.length : columns * picture.height / patch;
  const size = side / Math.max(picture.width, picture.height) * patch;
  const layer = heed.draw("g");
  svg.append(layer);
  let here = null;
  const go = (query) => {
    here = query;
    const head = heads[shownHead];
    const whose = query === null ? "what each patch receives, the mean over all queries"
      : query < first ? "from the classifying token" : "from the marked patch";
    const what = `${whose}; full colour: ${heed.number(head.top(query))}`;
    layer.replaceChildren(heed.draw("text", {class: "axis", x: 0, y: 12}, what),
      heed.overlay({picture, weight: (key) => head.weight(query, key), top: head.top(query), side, x: 0, y: 22,
        marked: query ?? -1}),
      heed.overlay({picture, weight: () => 0, top: 1, side, x: side + 24, y: 22}),
      ...heads.flatMap((one, at) => {
        const x = at % per * (small + 12), y = side + 62 + Math.floor(at / per) * (small + 26);
        return [heed.draw("text", {class: at === shownHead ? "axis on" : "axis", x, y: y - 5}, one.name),
          heed.overlay({picture, weight: (key) => one.weight(query, key), top: one.top(query), side: small, x, y,
            marked: query ?? -1})];
      }));
  };
  go(chosen);
  const tokenAt = ({x, y}) => {
    const column = Math.floor(x / size), row = Math.floor((y - 22) / size);
    if (column < 0 || row < 0 || column >= columns || row >= picture.height / patch) return -1;
    const place = row * columns + column;
    return picture.places ? picture.places.indexOf(place) + (picture.places.includes(place) ? first : 0) : first + place;
  };
  svg.addEventListener("pointermove", (event) => {
    const token = tokenAt(heed.place(svg, event));
    if (token < 0) return heed.tip.hide();
    heed.tip.show(event.clientX, event.clientY, here === null ? `patch ${heed.patchName(picture, token)}` :
      `${heed.patchName(picture, here)} → ${heed.patchName(picture, token)}`, ...read(here, token));
  });
  svg.addEventListener("pointerleave", () => heed.tip.hide());
  svg.addEventListener("click", (event) => {
    const at = heed.place(svg, event), token = tokenAt(at);
    if (token >= 0) return pick(token === here ? null : token);
    const row = Math.floor((at.y - side - 62) / (small + 26)), head = row * per + Math.floor(at.x / (small + 12));
    if (row >= 0 && head < heads.length) pickHead(head);
  });
  svg.addEventListener("keydown", (event) => {
    const step = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns}[event.key];
    if (event.key === "Escape") return pick(null);
    if (event.key === "Enter") return pick(here);
    if (!step) return;
    event.preventDefault();
    const to = here === null ? first : here + (picture.places ? Math.sign(step) : step);
    if (to >= 0 && to < first + tokens) go(to);
    const at = heed.onScreen(svg, side, 30);
    heed.tip.show(at.x, at.y, `patch ${heed.patchName(picture, here)}`);
  });
  svg.visit = go;
  return svg;
};
heed.patchName = (picture, token) => {
  if (token === null) return "all";
  if (token < picture.first) return "classifying token";
  const place = picture.places ? picture.places[token - picture.first] : token - picture.first,
    columns = picture.width / picture.patch;
  return `${Math.floor(place / columns)},${place % columns}`;
};

// The query and the keys behind a row of weights: {query, keys, vector(d), keyVector(j, d), size, scale, weight(j), width,
// label, isSoftmax}. A line a key: its vector, its products with the query's, their sum as a score, the weight.
heed.neurons = ({query, keys, vector, keyVector, size, scale, weight, width, label, isSoftmax, step: go}) => {
  const most = 48, order = keys.map((_, j) => j);
  if (keys.length > most) {
    order.sort((a, b) => Math.abs(weight(b) || 0) - Math.abs(weight(a) || 0)).length = most;
    order.sort((a, b) => a - b);
  }
  const q = Array.from({length: size}, (_, d) => vector(d));
  const rows = order.map((j) => {
    const k = Array.from({length: size}, (_, d) => keyVector(j, d)), products = k.map((one, d) => one * q[d]);
    return {j, k, products, score: scale * products.reduce((sum, one) => sum + one, 0), weight: weight(j)};
  });
  const largest = (lists) => Math.max(1e-12, ...lists.map((list) => Math.max(...list.map(Math.abs))));
  const tops = {q: largest([q]), k: largest(rows.map((row) => row.k)), products: largest(rows.map((row) => row.products)),
    score: Math.max(1e-12, ...rows.map((row) => Math.abs(row.score)))};
  const font = 12, words = rows.map((row) => heed.cut(keys[row.j]));
  const left = Math.max(heed.measure([...words, heed.cut(query)], `bold ${font}px system-ui, sans-serif`) + 12, 56);
  const bar = 96, strip = Math.max(120, (width - left - 2 * bar - 60) / 2), step = 20, above = 74;
  const svg = heed.draw("svg", {class: "neurons", viewBox: `0 0 ${width} ${above + rows.length * step + 8}`, tabindex: 0,
    role: "img", "aria-label": label, style: `width:${width}px`});
  const [atK, atP, atS] = [left, left + strip + 16, left + 2 * strip + 32], atW = atS + bar + 12;
  const put = (x, y, words, anchor, extra = {}) => svg.append(heed.draw("text", {x, y, "text-anchor": anchor,
    class: "axis", ...extra}, words));
  put(atK, 12, "query q", "start");
  const titles = [[atK, "keys k"], [atP, "q × k, element by element"], [atS, isSoftmax ? "score" : "sum of products"],
    [atW, "weight"]];
  for (const [x, words] of titles)
    put(x, above - 6, words, "start");
  put(left - 8, 31, heed.cut(query), "end", {class: "pin", "font-size": font});
  const cells = (values, top, x, y) => heed.draw("image", {x, y, width: strip, height: step - 5, preserveAspectRatio: "none",
    style: "image-rendering:pixelated", href: heed.pixels(1, size, (_, d) => values[d], top).toDataURL()});
  svg.append(cells(q, tops.q, atK, 20), heed.draw("rect", {class: "frame", x: atK, y: 20, width: strip, height: step - 5}));
  rows.forEach((row, at) => {
    const y = above + at * step;
    put(left - 8, y + 12, words[at], "end", {class: "", "font-size": font});
    svg.append(cells(row.k, tops.k, atK, y), cells(row.products, tops.products, atP, y));
    const half = bar / 2, length = half * Math.abs(row.score) / tops.score;
    svg.append(heed.draw("rect", {x: row.score < 0 ? atS + half - length : atS + half, y: y + 2, width: length, height: step - 9,
      fill: heed.shade(row.score < 0 ? -0.6 : 0.6)}));
    put(row.score < 0 ? atS + half + 4 : atS + half - 4, y + 12, row.score.toFixed(2), row.score < 0 ? "start" : "end");
    const share = heed.clamp(Math.abs(row.weight) || 0, 0, 1);
    svg.append(heed.draw("rect", {x: atW, y: y + 2, width: (bar - 42) * share, height: step - 9, fill: heed.shade(0.75)}));
    put(atW + (bar - 42) * share + 5, y + 12, heed.number(row.weight), "start");
  });
  const partAt = (event) => {
    const {x, y} = heed.place(svg, event), at = Math.floor((y - above) / step);
    const d = Math.floor((x < atP ? x - atK : x - atP) / strip * size);
    return at >= 0 && at < rows.length && d >= 0 && d < size && x < atS ? [rows[at], d] : null;
  };
  svg.addEventListener("pointermove", (event) => {
    const part = partAt(event);
    if (!part) return heed.tip.hide();
    const [row, d] = part;
    heed.tip.show(event.clientX, event.clientY, `${query} → ${keys[row.j]}, element ${d}`,
      `q ${q[d].toFixed(3)} × k ${row.k[d].toFixed(3)} = ${row.products[d].toFixed(3)}`);
  });
  svg.addEventListener("pointerleave", () => heed.tip.hide());
  svg.addEventListener("keydown", (event) => {
    const by = {ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1}[event.key];
    if (!by) return;
    event.preventDefault();
    go(by);
  });
  svg.rowsShown = rows;
  return svg;
};
