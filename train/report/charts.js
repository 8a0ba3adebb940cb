// Reading a chart with the pointer or the arrow keys; needs page_tools.js.

heed.Chart = class {
  constructor(root) {
    Object.assign(this, JSON.parse(root.querySelector("script").textContent));
    this.root = root;
    this.drawings = [...root.querySelectorAll("svg")];
    this.xs = [...new Set(this.series.flatMap((one) => one.x))].sort((a, b) => a - b);
    const name = () => this.title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
    const buttons = heed.saveButtons(() => this.drawings.find((svg) => !svg.hasAttribute("hidden")), name);
    if (this.drawings.length > 1)
      buttons.unshift(heed.make("button", {type: "button", class: "quiet", "aria-pressed": "false",
        title: "Logarithmic scale of the values", onclick: (event) => this.toggle(event.target)}, "log scale"));
    root.querySelector("figcaption").append(heed.make("span", {class: "right"}, ...buttons));
    for (const svg of this.drawings) this.listen(svg, JSON.parse(svg.dataset.frame));
  }
  toggle(button) {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    this.drawings[0].toggleAttribute("hidden", on);
    this.drawings[1].toggleAttribute("hidden", !on);
  }
  // The index of the x that is nearest to a value, in rising numbers.
  static nearest(xs, x) {
    let low = 0, high = xs.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] < x) low = middle + 1;
      else high = middle;
    }
    return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
  }
  listen(svg, frame) {
    const across = (x) => frame.left + (x - frame.x[0]) / (frame.x[1] - frame.x[0]) * (frame.right - frame.left);
    const place = frame.logarithmic ? Math.log10 : (y) => y;
    const down = (y) => frame.bottom - (place(y) - place(frame.y[0])) / (place(frame.y[1]) - place(frame.y[0])) *
      (frame.bottom - frame.top);
    const rule = heed.draw("path", {stroke: "var(--muted)", visibility: "hidden"}), dots = heed.draw("g");
    svg.append(rule, dots);
    let here = -1;
    const hide = () => {
      here = -1;
      rule.setAttribute("visibility", "hidden");
      dots.replaceChildren();
      heed.tip.hide();
    };
    const go = (at) => {
      here = at;
      const x = this.xs[at], lines = [];
      dots.replaceChildren();
      this.series.forEach((one, index) => {
        const found = heed.Chart.nearest(one.x, x), y = one.y[found];
        if (!one.x.length || Math.abs(one.x[found] - x) > (frame.x[1] - frame.x[0]) / 40) return;
        lines.push(`${one.name} ${y === null ? "not finite" : +y.toPrecision(4)}`);
        if (y !== null && (!frame.logarithmic || y > 0))
          dots.append(heed.draw("circle", {cx: across(one.x[found]), cy: down(y), r: 3.5, fill: heed.series(index)}));
      });
      rule.setAttribute("d", `M${across(x)} ${frame.top}V${frame.bottom}`);
      rule.setAttribute("visibility", "visible");
      const corner = heed.onScreen(svg, across(x), frame.top);
      heed.tip.show(corner.x, corner.y, `${this.label} ${x}`, ...lines);
    };
    const toX = (event) => frame.x[0] + (heed.place(svg, event).x - frame.left) / (frame.right - frame.left) *
      (frame.x[1] - frame.x[0]);
    svg.addEventListener("pointermove", (event) => go(heed.Chart.nearest(this.xs, toX(event))));
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const step = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity}[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      go(heed.clamp(here < 0 && step === -1 ? this.xs.length - 1 : here + step, 0, this.xs.length - 1));
    });
  }
};
heed.charts = [...document.querySelectorAll("figure.chart")].map((root) => new heed.Chart(root));
