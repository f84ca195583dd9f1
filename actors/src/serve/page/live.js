// What a session is doing now, from its events: the part that no transcript holds yet. It touches no
// element. When the transcript has caught up, `settle` drops what it holds by then.
"use strict";

const live = (() => {
  // Characters of an answer kept while it streams; the transcript has all of it afterwards.
  const MAX_STREAMED = 400_000;
  // Sub-agents of one session that are followed; the tree of actors shows all.
  const MAX_AGENTS = 500;

  function create() {
    return {
      isRunning: false,
      run: "",
      turn: 0,
      step: 0,
      stepSince: 0,
      // Milliseconds of the steps of this turn that are over, as this page saw them.
      times: new Map(),
      answer: "",
      thinking: "",
      isAnswered: false,
      previews: new Map(),
      running: new Map(),
      questions: new Map(),
      agents: new Map(),
      parked: undefined,
      retry: undefined,
      notes: [],
      missed: 0,
      lastEnd: undefined,
    };
  }

  function stepNumber(name) {
    return record.STEPS.indexOf(text.words(name)) + 1;
  }

  function note(state, kind, what) {
    state.notes.push({ kind, what: String(what ?? ""), at: Date.now() });
    if (50 < state.notes.length) state.notes.shift();
  }

  function cleared(state) {
    state.answer = "";
    state.thinking = "";
    state.isAnswered = false;
    state.previews.clear();
  }

  function ended(state, event) {
    state.isRunning = false;
    state.turn = 0;
    state.step = 0;
    state.parked = undefined;
    state.retry = undefined;
    state.running.clear();
    state.questions.clear();
    state.lastEnd = {
      reason: String(event.reason ?? ""),
      isFailure: event.type === "run_failed",
      at: Date.now(),
    };
  }

  /**
   * Takes one event. Returns whether the transcript has more to read because of it.
   */
  function take(state, event) {
    switch (event.type) {
      case "run_started":
        cleared(state);
        Object.assign(state, { isRunning: true, run: event.run, lastEnd: undefined });
        return true;
      case "turn_started":
        Object.assign(state, { isRunning: true, turn: event.turn, step: 0, times: new Map() });
        return true;
      case "step_started":
        if (state.step) state.times.set(state.step, Date.now() - state.stepSince);
        Object.assign(state, {
          isRunning: true,
          turn: event.turn,
          step: stepNumber(event.step),
          stepSince: Date.now(),
        });
        return false;
      case "text_delta":
        return delta(state, "answer", event);
      case "reasoning_delta":
        return delta(state, "thinking", event);
      case "tool_input_preview":
        state.previews.set(event.call, { tool: event.tool, input: String(event.input ?? "") });
        return false;
      case "message_completed":
        if (event.text) state.answer = String(event.text).slice(0, MAX_STREAMED);
        state.isAnswered = true;
        state.retry = undefined;
        return true;
      case "withdrawn":
        cleared(state);
        return false;
      case "permission_asked":
        state.questions.set(event.call, event);
        return true;
      case "permission_settled":
      case "permission_decided":
        state.questions.delete(event.call);
        return true;
      case "tool_started":
        state.running.set(event.call, { tool: event.tool, since: Date.now() });
        return false;
      case "tool_progress": {
        const it = state.running.get(event.call);
        if (it) Object.assign(it, { percent: event.percent, progress: String(event.text ?? "") });
        return false;
      }
      case "tool_finished":
        state.running.delete(event.call);
        return true;
      case "model_retry":
        state.retry = {
          n: event.attempt,
          most: event.max_retries,
          cause: String(event.cause ?? event.error ?? ""),
          until: Date.now() + Number(event.delay_ms ?? 0),
        };
        return false;
      case "recovery_taken":
        note(
          state,
          "recovery",
          `${text.words(event.cause)}: ${text.words(event.remedy)}${event.model ? ` (${event.model})` : ""}`,
        );
        return false;
      case "parked":
        state.parked = { reason: text.words(reasonOf(event.reason)), until: event.until_ms };
        return false;
      case "unparked":
        state.parked = undefined;
        return false;
      case "hook_message":
        note(state, "hook", event.text);
        return false;
      case "alert":
        note(state, "alert", event.what);
        return false;
      case "mcp_server":
        note(
          state,
          "server",
          `${event.server}: ${text.words(reasonOf(event.state))}${event.error ? `, ${event.error}` : ""}`,
        );
        return false;
      case "recorded":
        // The server has read this line from the transcript; so does the page.
        return true;
      case "gap":
      case "lagged":
        state.missed += Number(event.missed ?? 0);
        cleared(state);
        return true;
      case "agent_started":
        agentOf(state, event.agent).description = String(event.description ?? "");
        agentOf(state, event.agent).call = event.call;
        return true;
      case "agent":
        return ofAgent(state, event);
      case "turn_finished":
        return true;
      case "run_finished":
      case "run_failed":
        ended(state, event);
        return true;
      default:
        return false;
    }
  }

  /** A reason is a name, or an object whose type or only key is one. */
  function reasonOf(reason) {
    if (reason === null || typeof reason !== "object") return String(reason ?? "");
    return String(reason.type ?? reason.kind ?? Object.keys(reason)[0] ?? "");
  }

  function delta(state, field, event) {
    if (state.isAnswered) cleared(state);
    if (state[field].length < MAX_STREAMED) state[field] += String(event.text ?? "");
    return false;
  }

  function agentOf(state, id) {
    let agent = state.agents.get(id);
    if (!agent) {
      if (MAX_AGENTS <= state.agents.size) state.agents.delete(state.agents.keys().next().value);
      agent = { id, description: "", state: "running", step: 0, turn: 0, since: Date.now() };
      state.agents.set(id, agent);
    }
    return agent;
  }

  /** An event of a sub-agent, which may itself be one of a sub-agent's. Questions reach the top. */
  function ofAgent(state, event) {
    let agent = agentOf(state, event.agent);
    let inner = event.event ?? {};
    for (let depth = 0; inner.type === "agent" && depth < 20; depth += 1) {
      const child = agentOf(state, inner.agent);
      child.parent = agent.id;
      agent = child;
      inner = inner.event ?? {};
    }
    switch (inner.type) {
      case "agent_started":
        Object.assign(agentOf(state, inner.agent), {
          parent: agent.id,
          description: String(inner.description ?? ""),
        });
        break;
      case "turn_started":
        agent.turn = inner.turn;
        break;
      case "step_started":
        Object.assign(agent, { turn: inner.turn, step: stepNumber(inner.step), since: Date.now() });
        break;
      case "tool_started":
        agent.tool = inner.tool;
        break;
      case "tool_finished":
        agent.tool = "";
        break;
      case "permission_asked":
        state.questions.set(inner.call, { ...inner, agent: agent.id });
        break;
      case "permission_settled":
      case "permission_decided":
        state.questions.delete(inner.call);
        break;
      case "run_finished":
      case "run_failed":
        Object.assign(agent, {
          state: inner.type === "run_failed" ? "failed" : "done",
          step: 0,
          ended: Date.now(),
        });
        break;
      default:
    }
    return false;
  }

  /** What the server knows of a session whose events are heard from now on. */
  function seed(state, session) {
    const isRunning = session.state === "running" || session.state === "waiting";
    if (!isRunning && state.isRunning) ended(state, {});
    if (isRunning)
      Object.assign(state, {
        isRunning,
        run: session.run,
        turn: session.turn,
        step: session.step,
        stepSince: session.since,
      });
  }

  /** The transcript holds an answer that is later than what was streamed. */
  function settle(state) {
    if (state.isAnswered) cleared(state);
  }

  return { create, take, seed, settle };
})();
