// The actors as a tree that lives and dies: kind, step, mailbox, what each waits for and since when.
"use strict";

const actors = (() => {
  // An actor that has ended stays in sight for so long, struck out.
  const LINGER = 4000;
  // Rows that are elements; the tree of a busy server is larger than anybody reads.
  const MAX_ROWS = 1500;

  /** The tree in the order of reading, with the depth of each and whether it has children. */
  function flat(all, folded) {
    const known = new Set(all.map((it) => it.id));
    const children = new Map();
    for (const it of all) {
      const parent = known.has(it.parent) && it.parent !== it.id ? it.parent : "";
      if (!children.has(parent)) children.set(parent, []);
      children.get(parent).push(it);
    }
    // Sessions before what serves them all.
    for (const below of children.values())
      below.sort((a, b) => (a.kind !== "session") - (b.kind !== "session"));
    const rows = [];
    const waiting = (children.get("") ?? []).map((it) => [it, 1]).reverse();
    while (waiting.length && rows.length < MAX_ROWS) {
      const [it, level] = waiting.pop();
      const below = children.get(it.id) ?? [];
      rows.push({ ...it, level, hasChildren: below.length > 0, isFolded: folded.has(it.id) });
      if (!folded.has(it.id)) for (const child of [...below].reverse()) waiting.push([child, level + 1]);
    }
    return rows;
  }

  function mount(panel, { choose } = {}) {
    const tally = dom.el("p", { class: "muted" });
    const tree = dom.el("ul", { class: "tree", role: "tree", "aria-label": "Actors" });
    const empty = dom.el(
      "p",
      { class: "empty" },
      "No actor is alive here. A passive session has none; it wakes with the next message.",
    );
    panel.append(tally, tree, empty);
    const folded = new Set();
    const gone = new Map();
    let before = new Map();
    let active = "";
    let last = [];
    let timer;

    function row() {
      const parts = {
        twig: dom.el("span", { class: "twig", "aria-hidden": "true" }),
        dots: dom.dots(0, "rests"),
        name: dom.el("span", { class: "name" }),
        kind: dom.el("span", { class: "kind" }),
        waits: dom.el("span", { class: "waits" }),
        mailbox: dom.el("span", { class: "mailbox" }),
      };
      const node = dom.el(
        "li",
        { role: "treeitem", tabindex: "-1" },
        parts.twig,
        parts.dots,
        dom.el(
          "span",
          { class: "label" },
          dom.el("span", { class: "one" }, parts.name, parts.kind),
          parts.waits,
        ),
        parts.mailbox,
      );
      node.parts = parts;
      node.addEventListener("click", (event) => {
        active = node.dataset.id;
        if (event.target.closest(".twig") && node.item.hasChildren) fold(node.item);
        else choose?.(node.item);
        paint();
        focusActive();
      });
      return node;
    }

    function fold(it) {
      if (folded.has(it.id)) folded.delete(it.id);
      else folded.add(it.id);
    }

    function update(node, it) {
      node.item = it;
      node.dataset.id = it.id;
      node.dataset.state = it.ended
        ? "ended"
        : it.failed
          ? "failed"
          : it.waiting && it.waiting !== "a prompt"
            ? "waits"
            : it.step
              ? "runs"
              : "rests";
      node.style.setProperty("--level", String(Math.min(it.level, 12)));
      node.tabIndex = it.id === active ? 0 : -1;
      dom.attribute(node, "aria-level", it.level);
      dom.attribute(node, "aria-expanded", it.hasChildren ? String(!it.isFolded) : null);
      const { twig, dots, name, kind, waits, mailbox } = node.parts;
      dom.say(twig, it.hasChildren ? (it.isFolded ? "▸" : "▾") : "");
      dots.toggleAttribute("hidden", !it.step);
      dots.style.display = it.step ? "" : "none";
      dom.paintDots(dots, it.step || 0, node.dataset.state);
      dom.say(name, text.line(it.name || it.kind, 60));
      dom.say(kind, it.name && it.kind !== it.name ? text.words(it.kind) : "");
      const doing = it.ended
        ? "ended"
        : it.waiting
          ? `waits for ${text.words(it.waiting)}${it.since ? `, ${text.ago(it.since)}` : ""}`
          : it.step
            ? record.STEPS[it.step - 1]
            : "";
      dom.say(waits, text.line(doing, 100));
      mailbox.hidden = !it.mailbox;
      dom.say(mailbox, it.mailbox ? `${it.mailbox}` : "");
      dom.attribute(
        mailbox,
        "title",
        it.mailbox ? text.plural(it.mailbox, "message") + " in the mailbox" : null,
      );
      dom.attribute(
        mailbox,
        "aria-label",
        it.mailbox ? text.plural(it.mailbox, "message") + " waiting" : null,
      );
    }

    function paint() {
      const now = Date.now();
      for (const [id, it] of gone) if (it.ended + LINGER < now) gone.delete(id);
      const rows = flat([...last, ...gone.values()], folded);
      if (!rows.some((it) => it.id === active)) active = rows[0]?.id ?? "";
      dom.keyed(tree, rows, (it) => it.id, row, update);
      tree.hidden = rows.length === 0;
      empty.hidden = rows.length !== 0;
      const queued = last.reduce((sum, it) => sum + (it.mailbox || 0), 0);
      dom.say(
        tally,
        last.length
          ? `${text.plural(last.length, "actor")}, ${text.plural(queued, "message")} in mailboxes${MAX_ROWS <= rows.length ? `; the first ${text.count(MAX_ROWS)} are shown` : ""}`
          : "",
      );
      clearTimeout(timer);
      if (gone.size) timer = setTimeout(paint, LINGER + 50);
    }

    function focusActive() {
      for (const it of tree.children) if (it.dataset.id === active) it.focus();
    }

    tree.addEventListener("keydown", (event) => {
      const all = [...tree.children];
      const at = all.findIndex((it) => it.dataset.id === active);
      const item = all[at]?.item;
      if (!item) return;
      let to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
      if (event.key === "ArrowRight" && item.hasChildren) to = item.isFolded ? at : at + 1;
      if (event.key === "ArrowLeft")
        to = item.hasChildren && !item.isFolded ? at : all.findIndex((it) => it.dataset.id === item.parent);
      const folds =
        (event.key === "ArrowRight" && item.isFolded) ||
        (event.key === "ArrowLeft" && item.hasChildren && !item.isFolded);
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        if (event.key === " " && item.hasChildren) fold(item);
        else choose?.(item);
        paint();
        return;
      }
      if (to === undefined) return;
      event.preventDefault();
      if (folds) fold(item);
      active = all[Math.max(0, Math.min(all.length - 1, to < 0 ? at : to))].dataset.id;
      paint();
      focusActive();
    });

    return {
      /** Shows these actors; those that were there before and are not now fade out. */
      show(next) {
        const after = new Map(next.map((it) => [it.id, it]));
        const now = Date.now();
        for (const [id, it] of before)
          if (!after.has(id)) gone.set(id, { ...it, ended: now, waiting: "", step: 0, mailbox: 0 });
        for (const id of after.keys()) gone.delete(id);
        // Of a tree that is another one altogether nothing lingers.
        if (gone.size > 200) gone.clear();
        before = after;
        last = next;
        paint();
      },
      reset() {
        before = new Map();
        gone.clear();
        last = [];
      },
    };
  }

  return { mount, flat };
})();
