// Reads the lines of a transcript into what the page shows of a session: messages, turns with their nine
// steps, calls, usage. It touches no element and asks no server, so a file is read the same way.
"use strict";

const record = (() => {
  const STEPS = [
    "settings resolution",
    "state initialization",
    "context assembly",
    "context shaping",
    "model call",
    "tool dispatch",
    "permission gate",
    "tool execution",
    "stop check",
  ];
  const SOURCES = [
    "system prompt",
    "environment",
    "instructions",
    "path rules",
    "notes",
    "tools",
    "conversation",
    "tool results",
    "summaries",
  ];

  // What is kept of a session that goes on for days; the oldest goes first.
  const MAX_MESSAGES = 20_000;
  const MAX_TURNS = 5000;

  function create() {
    return {
      session: "",
      cwd: "",
      branch: "",
      model: "",
      mode: "",
      messages: [],
      turns: [],
      turnOf: new Map(),
      calls: new Map(),
      usage: [],
      totals: { input: 0, read: 0, write: 0, output: 0, cost: 0, isPriced: false },
      alerts: [],
      runs: new Map(),
      lastRun: undefined,
      openRun: undefined,
      at: 0,
      turn: undefined,
      n: 0,
      nTurns: 0,
      unread: 0,
      leftOut: 0,
      version: 0,
    };
  }

  function number(value) {
    return typeof value === "number" && Number.isFinite(value) ? value : 0;
  }

  function list(value) {
    return Array.isArray(value) ? value : [];
  }

  function string(value) {
    return typeof value === "string" ? value : value === undefined || value === null ? "" : text.json(value);
  }

  /** Reads one line; a line that is no object is counted and passed over. */
  function add(rec, given) {
    rec.version += 1;
    let line;
    try {
      line = JSON.parse(given);
    } catch {
      rec.unread += 1;
      return;
    }
    if (line === null || typeof line !== "object" || Array.isArray(line)) {
      rec.unread += 1;
      return;
    }
    rec.n += 1;
    if (line.type === "ennead") for (const it of apart(line)) harness(rec, it);
    else conversation(rec, line);
    forget(rec);
  }

  /** The records of a line, each as it would be on a line of its own. */
  function apart(line) {
    const { then, ...first } = line;
    const { at, run, turn } = line;
    const objects = list(then).filter((it) => it !== null && typeof it === "object");
    return [first, ...objects.map((it) => ({ at, run, turn, ...it }))];
  }

  /** Forgets the oldest tenth of what there is too much of. */
  function forget(rec) {
    if (MAX_MESSAGES < rec.messages.length) {
      for (const message of rec.messages.splice(0, MAX_MESSAGES / 10))
        for (const it of message.blocks) if (it.kind === "call") rec.calls.delete(it.call.id);
    }
    if (MAX_TURNS < rec.turns.length) {
      for (const turn of rec.turns.splice(0, MAX_TURNS / 10)) rec.turnOf.delete(turn.key);
    }
    if (MAX_MESSAGES < rec.usage.length) rec.usage.splice(0, MAX_MESSAGES / 10);
  }

  function conversation(rec, line) {
    rec.session ||= string(line.sessionId);
    rec.cwd = string(line.cwd) || rec.cwd;
    rec.branch = string(line.gitBranch) || rec.branch;
    const at = Date.parse(line.timestamp) || rec.at;
    const message = line.message && typeof line.message === "object" ? line.message : {};
    if (line.type === "system") {
      rec.messages.push({
        id: string(line.uuid) || `n${rec.n}`,
        role: "system",
        at,
        blocks: [{ kind: "text", text: string(line.content ?? line.subtype) }],
      });
      return;
    }
    if (line.type !== "user" && line.type !== "assistant") return;
    const content =
      typeof message.content === "string" ? [{ type: "text", text: message.content }] : list(message.content);
    const blocks = content.map((it) => block(rec, it ?? {}, at)).filter(Boolean);
    if (line.type === "assistant") rec.model = string(message.model) || rec.model;
    // Results are shown with their calls. A message of results alone would be an empty one.
    if (blocks.length === 0) return;
    rec.messages.push({
      id: string(line.uuid) || `n${rec.n}`,
      role: line.type,
      at,
      blocks,
      isSummary: line.isCompactSummary === true,
      isHarness:
        line.isMeta === true ||
        blocks.every((it) => it.kind === "text" && /^\s*<system-reminder/.test(it.text)),
      turn: rec.turn?.key,
    });
  }

  function block(rec, it, at) {
    switch (it.type) {
      case "text":
        return { kind: "text", text: string(it.text) };
      case "thinking":
      case "redacted_thinking":
        return { kind: "thinking", text: string(it.thinking) };
      case "tool_use":
      case "server_tool_use": {
        const call = callOf(rec, string(it.id));
        call.tool = string(it.name);
        call.input = it.input ?? {};
        call.at = at;
        if (rec.turn && !rec.turn.calls.includes(call)) rec.turn.calls.push(call);
        return { kind: "call", call };
      }
      case "tool_result": {
        const call = callOf(rec, string(it.tool_use_id));
        call.result = resultText(it.content);
        call.isError = it.is_error === true;
        call.isDone = true;
        return undefined;
      }
      case "image":
      case "document":
        return { kind: "note", text: `[${it.type}]` };
      default:
        return { kind: "note", text: `[${string(it.type)}]` };
    }
  }

  function resultText(content) {
    if (typeof content === "string") return content;
    return list(content)
      .map((it) => (it?.type === "text" ? string(it.text) : `[${string(it?.type)}]`))
      .join("\n");
  }

  function callOf(rec, id) {
    let call = rec.calls.get(id);
    if (!call) {
      call = { id, tool: "", input: {}, hooks: [], paths: [], isDone: false };
      rec.calls.set(id, call);
    }
    return call;
  }

  /** A turn of which nothing is known but that it began. */
  function newTurn(run, n, begun, number) {
    return {
      key: `${run}:${n}`,
      run,
      n,
      begun,
      ended: 0,
      mark: begun,
      steps: [],
      shapers: [],
      passed: [],
      attempts: [],
      calls: [],
      hooks: [],
      number,
    };
  }

  function turnOf(rec, line) {
    const run = string(line.run);
    const n = number(line.turn);
    const key = `${run}:${n}`;
    let turn = rec.turnOf.get(key);
    if (!turn) {
      turn = newTurn(run, n, rec.at || number(line.at), (rec.nTurns += 1));
      rec.turnOf.set(key, turn);
      rec.turns.push(turn);
    }
    return turn;
  }

  function harness(rec, line) {
    const at = number(line.at);
    const turn = 0 < number(line.turn) ? turnOf(rec, line) : undefined;
    if (turn) rec.turn = turn;
    const call = line.call === undefined ? undefined : callOf(rec, string(line.call));
    switch (line.kind) {
      case "run_start":
      case "run_resumed":
        rec.openRun = string(line.run);
        rec.lastRun = { id: rec.openRun, begun: at };
        rec.runs.set(rec.openRun, rec.lastRun);
        rec.turn = undefined;
        break;
      case "run_end":
        rec.openRun = undefined;
        if (rec.lastRun) Object.assign(rec.lastRun, { ended: at, reason: string(line.reason) });
        rec.messages.push({
          id: `end${rec.n}`,
          role: "end",
          at,
          reason: string(line.reason),
          turns: number(line.turns),
          blocks: [],
        });
        break;
      case "alert":
        rec.alerts.push({ at, what: string(line.what) });
        break;
      case "mode":
        rec.mode = string(line.mode);
        break;
      case "model_attempt":
        attempt(rec, turn, line, at);
        break;
      case "permission":
        if (!call) break;
        call.tool ||= string(line.tool);
        call.mode = rec.mode = string(line.mode);
        call.decision = line.decision && typeof line.decision === "object" ? line.decision : undefined;
        if (call.decision?.allowed === false) call.isDone = true;
        break;
      case "question":
        if (call)
          call.question = {
            id: string(line.id),
            reason: string(line.reason),
            at,
            expires: number(line.expires),
          };
        break;
      case "approval":
        if (call)
          call.approval = {
            allowed: line.allowed === true,
            reason: string(line.reason),
            by: string(line.by),
            at,
          };
        break;
      case "tool_intent":
        if (call) Object.assign(call, { effect: string(line.effect), begun: at, isRunning: true });
        break;
      case "tool_end":
        if (call)
          Object.assign(call, {
            ended: at,
            ms: number(line.duration_ms),
            exit: line.exit_code,
            error: line.error,
            truncation: line.truncation,
            agent: line.sidechain?.agent,
            isRunning: false,
            isDone: true,
          });
        break;
      case "path":
        if (call && call.paths.length < 20) call.paths.push(string(line.path?.given));
        break;
      case "hook":
        (call ?? turn)?.hooks.push({
          event: string(line.event),
          handler: string(line.handler),
          effect: string(line.effect),
          ended: string(line.ended),
          ms: number(line.duration_ms),
        });
        break;
      default:
        if (turn) ofTurn(rec, turn, line, at);
    }
    rec.at = Math.max(rec.at, at);
  }

  function ofTurn(rec, turn, line, at) {
    switch (line.kind) {
      case "turn_step": {
        const detail = line.detail && typeof line.detail === "object" ? line.detail : {};
        const n = number(line.number);
        turn.steps.push({ n, at, ms: Math.max(0, at - turn.mark), detail });
        turn.mark = at;
        turn.ended = at;
        if (n === 3 && detail.sizes)
          turn.context = { sizes: list(detail.sizes).map(number), tokens: number(detail.tokens) };
        if (n === 4 && detail.tokens !== undefined)
          turn.shaped = {
            tokens: number(detail.tokens),
            remaining: number(detail.remaining),
            fired: number(detail.fired),
          };
        if (n === 9) turn.isOver = true;
        break;
      }
      case "shapers_passed":
        for (const pair of list(line.stages))
          turn.passed.push({ stage: string(pair?.[0]), why: string(pair?.[1]) });
        break;
      case "shaper":
        turn.shapers.push({
          stage: string(line.stage),
          fired: line.fired === true,
          before: number(line.tokens_before),
          after: number(line.tokens_after),
          ms: number(line.elapsed_us) / 1000,
          why: string(line.why),
          cause: string(line.cause),
          attempt: number(line.attempt),
        });
        break;
      case "turn_end":
        Object.assign(turn, {
          isOver: true,
          ended: at,
          end: { reason: string(line.reason), step: string(line.at_step) },
        });
        break;
      default:
    }
  }

  function attempt(rec, turn, line, at) {
    const used = line.usage && typeof line.usage === "object" ? line.usage : {};
    const it = {
      attempt: number(line.attempt),
      purpose: string(line.purpose),
      cause: string(line.cause),
      outcome: string(line.outcome),
      message: string(line.message),
      status: number(line.status),
      model: string(line.model),
      firstToken: line.first_token_ms,
      ms: number(line.duration_ms),
      parked: number(line.parked_ms),
      input: number(used.input_tokens),
      read: number(used.cache_read_input_tokens),
      write: number(used.cache_creation_input_tokens),
      output: number(used.output_tokens),
      cost: line.cost,
      dropped: line.cache_drop,
    };
    turn?.attempts.push(it);
    const totals = rec.totals;
    for (const name of ["input", "read", "write", "output"]) totals[name] += it[name];
    if (typeof it.cost === "number") {
      totals.cost += it.cost;
      totals.isPriced = true;
    }
    rec.usage.push({
      at,
      input: totals.input,
      read: totals.read,
      write: totals.write,
      output: totals.output,
      cost: totals.cost,
    });
  }

  return { create, add, newTurn, STEPS, SOURCES };
})();
