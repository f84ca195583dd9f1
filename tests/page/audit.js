// Looks for what keeps people out: controls without a name, text that is too faint, roles without what
// they need, targets that are too small. Returns what is wrong, as text.
() => {
  const wrong = [];
  const isShown = (it) => it.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && it.getClientRects().length > 0;
  const where = (it) => `${it.tagName.toLowerCase()}${it.id ? `#${it.id}` : ""}.${it.getAttribute("class") ?? ""} "${(it.textContent ?? "").trim().slice(0, 40)}"`;

  function nameOf(it) {
    const by = (it.getAttribute("aria-labelledby") ?? "").split(/\s+/).filter(Boolean);
    const labelled = by.map((id) => document.getElementById(id)?.textContent ?? "").join(" ");
    const labels = [...(it.labels ?? [])].map((label) => label.textContent).join(" ");
    return (labelled || it.getAttribute("aria-label") || labels || (it.matches("button, a, summary, [role=tab], [role=option], [role=treeitem]") ? it.textContent : "") || "").trim();
  }

  for (const it of document.querySelectorAll("button, a[href], input, select, textarea, summary, dialog[open], [role=tab], [role=listbox], [role=tree], [role=tablist], [role=img], [role=tabpanel], [role=region], nav, section[aria-label]")) {
    if (isShown(it) && !nameOf(it)) wrong.push(`no name: ${where(it)}`);
  }
  for (const it of document.querySelectorAll("[aria-controls], [aria-labelledby], [aria-describedby], [aria-activedescendant]")) {
    for (const attribute of ["aria-controls", "aria-labelledby", "aria-describedby", "aria-activedescendant"]) {
      for (const id of (it.getAttribute(attribute) ?? "").split(/\s+/).filter(Boolean)) {
        if (!document.getElementById(id)) wrong.push(`${attribute} names nothing (${id}): ${where(it)}`);
      }
    }
  }
  const ids = [...document.querySelectorAll("[id]")].map((it) => it.id);
  ids.filter((id, at) => ids.indexOf(id) !== at).forEach((id) => wrong.push(`id twice: ${id}`));
  const within = { tab: "[role=tablist]", option: "[role=listbox]", treeitem: "[role=tree]" };
  for (const [role, parent] of Object.entries(within)) {
    for (const it of document.querySelectorAll(`[role=${role}]`)) if (!it.closest(parent)) wrong.push(`${role} outside of ${parent}`);
  }
  for (const it of document.querySelectorAll("[role=tablist], [role=tree]")) {
    const stops = [...it.querySelectorAll("[role=tab], [role=treeitem]")].filter((one) => isShown(one));
    if (stops.length && stops.filter((one) => one.tabIndex === 0).length !== 1) wrong.push(`not one tab stop: ${where(it)}`);
  }
  for (const landmark of ["header", "nav", "main"]) if (document.querySelectorAll(`body > ${landmark}`).length !== 1) wrong.push(`not one ${landmark}`);

  const colour = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((it) => it / 255).map((it) => (it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4)).reduce((sum, it, at) => sum + it * [0.2126, 0.7152, 0.0722][at], 0);
  function groundOf(it) {
    for (let node = it; node; node = node.parentElement) {
      const [r, g, b, a = 1] = colour(getComputedStyle(node).backgroundColor);
      if (0.99 < a) return [r, g, b];
    }
    return colour(getComputedStyle(document.body).backgroundColor);
  }
  for (const it of document.querySelectorAll("body *")) {
    const hasText = [...it.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!hasText || !isShown(it) || it.closest("svg, .spoken, .skip, option, :disabled, [data-state=ended]")) continue;
    const style = getComputedStyle(it);
    const [a, b] = [light(colour(style.color)), light(groundOf(it))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) wrong.push(`contrast ${contrast.toFixed(2)}: ${where(it)}`);
  }
  for (const it of document.querySelectorAll("button, select, input, summary, [role=treeitem]")) {
    const box = it.getBoundingClientRect();
    const isSmall = box.height < 24 || (box.width < 24 && !it.closest(".strip"));
    if (isShown(it) && isSmall && !it.closest("label, .spoken")) wrong.push(`target ${Math.round(box.width)}×${Math.round(box.height)}: ${where(it)}`);
  }
  return wrong;
}
