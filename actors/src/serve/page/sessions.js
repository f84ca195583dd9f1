// The list of sessions: filtered by text and state, one row each.
"use strict";

const sessions = (() => {
  const ROW = 68;
  const ORDER = { waiting: 1, running: 2, parked: 3, idle: 4, passive: 5 };

  function row() {
    const dots = dom.dots(0, "idle");
    const title = dom.el("span", { class: "title" });
    const when = dom.el("span", { class: "when" });
    const state = dom.el("span", { class: "state" });
    const facts = dom.el("span", { class: "facts" });
    const node = dom.el(
      "div",
      { class: "session" },
      dots,
      dom.el(
        "div",
        { class: "two" },
        dom.el("div", { class: "one" }, title, when),
        dom.el("div", { class: "one" }, state, facts),
      ),
    );
    node.parts = { dots, title, when, state, facts };
    return node;
  }

  /** What a session waits for in words, or what it does. */
  function doing(it) {
    const { kind, what } = it.waits;
    if (it.asks) return it.asks === 1 ? "asks for a decision" : `asks for ${it.asks} decisions`;
    if (kind === "limit") return what === "turn" ? "waits for its turn" : `parked: ${text.words(what)}`;
    if (kind === "provider") return `waits: ${text.words(what)}`;
    if (kind === "retry") return `tries again: ${text.words(what)}`;
    if (kind === "agent") return text.plural(Number(what) || 0, "sub-agent");
    if (kind === "tool" && what) return `runs ${what}`;
    if (it.state === "running" && 0 < it.step) return record.STEPS[it.step - 1];
    return it.queued ? `${text.words(it.state)}, ${it.queued} queued` : text.words(it.state);
  }

  function tone(it) {
    if (it.asks) return "asks";
    if (["limit", "provider", "retry"].includes(it.waits.kind) || it.state === "parked") return "waits";
    return it.state === "running" ? "runs" : "rests";
  }

  function update(node, it) {
    const { dots, title, when, state, facts } = node.parts;
    node.dataset.tone = tone(it);
    dom.paintDots(dots, it.step || 0, tone(it));
    dom.say(title, text.line(it.title, 60));
    dom.say(when, it.since ? text.ago(it.since) : "");
    dom.say(state, text.line(doing(it), 60));
    const parts = [it.tenant, it.model, it.cost ? text.money(it.cost) : ""].filter(Boolean);
    dom.say(facts, text.line(parts.join(" · "), 60));
    dom.attribute(node, "title", `${it.title}\n${it.id}`);
  }

  /** Whether every word is in a session's texts, or begins its id: the middle of an id fits by chance. */
  function matches(it, words, state) {
    if (state && it.state !== state) return false;
    return words.every((word) => it.haystack.includes(word) || it.id.startsWith(word));
  }

  /** The list in its elements; `choose(id)` opens a session. */
  function mount({ list, filter, state, tally, empty }, choose, noun = "session") {
    let all = [];
    let selected;
    let failure = "";
    let isLoading = true;
    const rows = virtualList.create(list, {
      height: ROW,
      keyOf: (it) => it.id,
      make: row,
      update,
      choose: (it) => choose(it.id),
    });

    function states() {
      const found = [...new Set(all.map((it) => it.state))].sort((a, b) => (ORDER[a] ?? 9) - (ORDER[b] ?? 9));
      const wanted = ["", ...found];
      if (state.dataset.shown === wanted.join()) return;
      const kept = state.value;
      state.dataset.shown = wanted.join();
      dom.replace(
        state,
        wanted.map((it) => dom.el("option", { value: it }, it === "" ? "All states" : text.words(it))),
      );
      state.value = wanted.includes(kept) ? kept : "";
    }

    function paint() {
      states();
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      const shown = all.filter((it) => matches(it, words, state.value));
      rows.show(shown, selected);
      dom.say(
        tally,
        shown.length === all.length
          ? text.plural(all.length, noun)
          : `${text.count(shown.length)} of ${text.plural(all.length, noun)}`,
      );
      list.hidden = shown.length === 0;
      empty.hidden = shown.length !== 0;
      if (failure) dom.say(empty, failure);
      else if (isLoading) dom.say(empty, "Loading sessions…");
      else
        dom.say(
          empty,
          all.length ? `No ${noun} fits the filter.` : `No ${noun} yet. Start one, and it appears here.`,
        );
    }

    filter.addEventListener("input", paint);
    state.addEventListener("change", paint);
    return {
      show(next, id) {
        isLoading = false;
        failure = "";
        all = [...next].sort((a, b) => rank(a) - rank(b) || b.since - a.since || (a.id < b.id ? 1 : -1));
        selected = id;
        paint();
      },
      select(id) {
        selected = id;
        paint();
      },
      fail(detail) {
        if (all.length === 0) failure = detail;
        isLoading = false;
        paint();
      },
      rows: rows.rows,
    };
  }

  function rank(it) {
    return it.asks ? 0 : it.state === "running" ? 1 : it.state === "parked" ? 2 : 3;
  }

  return { mount, doing, tone };
})();
