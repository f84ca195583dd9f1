// One tool call: what it is, what was decided about it, how it ended. Used wherever a call is shown.
"use strict";

const calls = (() => {
  // The field of an input that says what a call is about, by how well it does.
  const TELLING = [
    "command",
    "file_path",
    "path",
    "notebook_path",
    "pattern",
    "url",
    "query",
    "description",
    "prompt",
    "skill",
    "subject",
  ];

  let openAgent;

  /** What a call is about, in one line. */
  function summary(input) {
    if (input === null || typeof input !== "object") return text.line(input, 120);
    for (const name of TELLING)
      if (typeof input[name] === "string" && input[name]) return text.line(input[name], 120);
    const first = Object.values(input).find((it) => typeof it === "string" && it);
    return first ? text.line(first, 120) : "";
  }

  function state(call, running) {
    if (call.isError || call.error) return call.decision?.allowed === false ? "denied" : "failed";
    if (call.decision?.allowed === false) return "denied";
    if (call.isDone) return "done";
    if (running?.has(call.id) || call.isRunning) return "runs";
    if (call.question && !call.approval) return "asks";
    return "waits";
  }

  const STATES = {
    denied: "denied",
    failed: "failed",
    done: "done",
    runs: "running",
    asks: "asks",
    waits: "waiting",
  };

  /** The decision about a call: who decided, by which rule of which scope, and why. */
  function decision(call) {
    const it = call.decision;
    if (!it) return undefined;
    const facts = [
      ["Decision", it.allowed ? "allowed" : "denied"],
      ["Stage", text.words(it.stage)],
      it.rule && ["Rule", it.rule.text],
      it.rule && ["Scope", text.words(it.rule.scope)],
      ["Reason", it.reason],
      call.mode && ["Mode", call.mode],
      call.approval && [
        "Answer",
        `${call.approval.allowed ? "allow" : "deny"}, by ${text.words(call.approval.by) || "somebody"}${call.approval.reason ? `: ${call.approval.reason}` : ""}`,
      ],
    ];
    return definition(facts);
  }

  function definition(facts) {
    const pairs = facts.filter((it) => it && it[1] !== undefined && it[1] !== "");
    return dom.el(
      "dl",
      { class: "facts" },
      pairs.map(([name, value]) =>
        dom.el("div", null, dom.el("dt", null, name), dom.el("dd", null, text.line(value, 600))),
      ),
    );
  }

  function section(title, ...children) {
    return dom.el("section", { class: "part" }, dom.el("h5", null, title), children);
  }

  function details(call) {
    const change = diff.ofCall(call.tool, call.input);
    const ended = [
      call.ms !== undefined && ["Time", text.duration(call.ms)],
      call.exit !== undefined && call.exit !== null && ["Exit code", String(call.exit)],
      call.error && [
        "Failure",
        text.words(typeof call.error === "string" ? call.error : text.json(call.error)),
      ],
      call.effect && ["Effect", text.words(call.effect)],
      call.truncation && [
        "Output",
        `${text.count(call.truncation.kept_chars)} of ${text.count(call.truncation.original_chars)} characters kept`,
      ],
      call.agent && ["Sub-agent", call.agent],
    ];
    return [
      section(
        change ? "Change" : "Input",
        change ?? dom.longText(text.json(call.input), { className: "code-block" }),
      ),
      call.decision && section("Decision", decision(call)),
      call.hooks.length > 0 &&
        section(
          "Hooks",
          definition(
            call.hooks
              .slice(0, 50)
              .map((it) => [it.event, `${it.handler}: ${it.effect} (${text.duration(it.ms)})`]),
          ),
        ),
      call.result !== undefined &&
        section("Result", dom.longText(call.result, { className: "code-block", most: 3000 })),
      call.agent &&
        dom.el(
          "button",
          { type: "button", class: "open-agent", on: { click: () => openAgent?.(call.agent) } },
          "Open the sub-agent's conversation",
        ),
      ended.some(Boolean) && section("End", definition(ended)),
    ];
  }

  /** A line that folds out. Its inside is made when it is opened, and made anew when the call has changed. */
  function make(call) {
    const mark = dom.el("span", { class: "mark", "aria-hidden": "true" });
    const tool = dom.el("span", { class: "tool" });
    const what = dom.el("span", { class: "what", dir: "auto" });
    const how = dom.el("span", { class: "how" });
    const inside = dom.el("div", { class: "inside" });
    const node = dom.el("details", { class: "call" }, dom.el("summary", null, mark, tool, what, how), inside);
    node.parts = { tool, what, how, inside };
    node.addEventListener("toggle", () => {
      if (node.open) fillInside(node, node.call);
    });
    update(node, call);
    return node;
  }

  function fillInside(node, call) {
    const shown = [
      call.isDone,
      call.ended,
      call.decision?.stage,
      call.result?.length,
      call.approval?.at,
      call.hooks.length,
    ].join();
    if (node.dataset.inside === shown) return;
    node.dataset.inside = shown;
    dom.replace(node.parts.inside, details(call));
  }

  function update(node, call, running) {
    node.call = call;
    const { tool, what, how } = node.parts;
    const now = state(call, running);
    node.dataset.state = now;
    const live = running?.get(call.id);
    dom.say(tool, text.line(call.tool || "call", 40));
    dom.say(what, summary(call.input));
    const percent = live?.percent !== undefined && live?.percent !== null ? `${live.percent} % ` : "";
    dom.say(
      how,
      now === "done" && call.ms !== undefined
        ? text.duration(call.ms)
        : `${percent}${live?.progress ? text.line(live.progress, 40) : STATES[now]}`,
    );
    if (node.open) fillInside(node, call);
  }

  return {
    onAgent: (open) => (openAgent = open),
    make,
    update,
    summary,
    state,
    decision,
    definition,
    section,
  };
})();
