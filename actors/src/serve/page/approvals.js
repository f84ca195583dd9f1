// Questions that wait for a person: what would be done, why it is asked, and the answer.
"use strict";

const approvals = (() => {
  /** A card for one question. `answer(question, {allow, reason})` returns a promise. */
  function card(question, answer, { open } = {}) {
    const id = `q-${question.id}`;
    const reason = dom.el("input", {
      type: "text",
      id: `${id}-reason`,
      maxlength: "2000",
      autocomplete: "off",
      placeholder: "Reason, if you deny; the model reads it",
    });
    const rule = dom.el(
      "select",
      { id: `${id}-rule` },
      dom.el("option", { value: "" }, "Only this once"),
      question.suggestions.map((it) => dom.el("option", { value: it }, `From now on: ${it}`)),
    );
    const hasRules = 0 < question.suggestions.length;
    const allow = dom.el(
      "button",
      { type: "button", class: "primary", on: { click: () => decide(true) } },
      "Allow",
    );
    const deny = dom.el("button", { type: "button", on: { click: () => decide(false) } }, "Deny");
    const problem = dom.el("p", { class: "problem", role: "alert", hidden: true });
    const left = dom.el("span", { class: "left" });
    const input = question.input;
    const change = diff.ofCall(question.tool, input);
    const about = calls.summary(input);
    const from = dom.el("p", { class: "muted from", dir: "auto", hidden: true });
    const chosen = asking.fits(question) && asking.mount(question, { decide: send });
    const node = dom.el(
      "article",
      { class: "question", "aria-labelledby": `${id}-title`, data: { id: question.id } },
      dom.el(
        "header",
        null,
        dom.el(
          "h4",
          { id: `${id}-title` },
          chosen
            ? `${question.agent ? "A sub-agent" : "The model"} asks you`
            : `May ${question.agent ? "a sub-agent" : "the model"} use ${question.tool}?`,
        ),
        left,
      ),
      from,
      chosen
        ? chosen.nodes
        : [
            about && dom.el("p", { class: "about", dir: "auto" }, about),
            question.reason && dom.el("p", { class: "muted" }, `Asked because ${text.line(question.reason, 300)}`),
            change ?? dom.longText(text.json(input), { className: "code-block", most: 3000 }),
          ],
      dom.el(
        "div",
        { class: "answer" },
        dom.el("label", { class: "spoken", for: `${id}-reason` }, "Reason, if you deny"),
        reason,
        deny,
        chosen && chosen.buttons,
        !chosen &&
          hasRules && [dom.el("label", { class: "spoken", for: `${id}-rule` }, "How long it is allowed"), rule],
        !chosen && allow,
        open && dom.el("button", { type: "button", class: "quiet", on: { click: open } }, "Open session"),
      ),
      problem,
    );
    reason.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        decide(false);
      }
    });
    node.parts = { left, from, isLinked: Boolean(open) };

    function decide(isAllowed) {
      const given = { allow: isAllowed, reason: reason.value.trim(), rule: rule.value };
      return send(given, `${question.tool} is ${isAllowed ? "allowed" : "denied"}`);
    }

    async function send(given, done) {
      const buttons = [allow, deny, ...(chosen ? chosen.buttons : [])];
      for (const it of buttons) it.disabled = true;
      problem.hidden = true;
      try {
        await answer(question, given);
        dom.announce(done);
      } catch (error) {
        problem.hidden = false;
        dom.say(problem, error.message);
        for (const it of buttons) it.disabled = false;
      }
    }
    return node;
  }

  function update(node, question) {
    const { from, isLinked } = node.parts;
    from.hidden = !isLinked;
    if (isLinked) dom.say(from, [question.title || question.session, question.tenant].filter(Boolean).join(" · "));
    const ms = question.expires - Date.now();
    dom.say(node.parts.left, question.expires ? (0 < ms ? `${text.duration(ms)} left` : "expired") : "");
  }

  function mount(region, { answer, open }) {
    const listed = dom.el("div", { class: "questions" });
    region.append(listed);
    return {
      show(questions, { hasLink } = {}) {
        region.hidden = questions.length === 0;
        dom.keyed(
          listed,
          questions.slice(0, 30),
          (it) => it.id,
          (it) => card(it, answer, { open: hasLink ? () => open(it.session) : undefined }),
          update,
        );
      },
      focus() {
        listed.querySelector("button.primary")?.focus();
      },
    };
  }

  return { mount };
})();
