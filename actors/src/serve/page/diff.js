// The lines that an edit takes away and adds, so that a person can judge it.
"use strict";

const diff = (() => {
  // Above this many pairs of lines the middle is shown as taken away and added whole.
  const MAX_PAIRS = 250_000;
  // Lines shown; more are counted.
  const MAX_LINES = 400;
  const CONTEXT = 3;

  /** Lines of both texts in order: `same`, `gone` or `new`. */
  function lines(before, after) {
    const a = before === "" ? [] : before.split("\n");
    const b = after === "" ? [] : after.split("\n");
    let head = 0;
    while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
    let tail = 0;
    while (
      tail < a.length - head &&
      tail < b.length - head &&
      a[a.length - 1 - tail] === b[b.length - 1 - tail]
    )
      tail += 1;
    const middle = between(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
    return [...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)];
  }

  function same(line) {
    return { kind: "same", line };
  }

  /** By the longest common subsequence, if that is affordable. */
  function between(a, b) {
    if (MAX_PAIRS < a.length * b.length)
      return [...a.map((line) => ({ kind: "gone", line })), ...b.map((line) => ({ kind: "new", line }))];
    const width = b.length + 1;
    const longest = new Uint32Array((a.length + 1) * width);
    for (let i = a.length - 1; 0 <= i; i -= 1) {
      for (let j = b.length - 1; 0 <= j; j -= 1) {
        const at = i * width + j;
        longest[at] =
          a[i] === b[j] ? longest[at + width + 1] + 1 : Math.max(longest[at + width], longest[at + 1]);
      }
    }
    const found = [];
    let i = 0;
    let j = 0;
    while (i < a.length || j < b.length) {
      if (i < a.length && j < b.length && a[i] === b[j]) {
        found.push(same(a[i]));
        i += 1;
        j += 1;
      } else if (
        j === b.length ||
        (i < a.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])
      ) {
        found.push({ kind: "gone", line: a[i] });
        i += 1;
      } else {
        found.push({ kind: "new", line: b[j] });
        j += 1;
      }
    }
    return found;
  }

  /** Leaves out what is the same and far from a change. */
  function hunks(all) {
    const near = new Uint8Array(all.length);
    all.forEach((it, at) => {
      if (it.kind === "same") return;
      near.fill(1, Math.max(0, at - CONTEXT), at + CONTEXT + 1);
    });
    const shown = [];
    let skipped = 0;
    all.forEach((it, at) => {
      if (near[at]) {
        if (skipped) shown.push({ kind: "skip", line: text.plural(skipped, "line") });
        skipped = 0;
        shown.push(it);
      } else skipped += 1;
    });
    if (skipped) shown.push({ kind: "skip", line: text.plural(skipped, "line") });
    return shown;
  }

  const SIGN = { same: " ", gone: "−", new: "+", skip: "⋯" };
  const SPOKEN = { gone: "removed: ", new: "added: " };

  function view(before, after) {
    const all = hunks(lines(before, after));
    const shown = all.slice(0, MAX_LINES);
    const rows = shown.map((it) =>
      dom.el(
        "div",
        { class: `line ${it.kind}` },
        dom.el("span", { class: "sign", "aria-hidden": "true" }, SIGN[it.kind]),
        SPOKEN[it.kind] && dom.el("span", { class: "spoken" }, SPOKEN[it.kind]),
        dom.el("span", { class: "code" }, it.line.slice(0, 2000)),
      ),
    );
    if (shown.length < all.length)
      rows.push(dom.el("div", { class: "line skip" }, `${text.count(all.length - shown.length)} more lines`));
    return dom.el("div", { class: "diff", tabindex: "0", role: "group", "aria-label": "Changes" }, rows);
  }

  function string(value) {
    return typeof value === "string" ? value : undefined;
  }

  /** What a call would change, if its input says that; nothing for other calls. */
  function ofCall(tool, input) {
    if (input === null || typeof input !== "object") return undefined;
    const content = string(input.content) ?? string(input.file_text);
    if (string(input.old_string) !== undefined && string(input.new_string) !== undefined)
      return view(input.old_string, input.new_string);
    if (Array.isArray(input.edits)) {
      const edits = input.edits
        .slice(0, 20)
        .filter((it) => string(it?.old_string) !== undefined && string(it?.new_string) !== undefined);
      return edits.length
        ? dom.el(
            "div",
            { class: "diffs" },
            edits.map((it) => view(it.old_string, it.new_string)),
          )
        : undefined;
    }
    if (content !== undefined && /write|create/i.test(tool)) return view("", content);
    // What a cell of a notebook holds so far is not in the input.
    const source = string(input.new_source);
    if (source !== undefined && input.edit_mode !== "delete" && string(input.notebook_path) !== undefined)
      return view("", source);
    return undefined;
  }

  return { lines, hunks, view, ofCall };
})();
