// The conversation of a session: what the transcript holds, and after it the answer that streams in.
"use strict";

const conversation = (() => {
  // Messages that are elements at once; earlier ones are shown on demand.
  const PIECE = 120;
  const WHO = { user: "You", assistant: "Model", system: "System" };
  const ENDS = {
    no_pending_tools: "The run has ended",
    interrupted: "The run was interrupted",
    max_turns: "The run ended at its limit of turns",
  };

  function bubble(message) {
    if (message.role === "end") {
      const node = dom.el("li", { class: "end" });
      const words = ENDS[message.reason] ?? `The run has ended: ${text.words(message.reason)}`;
      node.append(`${text.visible(words)} · ${text.plural(message.turns, "turn")}`);
      return node;
    }
    const body = dom.el("div", { class: "body" });
    const who = message.isSummary
      ? "Summary"
      : message.isHarness
        ? "Harness"
        : (WHO[message.role] ?? "System");
    const head = dom.el(
      "div",
      { class: "who" },
      dom.el("span", null, who),
      dom.el("time", { datetime: new Date(message.at || 0).toISOString() }, text.clock(message.at)),
    );
    const node = dom.el(
      "li",
      { class: "message", data: { role: message.isHarness || message.isSummary ? "harness" : message.role } },
      head,
      body,
    );
    if (message.isHarness || message.isSummary) {
      const length = message.blocks.reduce((sum, it) => sum + (it.text?.length ?? 0), 0);
      body.append(
        folded(`${text.count(length)} characters shown to the model`, () =>
          message.blocks.map((it) => dom.longText(it.text)),
        ),
      );
      return node;
    }
    for (const block of message.blocks) {
      if (block.kind === "text" && block.text.trim()) body.append(message.role === "assistant" ? markdown.long(block.text) : dom.longText(block.text));
      else if (block.kind === "thinking" && block.text)
        body.append(folded("Thinking", () => [dom.longText(block.text)]));
      else if (block.kind === "note") body.append(dom.el("p", { class: "muted" }, block.text));
      else if (block.kind === "call") {
        const call = calls.make(block.call);
        call.dataset.kind = "call";
        body.append(call);
      }
    }
    return node;
  }

  /** A line that folds out to what `make` returns, made when it is first opened. */
  function folded(title, make) {
    const inside = dom.el("div", { class: "inside" });
    const node = dom.el("details", { class: "folded" }, dom.el("summary", null, title), inside);
    node.addEventListener("toggle", () => {
      if (node.open && !inside.firstChild) inside.append(...make());
    });
    return node;
  }

  function updateCalls(node, running) {
    for (const it of node.querySelectorAll(':scope > .body > [data-kind="call"]'))
      calls.update(it, it.call, running);
  }

  function mount(panel) {
    const earlier = dom.el("button", { type: "button", class: "quiet earlier" });
    const messages = dom.el("ol", { class: "messages" });
    const streamed = dom.el("div", { class: "message streaming", data: { role: "assistant" } });
    const streamedText = dom.el("div", { class: "prose md", dir: "auto" });
    const writeStreamed = markdown.stream(streamedText);
    const streamedThinking = dom.el("div", { class: "thinking", dir: "auto" });
    const previews = dom.el("div", { class: "previews" });
    streamed.append(
      dom.el(
        "div",
        { class: "who" },
        dom.el("span", null, "Model"),
        dom.el("span", { class: "caret" }, "writing"),
      ),
      streamedThinking,
      streamedText,
      previews,
    );
    const doing = dom.el("p", { class: "doing" });
    const empty = dom.el("p", { class: "empty" });
    const jump = dom.el("button", { type: "button", class: "jump", hidden: true }, "↓ Latest");
    panel.append(earlier, messages, streamed, doing, empty, jump);
    let shown = PIECE;
    let followed = true;
    let shownId;

    let lastTop = 0;
    panel.addEventListener(
      "scroll",
      () => {
        // Only the person scrolls up. A panel that becomes smaller or longer is followed further.
        const isAtEnd = panel.scrollHeight - panel.scrollTop - panel.clientHeight < 80;
        if (isAtEnd) followed = true;
        else if (panel.scrollTop < lastTop - 2) followed = false;
        lastTop = panel.scrollTop;
        jump.hidden = followed;
      },
      { passive: true },
    );
    new ResizeObserver(() => {
      if (followed) panel.scrollTop = panel.scrollHeight;
    }).observe(panel);
    jump.addEventListener("click", () => {
      followed = true;
      panel.scrollTop = panel.scrollHeight;
      jump.hidden = true;
    });
    earlier.addEventListener("click", () => {
      shown += PIECE;
      const height = panel.scrollHeight;
      const top = panel.scrollTop;
      last && show(...last);
      panel.scrollTop = top + panel.scrollHeight - height;
    });
    let last;

    function show(id, rec, now, { asks, isLoading, failure } = {}) {
      last = [id, rec, now, { asks, isLoading, failure }];
      if (id !== shownId) {
        shownId = id;
        shown = PIECE;
        followed = true;
      }
      const all = rec.messages;
      const part = all.slice(Math.max(0, all.length - shown));
      earlier.hidden = part.length === all.length && !rec.leftOut;
      earlier.disabled = part.length === all.length;
      dom.say(
        earlier,
        part.length < all.length
          ? `Show earlier messages (${text.count(all.length - part.length)})`
          : `${text.bytes(rec.leftOut)} of earlier lines are not loaded`,
      );
      dom.keyed(
        messages,
        part,
        (it) => `${id}/${it.id}`,
        bubble,
        (node) => updateCalls(node, now.running),
      );
      streamed.hidden = !now.answer && !now.thinking && now.previews.size === 0;
      dom.say(streamedThinking, now.thinking.slice(-2000));
      streamedThinking.hidden = !now.thinking || Boolean(now.answer);
      writeStreamed(now.answer);
      dom.keyed(
        previews,
        now.isAnswered ? [] : [...now.previews],
        ([call]) => call,
        () =>
          dom.el(
            "p",
            { class: "preview" },
            dom.el("span", { class: "tool" }),
            dom.el("span", { class: "what", dir: "auto" }),
          ),
        (node, [, it]) => {
          dom.say(node.firstChild, it.tool);
          dom.say(node.lastChild, text.line(it.input.slice(-300), 200));
        },
      );
      const activity = doingNow(now, asks);
      doing.hidden = !activity;
      dom.say(doing, activity);
      empty.hidden = 0 < all.length || now.isRunning || Boolean(now.answer);
      empty.classList.toggle("failure", Boolean(failure));
      dom.say(
        empty,
        failure ||
          (isLoading ? "Loading the conversation…" : "Nothing has been said yet. Send a prompt below."),
      );
      if (followed) panel.scrollTop = panel.scrollHeight;
    }

    return { show };
  }

  /** What a running session does, where no other element says it. */
  function doingNow(now, asks) {
    if (now.retry && Date.now() < now.retry.until + 2000)
      return `The model did not answer (${text.line(now.retry.cause, 120)}). Try ${now.retry.n} of ${now.retry.most}…`;
    if (now.parked) return `Waits for the provider: ${now.parked.reason}`;
    if (asks) return "Waits for a decision";
    if (now.isRunning && now.step === 5 && !now.answer) return "Waits for the model…";
    if (now.isRunning && 0 < now.step && now.step !== 5)
      return `${record.STEPS[now.step - 1][0].toUpperCase()}${record.STEPS[now.step - 1].slice(1)}…`;
    return "";
  }

  return { mount };
})();
