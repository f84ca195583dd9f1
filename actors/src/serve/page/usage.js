// Tokens and money over time: two small charts of one session, and their figures as a table.
"use strict";

const usage = (() => {
  const WIDTH = 480;
  const HEIGHT = 140;
  const PAD = { left: 44, right: 8, top: 8, bottom: 18 };
  // Points of a line; more are thinned, keeping the last.
  const MAX_POINTS = 300;

  function thinned(points) {
    if (points.length <= MAX_POINTS) return points;
    const step = points.length / MAX_POINTS;
    const part = Array.from({ length: MAX_POINTS }, (_, at) => points[Math.floor(at * step)]);
    part[part.length - 1] = points.at(-1);
    return part;
  }

  /** A round number of a scale at or above this one. */
  function ceiling(value) {
    if (!(0 < value)) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 2.5, 5, 10].map((it) => it * power).find((it) => value <= it) ?? value;
  }

  /** Areas stacked on each other over time. `layers` have a name, a class and a value of a point. */
  function chart(points, layers, { label, format }) {
    const part = thinned(points);
    const first = part[0].at;
    const span = Math.max(1, part.at(-1).at - first);
    const sum = (point) => layers.reduce((all, it) => all + it.of(point), 0);
    const top = ceiling(part.reduce((most, it) => Math.max(most, sum(it)), 0));
    const x = (at) => PAD.left + ((at - first) / span) * (WIDTH - PAD.left - PAD.right);
    const y = (value) => HEIGHT - PAD.bottom - (value / top) * (HEIGHT - PAD.top - PAD.bottom);
    // A single point is drawn as a level line.
    const xs = part.length === 1 ? [PAD.left, WIDTH - PAD.right] : part.map((it) => x(it.at));
    const rows = part.length === 1 ? [part[0], part[0]] : part;
    let base = rows.map(() => 0);
    const areas = layers.map((layer) => {
      const above = rows.map((it, at) => base[at] + layer.of(it));
      const forth = xs.map((it, at) => `${it.toFixed(1)},${y(above[at]).toFixed(1)}`);
      const back = xs.map((it, at) => `${it.toFixed(1)},${y(base[at]).toFixed(1)}`).reverse();
      base = above;
      return [
        dom.svg("polygon", { points: [...forth, ...back].join(" "), class: `area ${layer.name}` }),
        dom.svg("polyline", { points: forth.join(" "), class: `edge ${layer.name}` }),
      ];
    });
    const grid = [0, 0.5, 1].map((share) => [
      dom.svg("line", {
        x1: PAD.left,
        x2: WIDTH - PAD.right,
        y1: y(top * share),
        y2: y(top * share),
        class: "grid",
      }),
      dom.svg("text", { x: PAD.left - 6, y: y(top * share) + 4, "text-anchor": "end" }, format(top * share)),
    ]);
    const times = dom.svg(
      "g",
      null,
      dom.svg("text", { x: PAD.left, y: HEIGHT - 3 }, text.clock(first)),
      1000 < span &&
        dom.svg(
          "text",
          { x: WIDTH - PAD.right, y: HEIGHT - 3, "text-anchor": "end" },
          text.clock(part.at(-1).at),
        ),
    );
    return dom.svg(
      "svg",
      { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
      grid,
      areas,
      times,
    );
  }

  const LAYERS = [
    { name: "read", title: "Input from cache", of: (it) => it.read },
    { name: "write", title: "Input to cache", of: (it) => it.write },
    { name: "input", title: "Input", of: (it) => it.input },
    { name: "output", title: "Output", of: (it) => it.output },
  ];

  function figures(rec) {
    const { totals } = rec;
    const rows = LAYERS.map((it) => [it, it.of(totals)]).reverse();
    return dom.el(
      "table",
      { class: "figures" },
      dom.el(
        "thead",
        null,
        dom.el("tr", null, dom.el("th", { scope: "col" }, "Kind"), dom.el("th", { scope: "col" }, "Tokens")),
      ),
      dom.el(
        "tbody",
        null,
        rows.map(([it, n]) =>
          dom.el(
            "tr",
            null,
            dom.el(
              "th",
              { scope: "row" },
              dom.el("span", { class: `swatch ${it.name}`, "aria-hidden": "true" }),
              it.title,
            ),
            dom.el("td", null, text.count(n)),
          ),
        ),
      ),
    );
  }

  function mount(panel) {
    const empty = dom.el(
      "p",
      { class: "empty" },
      "Tokens and money appear with the first answer of the model.",
    );
    const body = dom.el("div");
    panel.append(body, empty);
    let shown;

    function show(id, rec, cost) {
      empty.hidden = 0 < rec.usage.length;
      body.hidden = rec.usage.length === 0;
      const key = [id, rec.usage.length, cost].join();
      if (rec.usage.length === 0 || key === shown) return;
      shown = key;
      const { totals } = rec;
      const all = totals.input + totals.read + totals.write + totals.output;
      const money = 0 < cost ? cost : totals.isPriced ? totals.cost : undefined;
      dom.replace(
        body,
        dom.el(
          "div",
          { class: "bigs" },
          dom.el("p", { class: "big" }, text.tokens(all), dom.el("small", null, " tokens")),
          dom.el(
            "p",
            { class: "big" },
            money === undefined ? "–" : text.money(money),
            dom.el(
              "small",
              null,
              money === undefined ? " price not known" : totals.cost < money ? " with sub-agents" : " in all",
            ),
          ),
          dom.el(
            "p",
            { class: "big" },
            text.count(rec.usage.length),
            dom.el("small", null, rec.usage.length === 1 ? " model call" : " model calls"),
          ),
        ),
        calls.section(
          "Tokens over time",
          chart(rec.usage, LAYERS, {
            label: `Tokens over time, ${text.count(all)} at the end`,
            format: text.tokens,
          }),
        ),
        figures(rec),
        totals.isPriced &&
          calls.section(
            "Money over time",
            chart(rec.usage, [{ name: "money", of: (it) => it.cost }], {
              label: `Money over time, ${text.money(totals.cost)} at the end`,
              format: text.money,
            }),
          ),
        rec.leftOut > 0 && dom.el("p", { class: "muted" }, "Of the part of the transcript that is loaded."),
      );
    }
    return { show };
  }

  return { mount, ceiling };
})();
