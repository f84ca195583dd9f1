// Makes and changes elements. Text reaches the page by `textContent` alone, made visible before.
"use strict";

const dom = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const kept = new WeakMap();

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value === undefined || value === null || value === false) continue;
      if (name === "on") {
        for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
      } else if (name === "data") {
        for (const [key, it] of Object.entries(value)) node.dataset[key] = it;
      } else if (name === "value") {
        node.value = value;
      } else {
        node.setAttribute(name, value === true ? "" : text.visible(value));
      }
    }
    append(node, children);
    return node;
  }

  function append(node, children) {
    for (const child of children.flat(3)) {
      if (child === undefined || child === null || child === false) continue;
      node.append(child instanceof Node ? child : text.visible(child));
    }
  }

  /** An element with attributes, listeners (`on`), data attributes (`data`) and children. */
  function el(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
  }

  function svg(tag, attributes, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
  }

  /** Replaces the text of a node if it is another one. */
  function say(node, value) {
    const shown = text.visible(value);
    if (node.textContent !== shown) node.textContent = shown;
  }

  function attribute(node, name, value) {
    if (value === undefined || value === null || value === false) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, text.visible(value));
  }

  function replace(node, ...children) {
    node.replaceChildren();
    append(node, children);
  }

  /**
   * Makes the children of `parent` those of `items`, in order. A child whose key stays is kept, and
   * with it focus, selection and what is folded out.
   */
  function keyed(parent, items, keyOf, make, update) {
    const before = kept.get(parent) ?? new Map();
    const after = new Map();
    for (const item of items) {
      const key = keyOf(item);
      if (after.has(key)) continue;
      const node = before.get(key) ?? make(item);
      before.delete(key);
      after.set(key, node);
      update?.(node, item);
    }
    for (const gone of before.values()) gone.remove();
    let place = parent.firstChild;
    for (const node of after.values()) {
      if (node === place) place = place.nextSibling;
      else parent.insertBefore(node, place);
    }
    kept.set(parent, after);
  }

  /** One tab stop for a row of controls; arrows move within it. */
  function roving(container, selector, { vertical = false, pick } = {}) {
    const [back, on] = vertical ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
    container.addEventListener("keydown", (event) => {
      const all = [...container.querySelectorAll(selector)].filter((it) => !it.hidden && !it.disabled);
      const at = all.indexOf(event.target.closest(selector));
      if (at < 0) return;
      const to = { [back]: at - 1, [on]: at + 1, Home: 0, End: all.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = all[Math.max(0, Math.min(all.length - 1, to))];
      for (const it of all) it.tabIndex = it === next ? 0 : -1;
      next.focus();
      pick?.(next);
    });
  }

  let spoken = 0;
  /** Says something to a screen reader, after what it is saying now. */
  function announce(message) {
    const region = document.getElementById("announcer");
    if (!region) return;
    // Two equal texts in a row would be one.
    spoken += 1;
    region.textContent = text.visible(message) + (spoken % 2 ? "" : "\u00a0");
  }

  /** Nine dots for the nine steps: those behind, the one under way, those to come. */
  function dots(step, state) {
    const circles = [];
    for (let n = 1; n <= 9; n += 1) {
      const cx = 3 + ((n - 1) % 3) * 6;
      const cy = 3 + Math.floor((n - 1) / 3) * 6;
      circles.push(svg("circle", { cx, cy, r: 2 }));
    }
    const drawn = svg("svg", { class: "dots", viewBox: "0 0 18 18", "aria-hidden": "true" }, circles);
    paintDots(drawn, step, state);
    return drawn;
  }

  function paintDots(drawn, step, state) {
    const shown = `${step}/${state}`;
    if (drawn.dataset.shown === shown) return;
    drawn.dataset.shown = shown;
    drawn.dataset.state = state;
    [...drawn.children].forEach((circle, at) => {
      const n = at + 1;
      circle.setAttribute("class", n < step ? "past" : n === step ? "now" : "ahead");
    });
  }

  /** A text of any length: its beginning, and a button that shows more of it, a piece at a time. */
  function longText(value, { className = "prose", most = 6000 } = {}) {
    const whole = String(value ?? "");
    const body = el("div", { class: className, dir: "auto" });
    let shown = 0;
    const more = el("button", { type: "button", class: "quiet more", on: { click: extend } });
    function extend() {
      shown = Math.min(whole.length, shown + (shown === 0 ? most : 40_000));
      body.textContent = text.visible(whole.slice(0, shown));
      more.hidden = shown === whole.length;
      say(more, `Show more (${text.bytes(whole.length - shown)} left)`);
    }
    extend();
    return whole.length <= most ? body : el("div", null, body, more);
  }

  return { el, append, svg, say, attribute, replace, keyed, roving, announce, dots, paintDots, longText };
})();
