// A turn as a timeline of its nine steps: how long each took, what the shapers saved, how the model was
// asked, which calls were made and what was decided about them.
"use strict";

const turns = (() => {
  // Turns in the strip; earlier ones are reached by the arrows.
  const MAX_STRIP = 200;

  const TITLES = record.STEPS.map((it) => it[0].toUpperCase() + it.slice(1));

  /** The steps of a turn in order, with those that have not come yet. */
  function stepsOf(turn, now, isLast) {
    const begun = new Map(turn.steps.map((it) => [it.n, it]));
    return TITLES.map((title, at) => {
      const n = at + 1;
      const it = begun.get(n);
      const isNow = isLast && now.isRunning && now.turn === turn.n && now.step === n && !it;
      const isSeen = !it && isLast && now.isRunning && now.turn === turn.n && n < now.step;
      const state = isSeen
        ? "past"
        : it
          ? it.detail.nothing !== undefined
            ? "nothing"
            : "past"
          : isNow
            ? "now"
            : turn.end?.step && text.words(turn.end.step) === record.STEPS[at]
              ? "broken"
              : "ahead";
      return {
        n,
        title,
        ms: it ? it.ms : isNow ? Date.now() - now.stepSince : isSeen ? (now.times.get(n) ?? 0) : 0,
        detail: it?.detail,
        state,
      };
    });
  }

  /** What a step found or decided, in a few words. */
  function gist(step, turn) {
    const it = step.detail;
    if (step.state === "now") return "under way";
    if (step.state === "broken") return `ended here: ${text.words(turn.end.reason)}`;
    if (!it) return "";
    if (it.nothing !== undefined) return text.line(it.nothing, 80);
    switch (step.n) {
      case 1:
        return `${text.plural(it.sources?.length ?? 0, "layer")}${it.warnings ? `, ${text.plural(it.warnings, "warning")}` : ""}`;
      case 2:
        return `${text.plural(it.messages, "message")}, ${text.tokens(it.used)} tokens used before`;
      case 3:
        return `${text.tokens(it.tokens)} tokens from nine sources`;
      case 4: {
        const saved = savings(turn);
        return `${saved ? `${text.tokens(saved)} tokens saved, ` : it.fired ? "" : "as it was, "}${text.tokens(it.remaining)} left`;
      }
      case 5:
        return `${text.plural(it.attempts, "attempt")}, ${text.words(it.outcome)}`;
      case 6:
        return `${text.plural(it.calls, "call")}${it.refused ? `, ${it.refused} refused` : ""}`;
      case 7:
        return `${it.allowed} allowed${it.denied ? `, ${it.denied} denied` : ""}`;
      case 8:
        return `${it.succeeded} succeeded${it.failed ? `, ${it.failed} failed` : ""}`;
      default:
        return it.done ? `the run ends: ${text.words(it.reason)}` : "goes on";
    }
  }

  function savings(turn) {
    return turn.shapers.reduce((sum, it) => sum + Math.max(0, it.before - it.after), 0);
  }

  function shaperRows(turn) {
    const ran = turn.shapers.map((it) => ({
      stage: it.stage,
      saved: it.before - it.after,
      share: it.before ? (it.before - it.after) / it.before : 0,
      why: it.cause ? `${it.why} (after ${text.words(it.cause)})` : it.why,
      isFired: it.fired,
      ms: it.ms,
    }));
    const passed = turn.passed.map((it) => ({ ...it, saved: 0, share: 0, isFired: false }));
    return [...ran, ...passed];
  }

  function shapersView(turn) {
    const rows = shaperRows(turn);
    if (rows.length === 0) return undefined;
    return dom.el(
      "ul",
      { class: "shapers" },
      rows.map((it) => {
        const fill = dom.el("span", { class: "fill" });
        fill.style.width = `${Math.max(0, Math.min(1, it.share)) * 100}%`;
        return dom.el(
          "li",
          { data: { fired: String(it.isFired) } },
          dom.el("span", { class: "name" }, text.words(it.stage)),
          dom.el("span", { class: "saved" }, it.isFired ? `−${text.tokens(it.saved)}` : "–"),
          dom.el("span", { class: "track", "aria-hidden": "true" }, fill),
          dom.el("span", { class: "why" }, text.line(it.why, 160)),
        );
      }),
    );
  }

  function attemptsView(turn) {
    if (turn.attempts.length === 0) return undefined;
    return dom.el(
      "ul",
      { class: "attempts" },
      turn.attempts.map((it) => {
        const tokens = `${text.tokens(it.input + it.read + it.write)} in${it.read ? ` (${text.tokens(it.read)} from cache)` : ""}, ${text.tokens(it.output)} out`;
        const facts = [
          ["Cause", it.cause && text.words(it.cause)],
          ["Model", it.model],
          ["First token", Number.isFinite(it.firstToken) ? text.duration(it.firstToken) : ""],
          ["In all", text.duration(it.ms)],
          ["Parked", it.parked ? text.duration(it.parked) : ""],
          ["Tokens", tokens],
          ["Cost", typeof it.cost === "number" ? text.money(it.cost) : ""],
          ["Status", it.status ? String(it.status) : ""],
          ["Provider", it.message],
        ].filter(([, value]) => value);
        return dom.el(
          "li",
          { data: { ok: String(it.outcome === "ok") } },
          dom.el("strong", null, `${it.attempt}. ${text.words(it.purpose)}: ${text.words(it.outcome)}`),
          calls.definition(facts),
        );
      }),
    );
  }

  function insideOf(step, turn) {
    switch (step.n) {
      case 1:
        return step.detail?.sources?.length
          ? calls.definition([["Layers, strongest first", step.detail.sources.join(", ")]])
          : undefined;
      case 3:
        return turn.context ? context.table(turn) : undefined;
      case 4:
        return shapersView(turn);
      case 5:
        return attemptsView(turn);
      case 7:
      case 8:
        return turn.calls.length
          ? dom.el(
              "div",
              { class: "calls" },
              turn.calls.slice(0, 200).map((it) => calls.make(it)),
            )
          : undefined;
      default:
        return undefined;
    }
  }

  /** The turns of the transcript and, after them, the one under way of which no line is written yet. */
  function withLive(rec, now) {
    const last = rec.turns.at(-1);
    if (!now.isRunning || !now.turn || (last?.run === now.run && now.turn <= last.n)) return rec.turns;
    const begun = now.stepSince - [...now.times.values()].reduce((sum, it) => sum + it, 0);
    return [
      ...rec.turns,
      { ...record.newTurn(now.run, now.turn, begun, rec.nTurns + 1), ended: begun },
    ];
  }

  function mount(panel) {
    const strip = dom.el("div", { class: "strip", role: "tablist", "aria-label": "Turns" });
    const heading = dom.el("h3", { class: "turn-title" });
    const meta = dom.el("p", { class: "muted" });
    const steps = dom.el("ol", { class: "steps" });
    const empty = dom.el(
      "p",
      { class: "empty" },
      "No turn yet. A turn appears with its nine steps as soon as a run begins.",
    );
    panel.append(strip, dom.el("header", { class: "turn-head" }, heading, meta), steps, empty);
    let chosen;
    let shownId;
    let last;
    let shownTurns = [];

    dom.roving(strip, "button", { pick: (button) => choose(button.dataset.key) });

    function choose(key) {
      const all = shownTurns;
      chosen = key === all.at(-1)?.key ? undefined : key;
      if (last) show(...last);
    }

    function stripButton(turn) {
      const bar = dom.el("span", { class: "bar", "aria-hidden": "true" });
      return dom.el(
        "button",
        { type: "button", role: "tab", data: { key: turn.key }, on: { click: () => choose(turn.key) } },
        bar,
      );
    }

    function stepRow(step) {
      const parts = {
        number: dom.el("span", { class: "number" }, String(step.n)),
        title: dom.el("span", { class: "title" }, step.title),
        gist: dom.el("span", { class: "gist" }),
        fill: dom.el("span", { class: "fill" }),
        ms: dom.el("span", { class: "ms" }),
        inside: dom.el("div", { class: "inside" }),
      };
      const node = dom.el(
        "details",
        { class: "step" },
        dom.el(
          "summary",
          null,
          parts.number,
          parts.title,
          parts.gist,
          dom.el("span", { class: "track", "aria-hidden": "true" }, parts.fill),
          parts.ms,
        ),
        parts.inside,
      );
      node.addEventListener("toggle", () => node.open && openStep(node));
      node.parts = parts;
      return dom.el("li", { data: { n: String(step.n) } }, node);
    }

    function openStep(node) {
      const { step, turn } = node;
      const shown = [
        turn.key,
        turn.shapers.length,
        turn.passed.length,
        turn.attempts.length,
        turn.calls.length,
        turn.calls.filter((it) => it.isDone).length,
      ].join();
      if (node.dataset.inside === shown) return;
      node.dataset.inside = shown;
      dom.replace(
        node.parts.inside,
        insideOf(step, turn) ?? dom.el("p", { class: "muted" }, "Nothing more is recorded of this step."),
      );
    }

    function show(id, rec, now) {
      last = [id, rec, now];
      if (id !== shownId) {
        shownId = id;
        chosen = undefined;
      }
      const all = (shownTurns = withLive(rec, now));
      const at = chosen === undefined ? all.length - 1 : all.findIndex((it) => it.key === chosen);
      const turn = all[at];
      empty.hidden = Boolean(turn);
      steps.hidden = heading.hidden = meta.hidden = strip.hidden = !turn;
      if (!turn) return;
      const from = Math.max(0, Math.min(at - 10, all.length - MAX_STRIP));
      const part = all.slice(from, from + MAX_STRIP);
      const longest = part.reduce((most, it) => Math.max(most, it.ended - it.begun), 1);
      dom.keyed(
        strip,
        part,
        (it) => it.key,
        stripButton,
        (button, it) => {
          button.firstChild.style.height = `${Math.max(8, Math.sqrt(Math.max(0, it.ended - it.begun) / longest) * 100)}%`;
          button.tabIndex = it === turn ? 0 : -1;
          button.dataset.failed = String(Boolean(it.end) || it.attempts.some((a) => a.outcome !== "ok"));
          dom.attribute(button, "aria-selected", String(it === turn));
          dom.attribute(button, "aria-label", `Turn ${it.number}, ${text.duration(it.ended - it.begun)}`);
          dom.attribute(button, "title", `Turn ${it.number}`);
        },
      );
      const isLast = turn === all.at(-1);
      const rows = stepsOf(turn, now, isLast);
      const total = rows.reduce((sum, it) => sum + it.ms, 0);
      const most = rows.reduce((sum, it) => Math.max(sum, it.ms), 1);
      dom.say(heading, `Turn ${turn.number}`);
      const saved = savings(turn);
      dom.say(
        meta,
        [
          text.duration(total),
          text.clock(turn.begun),
          turn.calls.length && text.plural(turn.calls.length, "call"),
          saved && `${text.tokens(saved)} tokens saved by shapers`,
          turn.end && `ended early: ${text.words(turn.end.reason)}`,
        ]
          .filter(Boolean)
          .join(" · "),
      );
      dom.keyed(
        steps,
        rows,
        (it) => it.n,
        stepRow,
        (li, step) => {
          const node = li.firstChild;
          Object.assign(node, { step, turn });
          li.dataset.state = step.state;
          dom.say(node.parts.gist, gist(step, turn));
          dom.say(node.parts.ms, step.state === "ahead" ? "" : text.duration(step.ms));
          node.parts.fill.style.width = `${(step.ms / most) * 100}%`;
          dom.attribute(node.firstChild, "aria-current", step.state === "now" ? "step" : null);
          if (node.open) openStep(node);
        },
      );
    }

    return {
      show,
      /** Goes to the turn before or after the one that is shown. */
      move(by) {
        const all = shownTurns;
        const at = chosen === undefined ? all.length - 1 : all.findIndex((it) => it.key === chosen);
        const to = all[Math.max(0, Math.min(all.length - 1, at + by))];
        if (to) choose(to.key);
      },
      shown: () => {
        const all = shownTurns;
        return chosen === undefined ? all.at(-1) : all.find((it) => it.key === chosen);
      },
    };
  }

  return { mount, shaperRows, savings };
})();
