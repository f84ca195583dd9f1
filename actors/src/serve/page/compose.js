// What a person sends: a prompt to the open session, an interrupt, a new session.
"use strict";

const compose = (() => {
  function mount(form, { send, interrupt }) {
    const prompt = form.elements.prompt;
    const button = form.querySelector('button[type="submit"]');
    const stop = form.querySelector("[data-interrupt]");
    const deliveries = form.querySelector("fieldset");
    const problem = form.querySelector(".problem");
    const drafts = new Map();
    let id;
    let isRunning = false;

    function grow() {
      prompt.style.height = "auto";
      prompt.style.height = `${Math.min(prompt.scrollHeight + 2, 240)}px`;
    }

    function fail(error) {
      problem.hidden = !error;
      dom.say(
        problem,
        error
          ? error.retryAfter
            ? `${error.message}. Try again in ${text.duration(error.retryAfter)}.`
            : error.message
          : "",
      );
    }

    prompt.addEventListener("input", grow);
    prompt.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        form.requestSubmit();
      }
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const words = prompt.value;
      if (!words.trim() || button.disabled) return;
      button.disabled = true;
      fail();
      try {
        await send(words, isRunning ? form.elements.delivery.value : "queue");
        prompt.value = "";
        drafts.delete(id);
        grow();
        dom.announce("The prompt was accepted");
      } catch (error) {
        fail(error);
      }
      button.disabled = false;
    });
    stop.addEventListener("click", async () => {
      stop.disabled = true;
      fail();
      try {
        await interrupt();
        dom.announce("The run is interrupted");
      } catch (error) {
        fail(error);
      }
      stop.disabled = false;
    });

    return {
      show(session, running) {
        if (session !== id) {
          drafts.set(id, prompt.value);
          id = session;
          prompt.value = drafts.get(id) ?? "";
          fail();
          grow();
        }
        isRunning = running;
        deliveries.hidden = !running;
        stop.hidden = !running;
        dom.attribute(prompt, "placeholder", running ? "Prompt for after, or during, this run" : "Prompt");
      },
      focus: () => prompt.focus(),
    };
  }

  /** The dialog that starts a session. */
  function dialog(box, { start }) {
    const form = box.querySelector("form");
    const problem = form.querySelector(".problem");
    form.addEventListener("submit", async (event) => {
      if (event.submitter?.value === "cancel") return;
      event.preventDefault();
      const field = (name) => form.elements[name].value.trim();
      const body = {};
      for (const name of ["title", "directory", "model", "mode"]) if (field(name)) body[name] = field(name);
      const button = form.querySelector('button[value="start"]');
      button.disabled = true;
      problem.hidden = true;
      try {
        await start(body, form.elements.prompt.value);
        form.reset();
        box.close();
      } catch (error) {
        problem.hidden = false;
        dom.say(problem, error.message);
      }
      button.disabled = false;
    });
  }

  return { mount, dialog };
})();
