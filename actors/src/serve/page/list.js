// A list of any length of which only the rows in sight are elements. It is one tab stop; the arrows move
// within it, and a screen reader is given the position and the length.
"use strict";

const virtualList = (() => {
  // Rows above and below those in sight, so that a quick scroll shows no gap.
  const SPARE = 6;

  /**
   * @param scroller element that scrolls, with the role `listbox`
   * @param height of each row in pixels
   * @param make makes an empty row; update(row, item) shows an item in it
   */
  function create(scroller, { height, keyOf, make, update, choose }) {
    const inner = dom.el("div", { class: "rows", role: "presentation" });
    scroller.append(inner);
    let items = [];
    let active = 0;
    let chosen;
    const pool = [];
    let isDue = false;

    function paint() {
      isDue = false;
      const inSight = Math.ceil(scroller.clientHeight / height) + 1;
      const from = Math.max(
        0,
        Math.min(Math.floor(scroller.scrollTop / height) - SPARE, items.length - inSight),
      );
      const n = Math.max(0, Math.min(items.length - from, inSight + 2 * SPARE));
      while (pool.length < n) {
        const row = make();
        row.setAttribute("role", "option");
        row.classList.add("row");
        row.style.height = `${height}px`;
        row.addEventListener("click", () => pick(Number(row.dataset.at)));
        pool.push(row);
        inner.append(row);
      }
      while (n < pool.length) pool.pop().remove();
      for (let i = 0; i < n; i += 1) {
        // A row keeps its place in the pool while its item stays in sight, so scrolling moves few of them.
        const at = from + i;
        const row = pool[at % n];
        const item = items[at];
        row.id = `${scroller.id}-${at}`;
        row.dataset.at = String(at);
        row.style.transform = `translateY(${at * height}px)`;
        dom.attribute(row, "aria-posinset", at + 1);
        dom.attribute(row, "aria-setsize", items.length);
        dom.attribute(row, "aria-selected", keyOf(item) === chosen ? "true" : "false");
        row.classList.toggle("active", at === active);
        update(row, item);
      }
      inner.style.height = `${items.length * height}px`;
      dom.attribute(scroller, "aria-activedescendant", items.length ? `${scroller.id}-${active}` : null);
    }

    function later() {
      if (isDue) return;
      isDue = true;
      requestAnimationFrame(paint);
    }

    function reveal() {
      const top = active * height;
      if (top < scroller.scrollTop) scroller.scrollTop = top;
      else if (scroller.scrollTop + scroller.clientHeight < top + height)
        scroller.scrollTop = top + height - scroller.clientHeight;
      // The active row must be an element by the time a screen reader asks for it.
      paint();
    }

    function pick(at) {
      if (!items[at]) return;
      active = at;
      choose(items[at]);
      later();
    }

    scroller.addEventListener("scroll", later, { passive: true });
    new ResizeObserver(later).observe(scroller);
    scroller.addEventListener("keydown", (event) => {
      const page = Math.max(1, Math.floor(scroller.clientHeight / height) - 1);
      const to = {
        ArrowDown: active + 1,
        ArrowUp: active - 1,
        PageDown: active + page,
        PageUp: active - page,
        Home: 0,
        End: items.length - 1,
      }[event.key];
      if (to !== undefined) {
        event.preventDefault();
        active = Math.max(0, Math.min(items.length - 1, to));
        reveal();
      } else if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        pick(active);
      }
    });

    return {
      show(next, selected) {
        const key = items[active] && keyOf(items[active]);
        const wasChosen = chosen;
        items = next;
        chosen = selected;
        // The active row stays with its item when others come before it.
        const found = items.findIndex((it) => keyOf(it) === (selected !== wasChosen ? selected : key));
        active = found < 0 ? Math.max(0, Math.min(active, items.length - 1)) : found;
        paint();
      },
      rows: () => pool.length,
    };
  }

  return { create };
})();
