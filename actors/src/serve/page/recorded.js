// A transcript of the past that lies in the page itself. Nothing of it runs: it is read as text, line by
// line, by the same code that reads the lines of a server.
"use strict";

const recorded = (() => {
  /** The transcripts in the page, the main one first; nothing where the page is that of a server. */
  function read() {
    const element = document.getElementById("recorded");
    if (!element) return undefined;
    let data;
    try {
      data = JSON.parse(element.textContent);
    } catch {
      return [];
    }
    const all = Array.isArray(data.transcripts) ? data.transcripts : [];
    return all.map((it, at) => {
      const rec = record.create();
      rec.leftOut = Number(it.left_out) || 0;
      for (const line of Array.isArray(it.lines) ? it.lines : [])
        record.add(rec, typeof line === "string" ? line : text.json(line));
      const title = at === 0 ? String(it.name ?? "Transcript") : `${it.description || "Sub-agent"}`;
      return {
        id: String(it.name ?? at),
        title,
        agent: it.agent,
        rec,
        now: live.create(),
        isRecorded: true,
        isLoading: false,
        failure: "",
      };
    });
  }

  /** What the list shows of one. */
  function listed(it) {
    const { rec } = it;
    const last = rec.turns.at(-1);
    return {
      id: it.id,
      title: it.title,
      tenant: it.agent ? "sub-agent" : "",
      state: rec.lastRun?.ended ? text.words(rec.lastRun.reason) : "no end",
      model: rec.model,
      directory: rec.cwd,
      cost: rec.totals.isPriced ? rec.totals.cost : undefined,
      waits: { kind: "", what: "" },
      queued: 0,
      since: 0,
      step: last ? (last.steps.at(-1)?.n ?? 0) : 0,
      asks: 0,
      haystack: `${it.title} ${rec.model}`.toLowerCase(),
    };
  }

  /** The sub-agents of a recorded session as a tree of what once lived. */
  function tree(all) {
    return all.map((it, at) => ({
      id: it.id,
      parent: at === 0 ? "" : all[0].id,
      kind: at === 0 ? "session" : "sub-agent",
      name: it.title,
      step: 0,
      mailbox: 0,
      waiting: "",
      since: 0,
    }));
  }

  return { read, listed, tree };
})();
