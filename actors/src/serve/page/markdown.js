// Answers of a model as they are meant to look: a small part of Markdown, made of elements.
//
// The text is hostile. It becomes elements of the kinds below and text, never markup, and the work is linear in
// its length: what a line or a paragraph may hold has a bound, and so has the number of elements.
"use strict";

const markdown = (() => {
  // Elements of one text; the rest of it is shown as it is.
  const MAX_ELEMENTS = 3000;
  // Characters of a paragraph in which marks are looked for.
  const MAX_INLINE = 20_000;
  const MAX_DEPTH = 8;
  const MAX_TITLE = 500;
  const MAX_COLUMNS = 40;
  // Characters of a streamed answer that are made anew with each of its pieces: of the block that is being written.
  const MAX_TAIL = 8000;
  const MAX_STREAMED = 60_000;

  const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
  const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
  const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
  const ITEM = /^( {0,40})([-*+]|\d{1,9}[.)])[ \t]+(.*)$/;
  const DELIMITERS = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*){0,60}\|?[ \t]*$/;
  // At any place: an escape, a run of backticks, a link, an address, a mark of emphasis, or other text.
  const PIECE =
    /\\([!-/:-@[-`{-~])|(`+)|(!?)\[([^[\]\n]{1,500})\]\(<?([^()<>\s]{1,2000})>?(?:[ \t]+"[^"\n]{0,500}")?\)|<?(https:\/\/[^\s<>()[\]"'`*|\\]{1,2000})>?|(\*\*|__|~~|\*|_)|[^\\`![<h*_~]+|[^]/gy;
  const TAGS = { "**": "strong", __: "strong", "*": "em", _: "em", "~~": "del" };

  /** The address of a page, if it is one that may be followed by a click. */
  function followed(address) {
    try {
      const url = new URL(address);
      return url.protocol === "https:" && !url.username && !url.password ? url : undefined;
    } catch {
      return undefined;
    }
  }

  /** A link says where it leads. One that may not be followed is text. */
  function link(label, address, left) {
    const url = followed(address);
    if (!url) return [`${label} (${address})`];
    left.n -= 1;
    const attributes = { href: url.href, rel: "noopener noreferrer nofollow", target: "_blank" };
    const node = dom.el("a", attributes, label);
    return label === address ? [node] : [node, dom.el("span", { class: "where" }, ` (${url.host})`)];
  }

  /** Puts the text of a paragraph into `node`, with what its marks mean. */
  function inline(node, given, left) {
    const source = given.slice(0, MAX_INLINE);
    const open = [{ node }];
    // Runs of backticks of these lengths close nowhere after here.
    const unclosed = new Set();
    // Pieces of text that belong together are one node.
    let plain = "";
    const top = () => open[open.length - 1].node;
    function flush() {
      if (plain) dom.append(top(), [plain]);
      plain = "";
    }
    function say(...parts) {
      for (const part of parts) {
        if (typeof part === "string") plain += part;
        else {
          flush();
          top().append(part);
        }
      }
    }
    PIECE.lastIndex = 0;
    while (PIECE.lastIndex < source.length) {
      const at = PIECE.lastIndex;
      const [whole, escaped, ticks, image, label, address, bare, mark] = PIECE.exec(source);
      const after = PIECE.lastIndex;
      if (left.n <= 0) {
        say(source.slice(at));
        break;
      }
      if (escaped) say(escaped);
      else if (ticks) {
        const end = unclosed.has(ticks.length) ? -1 : closing(source, after, ticks.length);
        if (end < 0) {
          unclosed.add(ticks.length);
          say(ticks);
        } else {
          left.n -= 1;
          say(dom.el("code", null, source.slice(after, end).replace(/^ (.+) $/, "$1")));
          PIECE.lastIndex = end + ticks.length;
        }
      } else if (label) say(...(image ? [`${label} (${address})`] : link(label, address, left)));
      else if (bare) {
        const trimmed = bare.replace(/[.,;:!?]+$/, "");
        say(...link(trimmed, trimmed, left), bare.slice(trimmed.length));
      } else if (mark) emphasis(at, after, mark);
      else say(whole);
    }
    flush();
    while (1 < open.length) dissolve();
    if (given.length > source.length) dom.append(node, [given.slice(MAX_INLINE)]);

    function emphasis(at, after, mark) {
      const before = source[at - 1] ?? " ";
      const next = source[after] ?? " ";
      // Inside of a word an underscore is a letter: `snake_case`.
      const isWord = mark[0] === "_" && /[\p{L}\p{N}]/u.test(before) && /[\p{L}\p{N}]/u.test(next);
      const place = open.findLastIndex((it) => it.mark === mark);
      if (!isWord && 0 < place && !/\s/.test(before)) {
        flush();
        while (place < open.length - 1) dissolve();
        open.pop();
      } else if (!isWord && place < 0 && open.length < MAX_DEPTH && !/\s/.test(next)) {
        flush();
        left.n -= 1;
        const made = dom.el(TAGS[mark]);
        top().append(made);
        open.push({ node: made, mark });
      } else say(mark);
    }

    /** A mark that nothing closes is text. */
    function dissolve() {
      const { node: made, mark } = open.pop();
      made.replaceWith(mark, ...made.childNodes);
    }
  }

  /** Where a run of exactly so many backticks begins, from a place on; -1 if there is none. */
  function closing(source, from, length) {
    for (let at = source.indexOf("`", from); 0 <= at; at = source.indexOf("`", at)) {
      let end = at;
      while (source[end] === "`") end += 1;
      if (end - at === length) return at;
      at = end;
    }
    return -1;
  }

  function cells(line) {
    const inner = line.trim().replace(/^\|/, "").replace(/(^|[^\\])\|$/, "$1");
    return inner
      .split(/(?<!\\)\|/)
      .slice(0, MAX_COLUMNS)
      .map((it) => it.trim().replaceAll("\\|", "|"));
  }

  function isTable(lines, at) {
    const [head, under] = [lines[at], lines[at + 1]];
    return head.includes("|") && under !== undefined && under.includes("-") && DELIMITERS.test(under);
  }

  function begins(lines, at) {
    const line = lines[at];
    return (
      FENCE.test(line) ||
      HEADING.test(line) ||
      RULE.test(line) ||
      ITEM.test(line) ||
      /^ {0,3}>/.test(line) ||
      isTable(lines, at)
    );
  }

  /** Appends to `parent` what the lines mean. */
  function blocks(parent, lines, left) {
    let at = 0;
    while (at < lines.length) {
      if (left.n <= 0) {
        parent.append(dom.el("p", null, lines.slice(at).join("\n")));
        return;
      }
      left.n -= 1;
      const line = lines[at];
      const fence = FENCE.exec(line);
      const heading = HEADING.exec(line);
      if (!line.trim()) at += 1;
      else if (fence) at = code(parent, lines, at, fence);
      else if (heading) {
        const level = Math.min(6, heading[1].length + 2);
        const node = dom.el("p", { class: "heading", role: "heading", "aria-level": level });
        // A run of blanks is looked through from each of them, so that of a long line nothing is taken off.
        const title = heading[2].length <= MAX_TITLE ? heading[2].replace(/[ \t]+#+[ \t]*$/, "") : heading[2];
        inline(node, title, left);
        parent.append(node);
        at += 1;
      } else if (RULE.test(line)) {
        parent.append(dom.el("hr"));
        at += 1;
      } else if (ITEM.test(line)) at = list(parent, lines, at, left);
      else if (/^ {0,3}>/.test(line)) at = quote(parent, lines, at, left);
      else if (isTable(lines, at)) at = table(parent, lines, at, left);
      else {
        const from = at;
        do at += 1;
        while (at < lines.length && lines[at].trim() && !begins(lines, at));
        const node = dom.el("p");
        inline(node, lines.slice(from, at).join("\n"), left);
        parent.append(node);
      }
    }
  }

  function code(parent, lines, at, [, fence, name]) {
    let end = at + 1;
    const isEnd = (line) => line.trim().length >= fence.length && line.trim() === fence[0].repeat(line.trim().length);
    while (end < lines.length && !isEnd(lines[end])) end += 1;
    const inside = lines.slice(at + 1, end).join("\n");
    const attributes = { class: "code-block", tabindex: 0, "aria-label": `Code ${text.line(name.trim(), 20)}` };
    parent.append(dom.el("pre", { ...attributes, role: "group" }, inside));
    return end + 1;
  }

  function quote(parent, lines, at, left) {
    const from = at;
    while (at < lines.length && /^ {0,3}>/.test(lines[at])) at += 1;
    const node = dom.el("blockquote");
    inline(node, lines.slice(from, at).map((it) => it.replace(/^ {0,3}> ?/, "")).join("\n"), left);
    parent.append(node);
    return at;
  }

  function list(parent, lines, at, left) {
    const open = [];
    while (at < lines.length && 0 < left.n) {
      const item = ITEM.exec(lines[at]);
      if (!item || RULE.test(lines[at])) break;
      const indent = item[1].length;
      while (open.length && indent < open[open.length - 1].indent) open.pop();
      const isOrdered = /\d/.test(item[2]);
      let last = open[open.length - 1];
      if (!last || (last.indent + 1 < indent && open.length < MAX_DEPTH)) {
        const node = dom.el(isOrdered ? "ol" : "ul", isOrdered ? { start: parseInt(item[2], 10) } : null);
        (last?.node.lastChild ?? parent).append(node);
        open.push((last = { node, indent }));
      }
      const words = [item[3]];
      at += 1;
      // What is indented further belongs to it, as long as it is no item of its own.
      while (at < lines.length && /^ {2,}\S/.test(lines[at]) && !begins(lines, at)) words.push(lines[at++].trim());
      // An empty line between items separates nothing.
      if (at + 1 < lines.length && !lines[at].trim() && ITEM.test(lines[at + 1])) at += 1;
      left.n -= 1;
      const node = dom.el("li");
      inline(node, words.join("\n"), left);
      last.node.append(node);
    }
    return at;
  }

  function table(parent, lines, at, left) {
    const head = cells(lines[at]);
    const row = (tag, given) =>
      dom.el(
        "tr",
        null,
        head.map((_, n) => {
          left.n -= 1;
          const node = dom.el(tag);
          inline(node, given[n] ?? "", left);
          return node;
        }),
      );
    const body = dom.el("tbody");
    const made = dom.el("table", null, dom.el("thead", null, row("th", head)), body);
    at += 2;
    while (at < lines.length && lines[at].includes("|") && 0 < left.n) body.append(row("td", cells(lines[at++])));
    parent.append(dom.el("div", { class: "table", tabindex: 0, role: "group", "aria-label": "Table" }, made));
    return at;
  }

  const budget = () => ({ n: MAX_ELEMENTS });
  const linesOf = (value) => value.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n");

  /** Makes `node` show a text. */
  function fill(node, value) {
    node.replaceChildren();
    blocks(node, linesOf(String(value ?? "")), budget());
  }

  /** A text of any length: its beginning, and a button that shows more of it. */
  function long(value, most = 20_000) {
    const whole = String(value ?? "");
    const body = dom.el("div", { class: "prose md", dir: "auto" });
    let shown = 0;
    const more = dom.el("button", { type: "button", class: "quiet more", on: { click: extend } });
    function extend() {
      shown = Math.min(whole.length, shown + most);
      fill(body, whole.slice(0, shown));
      more.hidden = shown === whole.length;
      dom.say(more, `Show more (${text.bytes(whole.length - shown)} left)`);
    }
    extend();
    return whole.length <= most ? body : dom.el("div", null, body, more);
  }

  /** Where the last block begins that nothing can change any more: after an empty line outside of code and lists. */
  function settled(value, from) {
    let place = from;
    let fence;
    for (let at = from; at < value.length; ) {
      const found = value.indexOf("\n", at);
      if (found < 0) break;
      const line = value.slice(at, found);
      at = found + 1;
      const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
      if (fence) {
        const isEnd = mark && mark[0] === fence[0] && fence.length <= mark.length && line.trim() === mark;
        if (!isEnd) continue;
        fence = undefined;
        place = at;
      } else if (mark && FENCE.test(line)) fence = mark;
      else if (!line.trim()) {
        // The next line is known only when it is whole: a dash may become an item of the list before it.
        const end = value.indexOf("\n", at);
        const next = end < 0 ? "" : value.slice(at, end);
        if (/^\S/.test(next) && !ITEM.test(next)) place = at;
      }
    }
    return place;
  }

  /** An answer that streams into `node`: what is settled stays, and its last block is made anew. */
  function stream(node) {
    let done = "";
    let shown;
    const before = dom.el("div");
    const tail = dom.el("div");
    let left = budget();
    return (value) => {
      if (value === shown) return;
      shown = value;
      if (!node.firstChild || !value.startsWith(done)) {
        done = "";
        left = budget();
        before.replaceChildren();
        node.replaceChildren(before, tail);
      }
      if (MAX_STREAMED < value.length) {
        // The transcript has it soon.
        before.replaceChildren();
        done = "";
        tail.replaceChildren(text.visible(value.slice(-MAX_STREAMED)));
        return;
      }
      const place = settled(value, done.length);
      if (done.length < place) {
        blocks(before, linesOf(value.slice(done.length, place)), left);
        done = value.slice(0, place);
      }
      const rest = value.slice(place);
      if (rest.length <= MAX_TAIL) fill(tail, rest);
      else tail.replaceChildren(text.visible(rest));
    };
  }

  return { fill, long, stream };
})();
