// Speaks to the server: one request, one stream of events, and what went wrong as an error with a code.
"use strict";

const api = (() => {
  const KEY = "ennead.token";
  // What is in front of the paths of the server where a program has mounted it: the page lies next to them.
  const source = document.currentScript?.src;
  const MOUNT = source ? new URL("..", source).pathname.replace(/\/$/, "") : "";
  const FIRST_WAIT = 500;
  const MAX_WAIT = 15_000;
  // A line of the stream that is longer is not one of the server's.
  const MAX_LINE = 16 * 1024 * 1024;

  /** A request that was refused, or that reached nobody (`status` 0). */
  class Refused extends Error {
    constructor(status, code, detail, retryAfter) {
      super(detail);
      this.status = status;
      this.code = code;
      this.retryAfter = retryAfter;
    }
  }

  let whenUnauthorized = () => {};

  function token() {
    return sessionStorage.getItem(KEY) ?? "";
  }

  function keepToken(value) {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  }

  function headers(extra) {
    const given = token();
    return given ? { authorization: `Bearer ${given}`, ...extra } : { ...extra };
  }

  /** What a refusal says, whatever sort of body it has. */
  async function refusal(response) {
    let problem = {};
    try {
      problem = JSON.parse((await response.text()).slice(0, 100_000));
    } catch {
      // A proxy in front of the server answers in its own words.
    }
    const detail = problem?.detail ?? problem?.title ?? `the server answered ${response.status}`;
    const wait = Number(response.headers.get("retry-after"));
    return new Refused(response.status, problem?.code ?? "", String(detail), wait > 0 ? wait * 1000 : 0);
  }

  async function send(path, options = {}) {
    let response;
    try {
      response = await fetch(MOUNT + path, {
        cache: "no-store",
        credentials: "omit",
        ...options,
        headers: headers(options.headers),
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refused(0, "unreachable", "the server cannot be reached", 0);
    }
    if (response.ok) return response;
    const refused = await refusal(response);
    if (response.status === 401) whenUnauthorized(refused);
    throw refused;
  }

  async function get(path, options) {
    return (await send(path, options)).json();
  }

  async function post(path, body, extra) {
    const response = await send(path, {
      method: "POST",
      headers: { "content-type": "application/json", ...extra },
      body: JSON.stringify(body ?? {}),
    });
    const answer = await response.text();
    return answer ? JSON.parse(answer) : {};
  }

  async function remove(path) {
    await send(path, { method: "DELETE" });
  }

  /** Feeds the bytes of an event stream to `take(event, id)`, one event at a time. */
  function decoder(take) {
    let pending = [];
    let length = 0;
    let data = [];
    let id;
    let retry;
    function lineEnds(line) {
      if (line === "") {
        if (data.length) take(data.join("\n"), id);
        data = [];
        return;
      }
      const colon = line.indexOf(":");
      if (colon === 0) return;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "data") data.push(value);
      else if (field === "id" && !value.includes("\0")) id = value;
      else if (field === "retry" && /^\d+$/.test(value)) retry = Math.min(Number(value), MAX_WAIT);
    }
    return {
      feed(chunk) {
        length += chunk.length;
        if (MAX_LINE < length) throw new Refused(0, "line_too_long", "the stream is not one of events", 0);
        pending.push(chunk);
        // A long line is put together once, when it ends, and not looked through with each of its pieces.
        if (!/[\r\n]/.test(chunk)) return;
        const lines = pending.join("").split(/\r\n|\n|\r(?!$)/);
        const rest = lines.pop();
        pending = [rest];
        length = rest.length;
        lines.forEach(lineEnds);
      },
      retry: () => retry,
    };
  }

  /**
   * Follows a stream of events until `stop()`. After a break it asks again, from the last event that it
   * got, with waits that double up to 15 seconds; `onState` gets `connecting`, `live`, `reconnecting`
   * (and when it tries again) or `refused` (and the refusal, which no second try would change).
   */
  function follow(path, { onEvent, onState, lastId }) {
    const abort = new AbortController();
    let last = lastId;
    let wait = FIRST_WAIT;
    let timer;
    let isOver = false;
    let wake = () => {};

    async function once() {
      onState?.("connecting");
      const extra = { accept: "text/event-stream" };
      if (last !== undefined) extra["last-event-id"] = String(last);
      const response = await send(path, { headers: extra, signal: abort.signal });
      onState?.("live");
      const stream = decoder((data, id) => {
        if (id !== undefined) last = id;
        wait = stream.retry() ?? FIRST_WAIT;
        let event;
        try {
          event = JSON.parse(data);
        } catch {
          return;
        }
        onEvent(event, id);
      });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        stream.feed(value);
      }
    }

    async function forever() {
      while (!isOver) {
        try {
          await once();
        } catch (error) {
          if (isOver) return;
          const isFinal = error instanceof Refused && [400, 401, 403, 404, 410].includes(error.status);
          if (isFinal) return onState?.("refused", error);
          if (error.retryAfter) wait = Math.max(wait, error.retryAfter);
        }
        if (isOver) return;
        // Pages that lost the same server must not come back at the same moment.
        const pause = wait * (0.75 + Math.random() / 2);
        onState?.("reconnecting", Date.now() + pause);
        await new Promise((resolve) => {
          wake = resolve;
          timer = setTimeout(resolve, pause);
        });
        wait = Math.min(wait * 2, MAX_WAIT);
      }
    }

    forever();
    return {
      stop() {
        isOver = true;
        clearTimeout(timer);
        abort.abort();
        wake();
      },
      now() {
        clearTimeout(timer);
        wake();
      },
    };
  }

  return {
    Refused,
    get,
    post,
    remove,
    send,
    follow,
    token,
    keepToken,
    onUnauthorized: (handler) => (whenUnauthorized = handler),
  };
})();
