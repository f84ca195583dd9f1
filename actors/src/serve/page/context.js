// Context use of a turn: a bar by source against the window, and what the shapers did to it.
"use strict";

const context = (() => {
  /** The nine sources with their share of the estimate for the whole request. */
  function shares(turn) {
    const sizes = turn.context?.sizes ?? [];
    const all = sizes.reduce((sum, it) => sum + it, 0);
    return record.SOURCES.map((source, at) => ({
      at,
      source,
      characters: sizes[at] ?? 0,
      tokens: all ? ((sizes[at] ?? 0) / all) * turn.context.tokens : 0,
    }));
  }

  function table(turn) {
    const rows = shares(turn).map((it) =>
      dom.el(
        "tr",
        null,
        dom.el(
          "th",
          { scope: "row" },
          dom.el("span", { class: "swatch", data: { source: String(it.at + 1) }, "aria-hidden": "true" }),
          it.source,
        ),
        dom.el("td", null, text.count(it.characters)),
        dom.el("td", null, text.tokens(it.tokens)),
      ),
    );
    return dom.el(
      "table",
      { class: "figures" },
      dom.el(
        "thead",
        null,
        dom.el(
          "tr",
          null,
          ["Source", "Characters", "Tokens, about"].map((it) => dom.el("th", { scope: "col" }, it)),
        ),
      ),
      dom.el("tbody", null, rows),
    );
  }

  /** What the request is made of, by source. */
  function bar(turn) {
    const found = shares(turn).filter((it) => 0 < it.tokens);
    const segments = found.map((it) => {
      const node = dom.el("span", {
        class: "segment",
        data: { source: String(it.at + 1) },
        title: `${it.source}: about ${text.tokens(it.tokens)} tokens`,
      });
      node.style.width = `${(it.tokens / turn.context.tokens) * 100}%`;
      return node;
    });
    const spoken = found.map((it) => `${it.source} ${text.tokens(it.tokens)}`).join(", ");
    return dom.el(
      "div",
      { class: "context-bar", role: "img", "aria-label": `Context by source, in tokens: ${spoken}` },
      segments,
    );
  }

  /** How much of the window is used: before the shapers, and what they left. */
  function gauge(turn, window) {
    const after = turn.shaped?.tokens ?? turn.context.tokens;
    const saved = turns.savings(turn);
    const before = after + saved;
    const most = Math.max(window, before);
    const part = (name, tokens) => {
      const node = dom.el("span", { class: name });
      node.style.width = `${(tokens / most) * 100}%`;
      return node;
    };
    const spoken = saved
      ? `${text.tokens(before)} before the shapers, ${text.tokens(after)} after them`
      : text.tokens(after);
    return dom.el(
      "div",
      {
        class: "gauge",
        role: "img",
        "aria-label": `Use of the window of ${text.tokens(window)} tokens: ${spoken}`,
      },
      part("used", after),
      saved > 0 && part("saved", saved),
    );
  }

  /** The context of each turn as one column; a mark where a shaper changed something. */
  function history(all) {
    const part = all.filter((it) => it.context).slice(-120);
    if (part.length < 2) return undefined;
    const most = part.reduce((sum, it) => Math.max(sum, it.context.tokens), 1);
    const width = Math.max(240, part.length * 8);
    const columns = part.flatMap((turn, at) => {
      let y = 64;
      const drawn = shares(turn)
        .filter((it) => 0 < it.tokens)
        .map((it) => {
          const height = (it.tokens / most) * 60;
          y -= height;
          return dom.svg("rect", {
            x: at * (width / part.length) + 1,
            y,
            width: width / part.length - 2,
            height,
            class: `fill-${it.at + 1}`,
          });
        });
      if (0 < turns.savings(turn))
        drawn.push(
          dom.svg("circle", {
            cx: (at + 0.5) * (width / part.length),
            cy: Math.max(3, y - 5),
            r: 2.5,
            class: "shaper-mark",
          }),
        );
      return drawn;
    });
    return dom.svg(
      "svg",
      {
        class: "history",
        viewBox: `0 0 ${width} 66`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": `Context of the last ${part.length} turns, at most ${text.tokens(most)} tokens; dots are turns in which shapers saved`,
      },
      columns,
    );
  }

  function mount(panel) {
    const empty = dom.el("p", { class: "empty" }, "The context is shown once a turn has put it together.");
    const body = dom.el("div");
    panel.append(body, empty);
    let shown;

    function show(id, rec, turn) {
      const it = turn?.context ? turn : [...rec.turns].reverse().find((one) => one.context);
      empty.hidden = Boolean(it);
      body.hidden = !it;
      const key = it && [id, it.key, rec.turns.length, it.shapers.length, it.shaped?.tokens].join();
      if (!it || key === shown) return;
      shown = key;
      const window = it.shaped ? it.shaped.tokens + it.shaped.remaining : it.context.tokens;
      const share = Math.floor(((it.shaped?.tokens ?? it.context.tokens) / window) * 100);
      const past = history(rec.turns);
      dom.replace(
        body,
        dom.el(
          "header",
          { class: "figure-head" },
          dom.el("h3", null, `Turn ${it.number}`),
          dom.el(
            "p",
            { class: "big" },
            text.tokens(it.shaped?.tokens ?? it.context.tokens),
            dom.el("small", null, ` of ${text.tokens(window)} tokens, ${share < 1 ? "<1" : share} %`),
          ),
        ),
        gauge(it, window),
        bar(it),
        table(it),
        calls.section("Shapers", shapers(it)),
        past && calls.section("Over the turns", past),
      );
    }
    return { show };
  }

  function shapers(turn) {
    const rows = turns.shaperRows(turn);
    if (rows.length === 0) return dom.el("p", { class: "muted" }, "No shaper is recorded for this turn.");
    return dom.el(
      "ul",
      { class: "shapers plain" },
      rows.map((it) =>
        dom.el(
          "li",
          { data: { fired: String(it.isFired) } },
          dom.el("span", { class: "name" }, text.words(it.stage)),
          dom.el("span", { class: "saved" }, it.isFired ? `−${text.tokens(it.saved)}` : "–"),
          dom.el("span", { class: "why" }, text.line(it.why, 160)),
        ),
      ),
    );
  }

  return { mount, table };
})();
