// Shortcuts of one key. They can be switched off, since they get in the way of speech input.
"use strict";

const keys = (() => {
  const KEY = "ennead.single-keys";

  function isOn() {
    try {
      return localStorage.getItem(KEY) !== "off";
    } catch {
      return true;
    }
  }

  /** Runs the action of a key; `all` has pairs of a key and what it does, in words and as a function. */
  function mount(all, { list, box, toggle }) {
    dom.replace(
      list,
      all
        .filter((it) => it.words)
        .map((it) =>
          dom.el(
            "div",
            null,
            dom.el("dt", null, dom.el("kbd", null, it.shown ?? it.key)),
            dom.el("dd", null, it.words),
          ),
        ),
    );
    toggle.checked = isOn();
    toggle.addEventListener("change", () => {
      try {
        localStorage.setItem(KEY, toggle.checked ? "on" : "off");
      } catch {
        // It holds until the page is closed.
      }
    });
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented)
        return;
      const isWriting = event.target.closest?.("input, textarea, select, [contenteditable]");
      if (event.key === "Escape" && isWriting) {
        event.target.blur();
        return;
      }
      if (isWriting || document.querySelector("dialog[open]") || !toggle.checked) return;
      const found = all.find((it) => it.key === event.key);
      if (!found) return;
      event.preventDefault();
      found.act();
    });
    return { open: () => box.showModal() };
  }

  return { mount };
})();
