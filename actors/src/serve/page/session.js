// The view of one session: its head, its five panels, and which of them is in sight.
"use strict";

const sessionView = (() => {
  const TABS = ["conversation", "turns", "context", "usage", "actors"];
  const wide = window.matchMedia("(min-width: 1180px)");

  function mount({ choose }) {
    const at = (id) => document.getElementById(id);
    const panels = Object.fromEntries(TABS.map((it) => [it, at(`panel-${it}`)]));
    const tabs = Object.fromEntries(TABS.map((it) => [it, at(`tab-${it}`)]));
    const talk = conversation.mount(panels.conversation);
    const turnsPanel = turns.mount(panels.turns);
    const contextPanel = context.mount(panels.context);
    const usagePanel = usage.mount(panels.usage);
    const actorsPanel = actors.mount(panels.actors, { choose });
    let tab = "conversation";
    let shownId;

    /** On a wide screen the conversation has a place of its own, and the tabs are those of the rest. */
    function arrange() {
      const isWide = wide.matches;
      at("session").dataset.wide = String(isWide);
      tabs.conversation.hidden = isWide;
      if (isWide && tab === "conversation") tab = "turns";
      for (const name of TABS) {
        const isOn = name === tab;
        panels[name].hidden = !isOn && !(isWide && name === "conversation");
        dom.attribute(tabs[name], "aria-selected", String(isOn));
        tabs[name].tabIndex = isOn ? 0 : -1;
      }
      dom.attribute(panels.conversation, "role", isWide ? "region" : "tabpanel");
      dom.attribute(panels.conversation, "aria-label", isWide ? "Conversation" : null);
      at("talk").hidden = !isWide && tab !== "conversation";
      at("inspector").hidden = tab === "conversation";
    }

    function select(name) {
      if (!TABS.includes(name)) return;
      if (wide.matches && name === "conversation") {
        panels.conversation.focus();
        return;
      }
      tab = name;
      arrange();
      frame.draw("session");
    }

    wide.addEventListener("change", () => {
      if (!wide.matches && tab === "turns") tab = "conversation";
      arrange();
      frame.draw("session");
    });
    dom.roving(at("tabs"), "button", { pick: (button) => select(button.id.slice(4)) });
    for (const name of TABS) tabs[name].addEventListener("click", () => select(name));
    arrange();

    /** Shows what is open. `session` is what the list knows of it. */
    function show(it, session, { actors: all, failure } = {}) {
      const { rec, now } = it;
      if (shownId !== it.id) {
        shownId = it.id;
        actorsPanel.reset();
      }
      const title = it.title || session?.title || `Session ${text.shortId(it.session ?? it.id)}`;
      dom.say(
        at("session-title"),
        text.line(it.agent && !it.isRecorded ? `${title}: sub-agent ${it.agent}` : title, 120),
      );
      const cost = session?.cost ?? (rec.totals.isPriced ? rec.totals.cost : undefined);
      const facts = [
        session?.tenant,
        session?.model || rec.model,
        rec.mode,
        rec.cwd,
        rec.branch,
        cost ? text.money(cost) : "",
      ];
      dom.say(
        at("session-facts"),
        facts
          .filter(Boolean)
          .map((one) => text.line(one, 80))
          .join(" · "),
      );
      const asks = 0 < now.questions.size || Boolean(session?.asks);
      const step = now.step ? `, ${record.STEPS[now.step - 1]}` : "";
      let state = session ? sessions.doing(session) : "";
      if (it.isRecorded) state = "recorded";
      else if (asks) state = "asks for a decision";
      else if (now.isRunning) state = `running${step}`;
      dom.say(at("session-state"), state);
      const tone = asks ? "asks" : now.isRunning ? "runs" : session ? sessions.tone(session) : "rests";
      at("session-state").dataset.tone = tone;
      const isSeen = (name) => !panels[name].hidden && !panels[name].closest("[hidden]");
      if (isSeen("conversation"))
        talk.show(it.id, rec, now, { asks, isLoading: it.isLoading, failure: failure || it.failure });
      if (isSeen("turns") || isSeen("context")) turnsPanel.show(it.id, rec, now);
      if (isSeen("context")) contextPanel.show(it.id, rec, turnsPanel.shown());
      if (isSeen("usage")) usagePanel.show(it.id, rec, cost);
      if (isSeen("actors")) actorsPanel.show(all ?? []);
    }

    return { show, select, moveTurn: turnsPanel.move, TABS };
  }

  return { mount };
})();
