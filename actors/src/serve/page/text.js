// Turns values into text for people.
//
// Everything that the page shows may come from a hostile model, tool or file. `visible` is the one way
// to the screen: characters that hide, reorder or end text are shown by name instead of taking effect.
"use strict";

const text = (() => {
  // Controls but line feed and tab; soft hyphen; marks, embeddings, overrides and isolates of
  // direction; zero width space, word joiner and its invisible kin; line and paragraph separators;
  // the byte order mark; interlinear notes; tags and the other format characters beyond the BMP.
  const HIDDEN =
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}]/gu;
  // More combining marks on one character than any language has.
  const PILED = /(\p{M}{6})\p{M}+/gu;

  function name(character) {
    const code = character.codePointAt(0);
    if (code === 0x0d) return "␍";
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    if (code === 0x7f) return "␡";
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  }

  /** The text with every hidden character shown by its name; lines stay lines. */
  function visible(value) {
    const given = typeof value === "string" ? value : String(value ?? "");
    return given.replaceAll("\r\n", "\n").replace(HIDDEN, name).replace(PILED, "$1…");
  }

  /** The first `most` characters on one line. */
  function line(value, most = 160) {
    const given = typeof value === "string" ? value : String(value ?? "");
    const one = given
      .slice(0, most * 4)
      .replace(/\s+/g, " ")
      .trim();
    const characters = Array.from(one.slice(0, most * 2));
    return characters.length <= most && given.length <= most * 4
      ? one
      : `${characters.slice(0, most).join("")}…`;
  }

  const grouped = new Intl.NumberFormat("en");

  function count(value) {
    return grouped.format(Number.isFinite(value) ? value : 0);
  }

  /** Tokens in at most four digits: 812, 6.3k, 168k, 1.2M. */
  function tokens(value) {
    const n = Number.isFinite(value) ? value : 0;
    if (n < 1000) return String(Math.round(n));
    if (n < 99_950) return `${(n / 1000).toFixed(1).replace(/\.0$/, "")}k`;
    if (n < 999_500) return `${Math.round(n / 1000)}k`;
    return `${(n / 1e6).toFixed(1).replace(/\.0$/, "")}M`;
  }

  /** US dollars of an amount in millionths of a millionth of a dollar. */
  function money(value) {
    if (!Number.isFinite(value)) return "–";
    const dollars = value / 1e12;
    if (dollars === 0) return "$0";
    if (dollars < 0.0001) return "<$0.0001";
    return `$${dollars.toFixed(dollars < 0.1 ? 4 : 2)}`;
  }

  function duration(ms) {
    if (!Number.isFinite(ms) || ms < 0) return "–";
    if (ms < 1) return "<1 ms";
    if (ms < 1000) return `${Math.round(ms)} ms`;
    if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
    const minutes = Math.floor(ms / 60_000);
    if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`;
    const hours = Math.floor(minutes / 60);
    return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d`;
  }

  /** How long ago a moment was, coarse enough not to flicker. */
  function ago(at, now = Date.now()) {
    const ms = now - at;
    if (!Number.isFinite(ms)) return "";
    if (ms < 1500) return "now";
    if (ms < 60_000) return `${Math.round(ms / 1000)} s`;
    if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min`;
    if (ms < 172_800_000) return `${Math.floor(ms / 3_600_000)} h`;
    return `${Math.floor(ms / 86_400_000)} d`;
  }

  function clock(at) {
    const date = new Date(at);
    return Number.isNaN(date.getTime()) ? "" : date.toLocaleTimeString("en-GB");
  }

  /** A name of the wire as words: `no_pending_tools` is "no pending tools". */
  function words(code) {
    return String(code ?? "").replaceAll("_", " ");
  }

  function bytes(value) {
    const n = Number.isFinite(value) ? value : 0;
    if (n < 1024) return `${n} B`;
    if (n < 1024 * 1024) return `${(n / 1024).toFixed(1)} KiB`;
    return `${(n / 1024 / 1024).toFixed(1)} MiB`;
  }

  function plural(n, one, many = `${one}s`) {
    return `${count(n)} ${n === 1 ? one : many}`;
  }

  /** The last part of an id, which is the one that differs. */
  function shortId(id) {
    const given = String(id ?? "");
    return given.length <= 12 ? given : given.slice(-8);
  }

  /** A value as indented JSON; a value that is nested too deeply is named instead. */
  function json(value) {
    try {
      return JSON.stringify(value, null, 2) ?? "";
    } catch {
      return "[nested too deeply to be shown]";
    }
  }

  return { visible, line, json, count, tokens, money, duration, ago, clock, words, bytes, plural, shortId };
})();
