// What the viewers and charts of every page share: the object heed with elements, colours, numbers, the tooltip, saving.
"use strict";
const heed = {};

// Elements: attributes that begin with "on" are listeners; null and false leave an attribute out. The content policy
// refuses style as an attribute, and lets a script set it.
heed.fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") element.style.cssText = value;
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
};
heed.make = (tag, attributes, ...children) => heed.fill(document.createElement(tag), attributes, children);
heed.draw = (tag, attributes, ...children) =>
  heed.fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// Colours. A ramp is a list of [weight, red, green, blue]; cool is for weights, warm for those below zero.
heed.scheme = matchMedia("(prefers-color-scheme: dark)");
heed.ramps = {
  light: {
    cool: [[0, 250, 251, 252], [0.08, 222, 234, 246], [0.3, 150, 190, 225], [0.6, 61, 122, 183], [1, 11, 45, 89]],
    warm: [[0, 250, 251, 252], [0.3, 246, 190, 140], [1, 160, 62, 10]],
    none: "rgb(184,188,194)",
  },
  dark: {
    cool: [[0, 27, 30, 35], [0.08, 31, 50, 72], [0.3, 38, 91, 143], [0.6, 86, 154, 214], [1, 232, 244, 255]],
    warm: [[0, 27, 30, 35], [0.3, 120, 66, 26], [1, 255, 190, 130]],
    none: "rgb(92,98,106)",
  },
};
heed.mix = (ramp, t) => {
  let i = 1;
  while (i + 1 < ramp.length && t > ramp[i][0]) ++i;
  const [low, high] = [ramp[i - 1], ramp[i]];
  const share = Math.min(1, (t - low[0]) / (high[0] - low[0]));
  return [1, 2, 3].map((c) => Math.round(low[c] + share * (high[c] - low[c])));
};
// On paper everything is light.
heed.isPrinting = false;
heed.isDark = () => heed.scheme.matches && !heed.isPrinting;
heed.theme = () => heed.ramps[heed.isDark() ? "dark" : "light"];
heed.shade = (weight) => {
  const ramps = heed.theme();
  if (!Number.isFinite(weight)) return ramps.none;
  return `rgb(${heed.mix(weight < 0 ? ramps.warm : ramps.cool, Math.min(1, Math.abs(weight)))})`;
};
// The same as four bytes, from a table of 512 steps each way.
heed.shadeBytes = () => {
  const ramps = heed.theme(), tables = heed.shadeTables ||= new Map();
  if (!tables.has(ramps)) {
    const table = new Uint8Array(4 * 1026);
    const put = (at, colour) => table.set([...colour, 255], 4 * at);
    for (let i = 0; i <= 512; ++i) {
      put(512 + i, heed.mix(ramps.cool, i / 512));
      put(512 - i, heed.mix(i ? ramps.warm : ramps.cool, i / 512));
    }
    put(1025, ramps.none.match(/\d+/g).map(Number));
    tables.set(ramps, new Uint32Array(table.buffer));
  }
  const table = tables.get(ramps);
  return (weight) => table[Number.isFinite(weight) ? Math.round(512 + 512 * heed.clamp(weight, -1, 1)) : 1025];
};
// Ink that can be read on a shade.
heed.inkOn = (weight) => {
  const [red, green, blue] = heed.shade(weight).match(/\d+/g).map(Number);
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#16191d" : "#ffffff";
};
heed.series = (index) => `var(--series-${index % 8})`;

// Numbers: three decimals, and small ones with three significant digits.
heed.number = (value) => {
  if (value === undefined) return "left out";
  if (!Number.isFinite(value)) return "not finite";
  if (value === 0 || Math.abs(value) >= 0.001) return value.toFixed(3);
  return value.toExponential(1);
};

// A token as svg text: the mark of a word's beginning (sentencepiece writes U+2581) steps back.
heed.cut = (token) => ([...token].length > 22 ? [...token].slice(0, 21).join("") + "…" : token);
heed.word = (token, attributes) => {
  const mark = token.startsWith("\u2581") && token.length > 1;
  return heed.draw("text", attributes, ...(mark ? [heed.draw("tspan", {opacity: 0.3}, "\u2581"), token.slice(1)] : [token]));
};
// A token among words: one that is a space alone would look like a stroke.
heed.named = (token) => (/^[\u2581\u2423 ]$/.test(token) ? "\u2423 (space)" : token);
heed.tick = (value) => String(Math.abs(value) >= 0.01 || value === 0 ? +value.toFixed(3) : +value.toPrecision(2));
heed.short = (value, decimals) => (Number.isFinite(value) ? value.toFixed(decimals) : "–");

// One tooltip for the page, read aloud politely.
heed.tip = {
  box: null,
  show(x, y, ...lines) {
    if (!this.box) {
      this.box = heed.make("div", {class: "tip", role: "status"});
      document.body.append(this.box);
    }
    this.box.replaceChildren(...lines.map((line) => heed.make("div", {}, line)));
    this.box.hidden = false;
    const {width, height} = this.box.getBoundingClientRect();
    this.box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
    this.box.style.top = `${y + 18 + height > innerHeight ? y - height - 10 : y + 18}px`;
  },
  hide() {
    if (this.box) this.box.hidden = true;
  },
};

// Width of a text in the label font.
heed.pen = document.createElement("canvas").getContext("2d");
heed.measure = (words, font = "12px system-ui, sans-serif") => {
  heed.pen.font = font;
  return Math.max(0, ...words.map((word) => heed.pen.measureText(word).width));
};

// Saving. The copy carries every style that the page gave it, so the file stands alone.
heed.styles = ["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linejoin",
  "opacity", "font-family", "font-size", "font-weight", "text-anchor", "shape-rendering", "image-rendering"];
heed.standalone = (svg) => {
  const isLoose = !svg.isConnected; // styles are known of what is in the page alone
  if (isLoose) document.body.append(svg);
  const copy = svg.cloneNode(true);
  const originals = [svg, ...svg.querySelectorAll("*")], copies = [copy, ...copy.querySelectorAll("*")];
  originals.forEach((original, i) => {
    const style = getComputedStyle(original);
    if (style.display === "none" || style.visibility === "hidden") return copies[i].remove();
    for (const name of heed.styles) {
      const value = style.getPropertyValue(name);
      if (value) copies[i].setAttribute(name, value);
    }
    copies[i].removeAttribute("class");
    copies[i].removeAttribute("tabindex");
  });
  const [width, height] = [svg.viewBox.baseVal.width, svg.viewBox.baseVal.height];
  copy.removeAttribute("style");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const paper = getComputedStyle(document.body).backgroundColor;
  copy.prepend(heed.draw("rect", {width, height, fill: paper}));
  if (isLoose) svg.remove();
  return {text: new XMLSerializer().serializeToString(copy), width, height};
};
heed.bitmap = ({text, width, height}, zoom = 3) => new Promise((resolve, reject) => {
  const image = new Image();
  image.onload = () => {
    const canvas = heed.make("canvas", {width: Math.ceil(width * zoom), height: Math.ceil(height * zoom)});
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large for a PNG"))));
  };
  image.onerror = () => reject(new Error("the picture could not be drawn"));
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
});
heed.save = async (svg, name, kind) => {
  const file = heed.standalone(svg);
  const blob = kind === "png" ? await heed.bitmap(file) : new Blob([file.text], {type: "image/svg+xml"});
  const link = heed.make("a", {href: URL.createObjectURL(blob), download: `${name}.${kind}`});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  return blob;
};
heed.saveButtons = (svg, name) => ["svg", "png"].map((kind) =>
  heed.make("button", {type: "button", class: "quiet", title: `Save this picture as ${kind.toUpperCase()}`,
    "aria-label": `Save as ${kind.toUpperCase()}`, onclick: () => heed.save(svg(), name(), kind)}, kind.toUpperCase()));

// A pointer event in the coordinates of an svg element, and back.
heed.place = (svg, event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
heed.onScreen = (svg, x, y) => new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
heed.clamp = (value, low, high) => Math.max(low, Math.min(high, value));
