// Creates and updates elements. Text from a journal becomes the data of a text node or the value of an attribute, nothing else.

const SVG = "http://www.w3.org/2000/svg";

export function el(tag, className = "", ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// An SVG element with a tooltip; SVG has no `title` attribute.
export function titled(node, text) {
  const title = svg("title");
  title.textContent = text;
  node.append(title);
  return node;
}

export function setText(node, text) {
  if (node.shownText !== text) node.textContent = node.shownText = text;
}

export function setClass(node, className) {
  if (node.shownClass !== className) {
    node.setAttribute("class", className);
    node.shownClass = className;
  }
}

export function setTitle(node, text) {
  if (node.title !== text) node.title = text;
}

// Keeps one child per key in `parent`, in the order of `items`: creates new children, updates the others, removes old ones.
// A child that remains is never removed and inserted again, so that it keeps the focus.
export function keyed(parent, items, keyOf, make, update) {
  const held = (parent.keyed ??= new Map());
  const wanted = new Set(items.map(keyOf));
  for (const [key, node] of held) {
    if (!wanted.has(key)) {
      node.remove();
      held.delete(key);
    }
  }
  let next = parent.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    let node = held.get(key);
    if (!node) {
      node = make(item);
      held.set(key, node);
    }
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
    update?.(node, item);
  }
}

// A button with the effect of the Python method of its name.
export function button(name, text, title, onClick) {
  const node = el("button", "kc-button", text);
  node.type = "button";
  node.dataset.do = name;
  setTitle(node, title);
  if (text.length < 3) node.setAttribute("aria-label", title);
  node.addEventListener("click", () => node.getAttribute("aria-disabled") !== "true" && onClick());
  return node;
}

export function enable(node, on) {
  node.setAttribute("aria-disabled", on ? "false" : "true");
}

export function panel(className, heading, ...children) {
  const title = el("h4", "", heading);
  const node = el("section", `kc-panel ${className}`, title, ...children);
  node.setAttribute("aria-label", heading);
  return node;
}

export function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
