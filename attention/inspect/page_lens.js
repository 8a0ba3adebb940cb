// What each layer would predict, as a table of tokens with a shade for the probability; needs page_tools.js.

heed.Lens = class {
  constructor(root) {
    Object.assign(this, JSON.parse(root.querySelector("script").textContent));
    this.shown = "probability";
    this.bar = heed.make("div", {class: "choice", role: "group", "aria-label": "Shade"});
    this.table = heed.make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Logit lens"});
    root.append(heed.make("p", {class: "note"}, "Final norm and output layer, applied to the output of each layer: what the " +
      "model would say if it ended there. The bottom row is the model itself. A frame marks what it says in the end."),
    heed.make("div", {class: "bar lensBar"}, this.bar), this.table);
    this.render();
    heed.scheme.addEventListener("change", () => this.render());
  }
  render() {
    const names = [["probability", "probability of the token shown"], ["final", "probability of the model's final token"]];
    this.bar.replaceChildren(...names.map(([name, title]) => heed.make("button", {type: "button", title,
      "aria-pressed": String(this.shown === name), onclick: () => {
        this.shown = name;
        this.render();
      }}, name === "final" ? "final token" : "token shown")));
    const head = (words) => heed.make("th", {scope: "col"}, words);
    this.table.replaceChildren(heed.make("table", {class: "lens"},
      heed.make("thead", {}, heed.make("tr", {}, heed.make("th", {scope: "row"}, "reads"), ...this.tokens.map(head))),
      heed.make("tbody", {}, ...this.layers.map((name, layer) => heed.make("tr", {},
        heed.make("th", {scope: "row"}, name), ...this.cells[layer].map((cell, at) => this.cell(layer, at, cell))))),
      heed.make("tfoot", {}, heed.make("tr", {}, heed.make("th", {scope: "row"}, "next in the text"), ...this.next.map(head)))));
  }
  cell(layer, at, cell) {
    const [{token, probability}] = cell.best, last = this.cells.at(-1)[at].best[0].token;
    const value = this.shown === "final" ? cell.final_probability : probability, fill = heed.shade(value);
    const bright = fill.match(/\d+/g).reduce((sum, part, i) => sum + part * [0.3, 0.59, 0.11][i], 0) > 140;
    const say = (event) => {
      const box = event.target.getBoundingClientRect();
      heed.tip.show(event.clientX || box.right, event.clientY || box.bottom, `${this.layers[layer]}, behind ${this.tokens[at]}`,
        ...cell.best.map((one) => `${one.token}  ${heed.number(one.probability)}`), `entropy ${cell.entropy.toFixed(2)} nats`);
    };
    return heed.make("td", {tabindex: 0, class: token === last ? "same" : null, onpointermove: say, onfocus: say,
      onpointerleave: () => heed.tip.hide(), onblur: () => heed.tip.hide(),
      style: `background:${fill};color:${bright ? "#14161a" : "#fff"}`}, heed.make("span", {}, heed.cut(token)),
    heed.make("small", {}, `${Math.round(100 * value)} %`));
  }
};
heed.lenses = [...document.querySelectorAll("section.lens")].map((root) => new heed.Lens(root));
