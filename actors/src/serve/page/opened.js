// The session that is open, or one of its sub-agents (`<session>/agent-<agent>`, as the tree names it): its
// transcript, read as it grows, and its events.
"use strict";

const opened = (() => {
  // The transcript is asked for at most so often while events come.
  const PAUSE = 250;

  /** The event of this sub-agent that an event of the session holds, if it does. */
  function ofAgent(event, agent) {
    let inner = event;
    for (let depth = 0; inner?.type === "agent" && depth < 20; depth += 1) {
      if (inner.agent === agent) return inner.event;
      inner = inner.event;
    }
    return undefined;
  }

  function create(id, { onChange, onState }) {
    const [session, agent = ""] = id.split("/agent-");
    const it = {
      id,
      session,
      agent,
      rec: record.create(),
      now: live.create(),
      isLoading: true,
      failure: "",
      next: undefined,
    };
    let isReading = false;
    let isAsked = false;
    let isClosed = false;
    let timer;

    async function read() {
      if (isClosed) return;
      if (isReading) {
        isAsked = true;
        return;
      }
      isReading = true;
      try {
        const { lines, next, start } = await server.transcript(session, agent, it.next);
        if (isClosed) return;
        if (it.next === undefined) it.rec.leftOut = start;
        it.next = next;
        const before = it.rec.messages.length;
        for (const line of lines) record.add(it.rec, line);
        if (it.rec.messages.slice(before).some((one) => one.role !== "user")) live.settle(it.now);
        it.failure = "";
      } catch (error) {
        // A session without a run has no transcript yet.
        if (error.status !== 404) it.failure = error.message;
      }
      isReading = false;
      it.isLoading = false;
      onChange();
      if (isAsked) soon();
      isAsked = false;
    }

    let waits = false;
    function soon() {
      // All events of a burst have one reading.
      if (waits) return;
      waits = true;
      timer = setTimeout(() => {
        waits = false;
        read();
      }, PAUSE);
    }

    /** Asks where the session is; its events tell only what happens from now on. */
    async function seed() {
      soon();
      try {
        const found = await server.open(session);
        // Where a sub-agent is only its next event says.
        if (!isClosed && !agent) live.seed(it.now, found);
      } catch (error) {
        it.failure = error.message;
      }
      onChange();
    }

    const stream = server.events(session, {
      onEvent(given) {
        frame.push(() => {
          const event = agent ? ofAgent(given, agent) : given;
          if (isClosed || !event) return;
          if (event.type === "run_finished") dom.announce("The run has ended");
          if (event.type === "run_failed") dom.announce("The run has failed");
          if (live.take(it.now, event)) soon();
          onChange(event);
        });
      },
      onState(state, detail) {
        if (isClosed) return;
        onState(state, detail);
        if (state === "live") seed();
        if (state === "refused") {
          it.failure = detail.message;
          onChange();
        }
      },
    });
    read();
    it.close = () => {
      isClosed = true;
      clearTimeout(timer);
      stream.stop();
    };
    it.read = soon;
    return it;
  }

  return { create };
})();
