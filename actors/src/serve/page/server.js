// The routes of the server, and their answers as the page holds them.
"use strict";

const server = (() => {
  // Sessions that are loaded; the list says when there are more.
  const MAX_SESSIONS = 2000;
  // Bytes of a transcript that are loaded at first, from its end.
  const TAIL = 4 * 1024 * 1024;

  const path = (id) => `/v1/sessions/${encodeURIComponent(id)}`;

  function session(it) {
    const found = {
      id: String(it.id ?? ""),
      title: String(it.title || it.directory || it.id || ""),
      tenant: String(it.tenant ?? ""),
      state: String(it.state ?? ""),
      model: String(it.model ?? ""),
      directory: String(it.directory ?? ""),
      // Millionths of a millionth of a dollar, as in transcripts.
      cost: Number(it.cost_usd ?? 0) * 1e12,
      isPartial: it.cost_is_partial === true,
      waits: { kind: String(it.waiting_for?.kind ?? ""), what: String(it.waiting_for?.what ?? "") },
      since: Number(it.since ?? it.last_used_at ?? it.created_at ?? 0),
      run: it.run ?? "",
      turn: Number(it.turn ?? 0),
      step: record.STEPS.indexOf(text.words(it.step)) + 1,
      queued: Number(it.queued ?? 0),
      asks: it.waiting_for?.kind === "approval" ? 1 : 0,
    };
    const { title, tenant, state, model, directory, waits } = found;
    found.haystack = [title, tenant, state, model, directory, waits.kind, waits.what]
      .join(" ")
      .toLowerCase();
    return found;
  }

  async function sessions() {
    const found = [];
    let cursor = "";
    do {
      const answer = await api.get(
        `/v1/sessions?limit=200${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`,
      );
      found.push(...answer.sessions.map(session));
      cursor = answer.next ?? "";
    } while (cursor && found.length < MAX_SESSIONS);
    return found;
  }

  function question(it) {
    return {
      id: String(it.id),
      session: String(it.session),
      tenant: String(it.tenant ?? ""),
      tool: String(it.tool),
      input: it.input,
      reason: String(it.reason ?? ""),
      agent: it.agents?.at?.(-1) ?? "",
      suggestions: Array.isArray(it.suggestions) ? it.suggestions.map(String).slice(0, 8) : [],
      expires: Number(it.expires_at ?? 0),
      digest: it.digest,
      epoch: it.epoch,
    };
  }

  async function approvals() {
    return (await api.get("/v1/approvals?limit=200")).approvals.map(question);
  }

  /** Answers a question. The digests say what was seen: for anything else the answer does not hold. */
  function answer(asked, { allow, reason, rule, input }) {
    const body = { allow, digest: asked.digest, epoch: asked.epoch };
    if (!allow && reason) body.reason = reason;
    if (allow && rule) body.rules = [rule];
    if (allow && input) body.input = input;
    return api.post(`/v1/approvals/${encodeURIComponent(asked.id)}`, body);
  }

  const WAITS = {
    prompt: "a prompt",
    model: "the model",
    provider: "the provider",
    tool: "a tool",
    answer: "an answer",
    hook: "a hook",
    disk: "the disk",
  };

  function actor(it) {
    const [session, ...agents] = String(it.session ?? "").split("/");
    return {
      id: String(it.id),
      parent: String(it.parent ?? ""),
      kind: text.words(it.kind),
      name: text.words(it.kind),
      session,
      agent: agents.at(-1)?.replace(/^agent-/, "") ?? "",
      step: record.STEPS.indexOf(text.words(it.step)) + 1,
      mailbox: Number(it.mailbox?.depth ?? 0),
      capacity: Number(it.mailbox?.capacity ?? 0),
      waiting: WAITS[it.waiting_for] ?? text.words(it.waiting_for ?? ""),
      since: Number(it.step_since ?? it.since ?? 0),
    };
  }

  /**
   * Reads the lines of the transcript of a session, or of one of its sub-agents, from byte `from` on; without it, the last ones. Returns the lines and
   * the byte at which the next reading begins.
   */
  async function transcript(id, agent, from) {
    const address = `${path(id)}/transcript${agent ? `?agent=${encodeURIComponent(agent)}` : ""}`;
    if (from === undefined) {
      // A session without a run has none yet, and no range lies in it.
      const head = await api.send(address, { method: "HEAD" });
      if (head.headers.get("content-length") === "0") return { lines: [], next: undefined, start: 0 };
    }
    // The last byte that was read comes again, so that the range is never empty.
    const range = from === undefined ? `bytes=-${TAIL}` : `bytes=${from - 1}-`;
    const response = await api.send(address, { headers: { range } });
    const bytes = new Uint8Array(await response.arrayBuffer());
    const ranged = /bytes (\d+)-/.exec(response.headers.get("content-range") ?? "");
    const start = response.status === 206 && ranged ? Number(ranged[1]) : 0;
    // A line that is being written has no end yet; the next reading begins with it. The first one of
    // the end of a file is cut, too.
    const isCut = from !== undefined || 0 < start;
    const begin = isCut ? bytes.indexOf(10) + 1 : 0;
    const end = Math.max(begin, bytes.lastIndexOf(10) + 1);
    const lines = new TextDecoder().decode(bytes.subarray(begin, end)).split("\n").filter(Boolean);
    return { lines, start: start + begin, next: start + end };
  }

  return {
    me: () => api.get("/v1/me"),
    sessions,
    session,
    approvals,
    answer,
    actor,
    transcript,
    open: (id) => api.get(path(id)).then(session),
    create: (body) => api.post("/v1/sessions", body),
    prompt: (id, prompt, delivery) =>
      api.post(
        `${path(id)}/runs`,
        { prompt, delivery },
        { "idempotency-key": crypto.randomUUID?.() ?? String(Math.random()) },
      ),
    interrupt: (id) => api.post(`${path(id)}/interrupt`),
    events: (id, options) => api.follow(`${path(id)}/events`, options),
    treeEvents: (options) => api.follow("/v1/tree/events", options),
  };
})();
