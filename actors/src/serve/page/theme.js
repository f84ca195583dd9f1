// Light or dark: as the system has it, or as the person chose. Loaded before anything is drawn.
"use strict";

const theme = (() => {
  const KEY = "ennead.theme";
  const NEXT = { system: "light", light: "dark", dark: "system" };
  let memory;

  function get() {
    try {
      return localStorage.getItem(KEY) ?? memory ?? "system";
    } catch {
      // A file that is opened offline may have no storage.
      return memory ?? "system";
    }
  }

  function set(value) {
    memory = value;
    try {
      localStorage.setItem(KEY, value);
    } catch {
      // It holds until the page is closed.
    }
    apply();
  }

  function apply() {
    const value = get();
    if (value === "light" || value === "dark") document.documentElement.dataset.theme = value;
    else delete document.documentElement.dataset.theme;
  }

  apply();
  return { get, next: () => set(NEXT[get()] ?? "system") };
})();
