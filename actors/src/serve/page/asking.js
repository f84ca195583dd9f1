// The question by which a model asks a person to choose: its options, a field for other words, and the answers.
"use strict";

const asking = (() => {
  const TOOL = "AskUserQuestion";

  /** The questions of a call as the page shows them; none if the input has another shape. */
  function questionsOf(asked) {
    const all = asked.tool === TOOL && Array.isArray(asked.input?.questions) ? asked.input.questions : [];
    const isOne = (it) => typeof it?.question === "string" && Array.isArray(it.options);
    if (all.length < 1 || 4 < all.length || !all.every(isOne)) return [];
    return all.map((it) => ({
      words: it.question,
      header: String(it.header ?? ""),
      isMany: it.multiSelect === true,
      options: it.options
        .filter((one) => typeof one?.label === "string")
        .slice(0, 8)
        .map((one) => ({ label: one.label, about: String(one.description ?? ""), preview: one.preview })),
    }));
  }

  /** A group of options with a field for other words. `answer()` is a label, several, or nothing. */
  function group(it, id) {
    const name = `${id}-choice`;
    const inputs = it.options.map((one, n) =>
      dom.el("input", { type: it.isMany ? "checkbox" : "radio", name, id: `${name}-${n}` }),
    );
    const other = dom.el("input", {
      type: "text",
      id: `${id}-other`,
      maxlength: "4000",
      autocomplete: "off",
      placeholder: it.isMany ? "And in other words" : "Or in other words",
    });
    // Other words are the answer in the place of an option.
    if (!it.isMany) {
      other.addEventListener("input", () => {
        if (other.value.trim()) for (const one of inputs) one.checked = false;
      });
      for (const one of inputs) one.addEventListener("change", () => (other.value = ""));
    }
    const node = dom.el(
      "fieldset",
      { class: "choices" },
      dom.el("legend", { dir: "auto" }, it.header && dom.el("span", { class: "tag" }, text.line(it.header, 24)), it.words),
      it.options.map((one, n) => [
        dom.el(
          "label",
          { for: `${name}-${n}` },
          inputs[n],
          dom.el(
            "span",
            { dir: "auto" },
            dom.el("strong", null, one.label),
            one.about && dom.el("span", { class: "muted" }, one.about),
          ),
        ),
        one.preview && dom.longText(one.preview, { className: "code-block", most: 3000 }),
      ]),
      dom.el("label", { class: "spoken", for: `${id}-other` }, "Other words"),
      other,
    );
    return {
      node,
      answer() {
        const chosen = it.options.filter((_, n) => inputs[n].checked).map((one) => one.label);
        const words = other.value.trim();
        if (words) chosen.push(words);
        return chosen.length === 0 ? undefined : it.isMany ? chosen : chosen.at(-1);
      },
    };
  }

  /** What answers the questions of a call. `decide(given)` sends it; `has` is called where something is missing. */
  function mount(asked, { decide }) {
    const all = questionsOf(asked);
    const groups = all.map((it, n) => group(it, `q-${asked.id}-${n}`));
    const missing = dom.el("p", { class: "problem", role: "alert", hidden: true });
    const button = (words, attributes, click) => dom.el("button", { type: "button", ...attributes, on: { click } }, words);
    const buttons = [
      button("Let it pass", {}, () => decide({ allow: true }, "The question passes")),
      button("Answer", { class: "primary" }, send),
    ];
    function send() {
      const answers = {};
      groups.forEach((it, n) => {
        const found = it.answer();
        if (found !== undefined) answers[all[n].words] = found;
      });
      missing.hidden = Object.keys(answers).length === all.length;
      if (!missing.hidden) return dom.say(missing, "Choose an answer to each question, or let all of it pass.");
      decide({ allow: true, input: { ...asked.input, answers } }, "The answer was sent");
    }
    for (const it of groups)
      it.node.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || event.isComposing || event.target.type !== "text") return;
        event.preventDefault();
        send();
      });
    return { nodes: [...groups.map((it) => it.node), missing], buttons };
  }

  return { fits: (asked) => 0 < questionsOf(asked).length, mount };
})();
