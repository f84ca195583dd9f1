// Puts the page together: who is signed in, which session is open, what is asked of the server and when.
"use strict";

const app = (() => {
  const at = (id) => document.getElementById(id);
  // Milliseconds between two looks at what has no stream of its own.
  const LOOK = 2500;

  const state = {
    sessions: [],
    approvals: [],
    actors: [],
    open: undefined,
    recorded: recorded.read(),
    timer: undefined,
    failures: 0,
    isSignedIn: false,
  };

  const list = sessions.mount(
    {
      list: at("list"),
      filter: at("filter"),
      state: at("state"),
      tally: at("tally"),
      empty: at("list-empty"),
    },
    (id) => go(id),
    state.recorded ? "transcript" : "session",
  );
  const view = sessionView.mount({
    choose: toActor,
  });
  const allActors = actors.mount(at("all-actors"), { choose: toActor });
  const allQuestions = approvals.mount(at("all-questions"), { answer: answered, open: (id) => go(id) });
  const questions = approvals.mount(at("questions"), { answer: answered });
  const composer = compose.mount(at("composer"), {
    send: (prompt, delivery) => server.prompt(state.open.id, prompt, delivery),
    interrupt: () => server.interrupt(state.open.id),
  });
  compose.dialog(at("new-session"), { start });

  async function answered(question, given) {
    await server.answer(question, given);
    state.approvals = state.approvals.filter((it) => it.id !== question.id);
    counted();
    look();
    frame.draw("sessions", "home", "session");
  }

  async function start(body, prompt) {
    const made = server.session(await server.create(body));
    if (prompt.trim()) await server.prompt(made.id, prompt, "queue");
    await look();
    go(made.id);
  }

  // Which session is open is in the address, so that it survives a reload and can be sent to somebody.
  function go(id) {
    const hash = id ? `#${encodeURIComponent(id)}` : "#";
    if (location.hash === hash || (!id && !location.hash)) opens();
    else location.hash = hash;
  }

  /** The conversation of an actor: that of its session, or of the sub-agent that it works for. */
  function toActor(actor) {
    if (actor.session) go(actor.agent ? `${actor.session}/agent-${actor.agent}` : actor.session);
  }

  calls.onAgent((agent) => go(state.recorded ? `agent-${agent}` : `${state.open.session}/agent-${agent}`));

  function opens() {
    let id = "";
    try {
      id = decodeURIComponent(location.hash.slice(1));
    } catch {
      // It is no address of ours.
    }
    if (state.recorded) id = state.recorded.some((it) => it.id === id) ? id : (state.recorded[0]?.id ?? "");
    if (state.open?.id !== id) {
      state.open?.close?.();
      state.open = undefined;
      if (id && state.recorded) state.open = state.recorded.find((it) => it.id === id);
      else if (id && state.isSignedIn) state.open = opened.create(id, { onChange: changed, onState: linked });
    }
    document.body.dataset.view = id ? "session" : "home";
    at("overview").hidden = Boolean(id);
    at("session").hidden = !id;
    document.body.classList.toggle("of-agent", Boolean(state.open?.agent));
    list.select(state.recorded ? id : state.open?.session);
    frame.draw("sessions", "home", "session", "tree");
  }

  function changed(event) {
    if (
      event?.type === "permission_asked" ||
      event?.type === "permission_settled" ||
      event?.type === "agent" ||
      event?.type === "agent_started"
    )
      soon();
    frame.draw("session");
  }

  let nextTry = 0;
  /** Says how the page is connected. Only a break is news. */
  function linked(how, detail) {
    const link = at("link");
    if (how === "connecting" && link.dataset.how === "reconnecting") return;
    if (how === "reconnecting" && link.dataset.how !== "reconnecting")
      dom.announce("The connection is lost. Reconnecting.");
    if (how === "live" && link.dataset.how === "reconnecting") dom.announce("Connected again");
    link.dataset.how = how;
    nextTry = how === "reconnecting" ? detail : 0;
    frame.draw("link");
  }

  frame.on("link", () => {
    const { how } = at("link").dataset;
    const seconds = Math.max(0, Math.ceil((nextTry - Date.now()) / 1000));
    const words = {
      live: "live",
      connecting: "connecting…",
      refused: "refused",
      recorded: "recorded, offline",
    }[how];
    dom.say(
      at("link"),
      how === "reconnecting"
        ? 0 < seconds
          ? `reconnecting in ${seconds} s`
          : "reconnecting…"
        : (words ?? ""),
    );
  });

  function counted() {
    const bySession = new Map();
    for (const it of state.approvals) bySession.set(it.session, (bySession.get(it.session) ?? 0) + 1);
    const titles = new Map(state.sessions.map((it) => [it.id, it.title]));
    for (const it of state.approvals) it.title = titles.get(it.session) ?? "";
    for (const it of state.sessions) it.asks = bySession.get(it.id) ?? it.asks;
    const n = state.approvals.length;
    const button = at("asks");
    if (button.dataset.n !== String(n)) {
      const more = Number(button.dataset.n ?? 0) < n;
      button.dataset.n = String(n);
      if (more)
        dom.announce(n === 1 ? "A question waits for an answer" : `${n} questions wait for an answer`);
    }
    button.hidden = n === 0;
    dom.say(button, n === 1 ? "1 question" : `${text.count(n)} questions`);
    document.title = n ? `(${n}) ennead` : "ennead";
  }

  /** Asks for what is shown besides the open session. */
  async function look() {
    if (state.recorded || !state.isSignedIn) return;
    clearTimeout(state.timer);
    try {
      const [found, asked] = await Promise.all([server.sessions(), server.approvals()]);
      Object.assign(state, { sessions: found, approvals: asked });
      state.failures = 0;
      counted();
      // Lines that were written after the event that told of them.
      state.open?.read();
      frame.draw("sessions", "home", "session");
    } catch (error) {
      if (error.status === 401) return;
      state.failures += 1;
      list.fail(error.message);
      if (error.retryAfter) state.retryAfter = error.retryAfter;
    }
    clearTimeout(state.timer);
    state.timer = setTimeout(look, pause());
  }

  function pause() {
    const wait = Math.max(state.retryAfter ?? 0, Math.min(LOOK * 2 ** Math.min(state.failures, 3), 15_000));
    state.retryAfter = 0;
    return document.hidden ? Math.max(wait, 10_000) : wait;
  }

  const tree = livingTree.create({
    isSeen: () =>
      state.isSignedIn && !document.hidden && (!at("overview").hidden || !at("panel-actors").hidden),
    onChange(all) {
      state.actors = all;
      frame.draw("home", "session");
    },
    onState: (how, detail) => !state.open && linked(how, detail),
  });
  frame.on("tree", tree.follow);
  document.addEventListener("visibilitychange", tree.follow);

  let sooner;
  function soon() {
    sooner ??= setTimeout(() => {
      sooner = undefined;
      look();
    }, 300);
  }

  frame.on("sessions", () =>
    list.show(
      state.recorded ? state.recorded.map(recorded.listed) : state.sessions,
      state.recorded ? state.open?.id : state.open?.session,
    ),
  );

  frame.on("home", () => {
    // A question has one card at a time, so that its parts have ids of their own.
    if (at("overview").hidden) return allQuestions.show([]);
    const all = state.sessions;
    const n = (tone) => all.filter((it) => sessions.tone(it) === tone).length;
    const cost = all.reduce((sum, it) => sum + (it.cost ?? 0), 0);
    const sums = [
      [all.length === 1 ? "session" : "sessions", text.count(all.length)],
      ["running", text.count(n("runs"))],
      ["waiting", text.count(n("waits") + n("asks"))],
      [state.approvals.length === 1 ? "question" : "questions", text.count(state.approvals.length)],
      ["spent", text.money(cost)],
    ];
    dom.keyed(
      at("sums"),
      sums,
      ([name]) => name,
      () => dom.el("p", { class: "big" }, dom.el("span"), dom.el("small")),
      (node, [name, value]) => {
        dom.say(node.firstChild, value);
        dom.say(node.lastChild, ` ${name}`);
      },
    );
    allQuestions.show(state.approvals, { hasLink: true });
    allActors.show(named(state.actors));
  });

  /** Actors by the names that people know: titles of sessions, and what sub-agents were sent for. */
  function named(all, now) {
    const titles = new Map(state.sessions.map((it) => [it.id, it.title]));
    return all.map((it) => {
      if (it.kind === "session") return { ...it, name: titles.get(it.session) ?? it.name };
      if (it.kind === "sub agent") return { ...it, name: now?.agents.get(it.agent)?.description || it.agent };
      return it;
    });
  }

  frame.on("session", () => {
    const it = state.open;
    if (!it) return questions.show([]);
    const known = state.recorded ? recorded.listed(it) : state.sessions.find((one) => one.id === it.session);
    const all = state.recorded
      ? recorded.tree(state.recorded).map((one) => ({ ...one, session: one.id }))
      : state.actors.filter((one) => one.session === it.session);
    view.show(it, known, { actors: state.recorded ? all : named(all, it.now) });
    tree.follow();
    questions.show(state.approvals.filter((one) => one.session === it.session));
    composer.show(it.id, it.now.isRunning || known?.state === "running");
  });

  function signIn(detail) {
    state.isSignedIn = false;
    tree.follow();
    clearTimeout(state.timer);
    document.body.classList.add("signed-out");
    const box = at("sign-in");
    const problem = box.querySelector(".problem");
    problem.hidden = !detail;
    dom.say(problem, detail ?? "");
    if (!box.open) box.showModal();
  }

  at("sign-in").addEventListener("cancel", (event) => event.preventDefault());
  at("sign-in")
    .querySelector("form")
    .addEventListener("submit", (event) => {
      event.preventDefault();
      api.keepToken(at("token").value.trim());
      at("token").value = "";
      at("sign-in").close();
      begin();
    });
  api.onUnauthorized(() => signIn(api.token() ? "The server does not know this token." : ""));

  /** Takes a token out of the address, as the server prints it when it makes the first one. */
  function tokenOfAddress() {
    const found = /^#token=([\x21-\x7e]+)$/.exec(location.hash);
    if (!found) return;
    api.keepToken(found[1]);
    // Neither the history nor a copy of the address keeps it.
    history.replaceState(null, "", location.pathname);
  }

  async function begin() {
    at("leave").hidden = !api.token();
    if (!api.token()) return signIn();
    state.isSignedIn = true;
    document.body.classList.remove("signed-out");
    state.open?.close?.();
    state.open = undefined;
    opens();
    known();
    await look();
  }

  /** A viewer is offered nothing that would be refused. */
  async function known() {
    try {
      state.mayAct = (await server.me()).role !== "viewer";
    } catch (error) {
      // What is wrong is said where the sessions are asked for.
      state.mayAct = true;
    }
    document.body.classList.toggle("viewer", !state.mayAct);
  }

  at("leave").addEventListener("click", () => {
    api.keepToken("");
    location.reload();
  });
  at("home").addEventListener("click", () => go(""));
  at("back").addEventListener("click", () => go(""));
  at("asks").addEventListener("click", () => toQuestion());
  at("start").addEventListener("click", () => at("new-session").showModal());
  at("help").addEventListener("click", () => help.open());
  at("theme").addEventListener("click", themed);
  window.addEventListener("hashchange", () => {
    if (!location.hash.startsWith("#token=")) return opens();
    tokenOfAddress();
    begin();
  });

  function themed() {
    theme.next();
    themeName();
  }

  function themeName() {
    dom.say(at("theme"), { system: "◐ Auto", light: "○ Light", dark: "● Dark" }[theme.get()]);
    dom.attribute(at("theme"), "aria-label", `Colours: ${theme.get()}. Change`);
  }

  function toQuestion() {
    const here = state.approvals.find((it) => it.session === state.open?.session);
    const first = here ?? state.approvals[0];
    if (!first) return;
    if (!here) go(first.session);
    view.select("conversation");
    setTimeout(() => questions.focus(), 50);
  }

  const help = keys.mount(
    [
      { key: "?", words: "This help", act: () => help.open() },
      { key: "/", words: "Filter sessions", act: () => at("filter").focus() },
      { key: "l", words: "List of sessions", act: () => at("list").focus() },
      { key: "o", words: "Overview", act: () => go("") },
      { key: "n", words: "New session", act: () => !state.recorded && state.mayAct && at("new-session").showModal() },
      {
        key: "i",
        words: "Write a prompt",
        act: () => {
          view.select("conversation");
          composer.focus();
        },
      },
      { key: "q", words: "Next question that waits", act: toQuestion },
      {
        key: "x",
        words: "Stop the run",
        act: () => at("composer").querySelector("[data-interrupt]:not([hidden])")?.click(),
      },
      ...view.TABS.map((name, n) => ({ key: String(n + 1), act: () => view.select(name) })),
      { key: "", shown: "1 … 5", words: "Views of the session", act() {} },
      { key: "[", words: "Turn before", act: () => view.moveTurn(-1) },
      { key: "]", words: "Turn after", act: () => view.moveTurn(1) },
      { key: "t", words: "Theme: system, light, dark", act: themed },
      { key: "", shown: "Esc", words: "Leave a field or a dialog", act() {} },
    ],
    { list: at("keys"), box: at("help-box"), toggle: at("single-keys") },
  );

  // Times in words grow older without an event.
  setInterval(
    () => !document.hidden && frame.draw("sessions", "session", "link", ...(state.recorded ? [] : ["home"])),
    1000,
  );

  themeName();
  if (state.recorded) {
    document.body.classList.add("recorded");
    dom.say(at("side-title"), "Transcripts");
    linked("recorded");
    opens();
  } else {
    tokenOfAddress();
    begin();
  }

  return { state, rows: list.rows };
})();
