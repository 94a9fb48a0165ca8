// Elements and the tooltip. Text becomes text nodes only, never markup.

// element("p", {class: "faint", onclick: f}, "text", child, ...)
export function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) on(made, key.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

export function byId(id) { return document.getElementById(id); }

export const isChord = (event) => event.ctrlKey || event.altKey || event.metaKey;

export function on(target, name, act) { target.addEventListener(name, act); }

// Shows lines beside the pointer; without lines, hides them.
function showTip(event, ...lines) {
  const tip = byId("tip");
  tip.hidden = lines.length === 0;
  if (tip.hidden) return;
  tip.replaceChildren(...lines.map((line, i) => element("div", { class: i ? "faint" : "" }, line)));
  const { offsetWidth: wide, offsetHeight: high } = tip;
  const x = event.clientX + 14, y = event.clientY + 16;
  tip.style.left = Math.max(4, Math.min(x, innerWidth - wide - 8)) + "px";
  tip.style.top = (y + high > innerHeight - 8 ? Math.max(4, event.clientY - high - 10) : y) + "px";
}

// The same for an element: `linesAt(event)` gives what to show.
export function tipOver(target, linesAt) {
  on(target, "pointermove", (event) => showTip(event, ...(linesAt(event) || [])));
  on(target, "pointerleave", (event) => showTip(event));
}
