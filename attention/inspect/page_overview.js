// All layers and heads as thumbnails, and the tables: what each head does, and the weights as numbers.

// The thumbnails of one kind of map, a row a layer. `viewer` is a heed.Maps; `size` the side of a thumbnail in pixels.
heed.thumbnails = (viewer, group, size) => {
  const {map: shownMap, head: shownHead, shown} = viewer.state;
  const heads = Math.max(...group.maps.map((map) => map.heads)), hasRollout = group.maps.some((map) => map.has("rollout"));
  const columns = [...Array(heads).keys(), ...(heads > 1 ? ["mean"] : []), ...(hasRollout ? ["rollout"] : [])];
  const grid = heed.make("div", {class: "thumbs", role: "group",
    "aria-label": `${heed.kindNames[group.kind] || group.kind}: all layers and heads`});
  grid.style.gridTemplateColumns = `48px repeat(${columns.length}, ${size}px)`;
  grid.append(heed.make("span", {class: "mark side"}, "head"), ...columns.map((name) =>
    heed.make("span", {class: "mark", "aria-hidden": "true"}, String(name))));
  for (const map of group.maps) {
    grid.append(heed.make("span", {class: "mark side", title: map.name}, `layer ${map.layer}`));
    for (const column of columns) {
      const isRollout = column === "rollout", head = isRollout ? 0 : column === "mean" ? map.heads : column;
      if ((isRollout && !map.has("rollout")) || (head >= map.heads && column !== "mean" && !isRollout)) {
        grid.append(heed.make("span"));
        continue;
      }
      const source = isRollout ? "rollout" : shown === "attribution" && map.has(shown) ? shown : "weights";
      const here = map === shownMap && (isRollout ? shown === "rollout" : shown !== "rollout" && head === shownHead);
      const name = isRollout ? "rollout of the layers so far" : head < map.heads
        ? `head ${head}, entropy ${heed.short(map.statistics[head].entropy, 2)}` : "mean of the heads";
      const canvas = heed.thumbnail(map, source, head), ratio = map.queries / map.keys;
      canvas.style.width = `${ratio > 1 ? size / ratio : size}px`;
      canvas.style.height = `${ratio > 1 ? size : size * ratio}px`;
      grid.append(heed.make("button", {type: "button", class: "thumb", "aria-pressed": String(here), tabindex: here ? 0 : -1,
        "aria-label": `layer ${map.layer}, ${name}`, title: `layer ${map.layer}, ${name}`,
        onclick: () => viewer.change({kind: group.kind, map, head, shown: isRollout ? "rollout" : source})}, canvas));
    }
  }
  if (!grid.querySelector("[tabindex='0']")) grid.querySelector("button").tabIndex = 0;
  return grid;
};

// Drawn once for each source, head and theme.
heed.thumbnail = (map, source, head) => {
  const key = `${source} ${head} ${heed.isDark()}`, layered = map[source], {view} = layered;
  const kept = map.thumbnailCanvases ||= new Map();
  if (!kept.has(key))
    kept.set(key, heed.pixels(view.rows, view.columns, (i, j) => layered.at(head, i, j),
      map.isTiled ? layered.common(head) : source !== "weights" ? layered.largest(head) : map.isFaint() ? map.most() : 1));
  return kept.get(key);
};

heed.moveInThumbnails = (viewer, group, event) => {
  const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
  if (!step) return;
  event.preventDefault();
  const {map, head} = viewer.state, at = group.maps.indexOf(map);
  const to = group.maps[heed.clamp((at < 0 ? 0 : at) + step[0], 0, group.maps.length - 1)];
  viewer.change({kind: group.kind, map: to, head: heed.clamp(head + step[1], 0, to.heads > 1 ? to.heads : 0)});
};

// What each head of the layer does, a row a head.
heed.statisticsTable = (viewer) => {
  const {map, head: shownHead} = viewer.state;
  const diagonal = map.kind === "cross" ? "diagonal" : "self";
  const names = [["head", "head of this layer"], ["entropy", "mean entropy of a row in nats; the bar ends at uniform attention"],
    ["largest", "mean of the largest weight in each row; weights on the end-of-sentence token are not counted"],
    [diagonal, "mean weight on the key at the query's own place"], ["previous", "mean weight one place before"],
    ["next", "mean weight one place after"], ["near", "mean weight within three places"],
    ["distance", "mean distance between query and key"], ["favourite", "the key with the largest mean weight"]];
  const row = (one, head) => {
    const favourite = heed.named(map.favourites[head]);
    return heed.make("tr", {"aria-selected": String(head === shownHead), onclick: () => viewer.change({head})},
      heed.make("th", {scope: "row"}, heed.make("button", {type: "button", class: "plain"}, String(head))),
      heed.make("td", {class: "meter", style: `--part:${heed.clamp(one.entropy / (one.uniform || 1), 0, 1).toFixed(3)}`},
        heed.short(one.entropy, 2)),
      ...[one.confidence, one.diagonal, one.previous, one.next, one.near].map((value) =>
        heed.make("td", {}, heed.short(value, 2))),
      heed.make("td", {}, heed.short(one.distance, 1)),
      heed.make("td", {class: "word", title: `${favourite} receives ${heed.short(one.mass, 3)} of all attention`},
        ...(/^\u2581./.test(favourite) ? [heed.make("span", {class: "faint"}, "\u2581"), favourite.slice(1)] : [favourite])));
  };
  return heed.make("table", {class: "numbers"},
    heed.make("caption", {}, `Layer ${map.layer}: what each head does. Uniform attention has entropy ` +
      `${heed.short(map.statistics[0].uniform, 2)}.`),
    heed.make("thead", {}, heed.make("tr", {},
      ...names.map(([name, help]) => heed.make("th", {scope: "col", title: help}, name)))),
    heed.make("tbody", {}, ...map.statistics.map(row)));
};

// The numbers of the picture as a table, for screen readers and for copying: {rows, columns, value(i, j), title}. A long
// one has the twelve largest keys of each query.
heed.weightTable = ({rows, columns, value, title}) => {
  const number = (i, j) => heed.number(value(i, j));
  if (columns.length <= 40) {
    return heed.make("table", {class: "weights"}, heed.make("caption", {}, `${title}. Rows are queries, columns are keys.`),
      heed.make("thead", {}, heed.make("tr", {}, heed.make("td"),
        ...columns.map((word) => heed.make("th", {scope: "col"}, word)))),
      heed.make("tbody", {}, ...rows.slice(0, 200).map((word, i) => heed.make("tr", {}, heed.make("th", {scope: "row"}, word),
        ...columns.map((_, j) => heed.make("td", {}, number(i, j)))))));
  }
  const size = (i, j) => Math.abs(value(i, j)) || 0;
  const largest = (i) => columns.map((_, j) => j).sort((a, b) => size(i, b) - size(i, a)).slice(0, 12);
  return heed.make("table", {class: "weights"}, heed.make("caption", {},
    `${title}. Of each query, the twelve keys with the largest weights.`),
    heed.make("thead", {}, heed.make("tr", {},
      heed.make("th", {scope: "col"}, "query"), heed.make("th", {scope: "col"}, "keys"))),
    heed.make("tbody", {}, ...rows.slice(0, 200).map((word, i) => heed.make("tr", {}, heed.make("th", {scope: "row"}, word),
      heed.make("td", {class: "list"}, largest(i).map((j) => `${columns[j]} ${number(i, j)}`).join("   "))))));
};

// The keys of the page, as a dialog.
heed.keyboardHelp = [["m l t p n o", "matrix, lines, text, picture, neurons, overview of all heads"],
  ["[ ]", "earlier, later layer"],
  [", .", "head before, head after"], ["a", "mean of the heads"], ["k", "next kind of attention"],
  ["w", "weights, attribution, rollout"], ["/", "filter tokens"], ["s", "special tokens"],
  ["arrows", "walk over tokens and weights in the picture"], ["Enter", "keep the query under the cursor; again: let go"],
  ["e", "save the picture as SVG"], ["Escape", "let go, and clear the filter"], ["?", "this list"]];
heed.helpDialog = () => {
  const dialog = heed.make("dialog", {class: "help", "aria-label": "Keyboard"},
    heed.make("h3", {}, "Keyboard"),
    heed.make("dl", {}, ...heed.keyboardHelp.flatMap(([keys, words]) =>
      [heed.make("dt", {}, ...keys.split(" ").map((key) => heed.make("kbd", {}, key))), heed.make("dd", {}, words)])),
    heed.make("form", {method: "dialog"}, heed.make("button", {class: "quiet"}, "Close")));
  document.body.append(dialog);
  return dialog;
};

// The large thumbnails as one picture for saving.
heed.overviewSvg = (viewer) => {
  const svg = heed.draw("svg", {}), box = 120, left = 76;
  const names = viewer.groups.map((group) => heed.kindNames[group.kind] || group.kind);
  let y = 8, width = 0;
  viewer.groups.forEach((group, at) => {
    svg.append(heed.draw("text", {x: 8, y: y + 14, "font-weight": 600}, names[at]));
    y += 40;
    for (const map of group.maps) {
      const source = viewer.state.shown === "attribution" && map.has("attribution") ? "attribution" : "weights";
      const ratio = map.queries / map.keys, [w, h] = [ratio > 1 ? box / ratio : box, ratio > 1 ? box : box * ratio];
      svg.append(heed.draw("text", {class: "axis", x: 8, y: y + h / 2 + 4}, `layer ${map.layer}`));
      for (let head = 0; head < map.heads; ++head) {
        const x = left + head * (box + 8);
        if (map === group.maps[0]) svg.append(heed.draw("text", {class: "axis", x: x + w / 2, y: y - 7,
          "text-anchor": "middle"}, `head ${head}`));
        svg.append(heed.draw("image", {x, y, width: w, height: h, preserveAspectRatio: "none", style: "image-rendering:pixelated",
          href: heed.thumbnail(map, source, head).toDataURL()}),
          heed.draw("rect", {class: "frame", x, y, width: w, height: h}));
        width = Math.max(width, x + box + 8);
      }
      y += h + 8;
    }
    y += 16;
  });
  heed.fill(svg, {viewBox: `0 0 ${width} ${y}`}, []);
  return svg;
};
