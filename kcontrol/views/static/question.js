// A question with one button for each option. Traits and messages are described in kcontrol/views/question_widget.py.

const RUN_KEYS = (event) => event.key === "Enter" && (event.shiftKey || event.ctrlKey || event.altKey || event.metaKey);

function element(tag, className, text = "") {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = text;
  return node;
}

// Moves the focus to the next cell after an answer, so that Shift+Enter runs that cell.
function goOn(root) {
  const own = root.closest(".jp-Cell");
  let next = own?.nextElementSibling;
  while (next && !next.classList.contains("jp-Cell")) next = next.nextElementSibling;
  (next ?? own)?.focus({ preventScroll: true });
}

// With the focus on an option, JupyterLab's letters such as `d d` and `x` have no effect; the keys that run a cell work.
// JupyterLab's bindings match the focused element itself, so the attribute has to be on each option.
function passRunKeys(buttons) {
  const pass = (event) => {
    if (buttons.includes(event.target)) event.target.toggleAttribute("data-lm-suppress-shortcuts", !RUN_KEYS(event));
  };
  window.addEventListener("keydown", pass, true);
  return () => window.removeEventListener("keydown", pass, true);
}

function render({ model, el }) {
  const root = element("div", "kc-question");
  const id = `kc-question-${model.get("_anywidget_id") ?? ""}-${Math.random().toString(36).slice(2)}`;
  const asked = element("p", "kc-asked", model.get("question"));
  asked.id = id;
  const list = element("div", "kc-options");
  list.setAttribute("role", "group");
  list.setAttribute("aria-labelledby", id);
  const said = element("p", "kc-said");
  said.setAttribute("role", "status");
  const buttons = model.get("options").map((text, index) => {
    const button = element("button", "kc-option");
    button.type = "button";
    button.append(element("span", "kcq-mark"), element("span", "kcq-number", `${index + 1}`), element("span", "kcq-text", text));
    button.addEventListener("click", () => {
      if (button.getAttribute("aria-disabled") === "true") return;
      model.send({ choose: index + 1 });
      goOn(root);
    });
    return button;
  });
  const show = () => {
    const chosen = model.get("chosen"), marks = model.get("marks");
    const isShown = marks.some(Boolean);
    buttons.forEach((button, index) => {
      const mark = marks[index] ?? "";
      button.setAttribute("aria-pressed", String(chosen === index + 1));
      button.setAttribute("aria-disabled", String(isShown));
      button.className = `kc-option${mark === "✓" ? " kc-right" : mark === "✗" ? " kc-wrong" : ""}`;
      button.firstChild.textContent = mark;
      button.firstChild.title = mark === "✓" ? "right" : mark === "✗" ? "not right" : "";
    });
    said.textContent = model.get("said");
  };
  list.append(...buttons);
  root.append(asked, list, said);
  const stop = passRunKeys(buttons);
  for (const name of ["chosen", "marks", "said"]) model.on(`change:${name}`, show);
  show();
  el.append(root);
  return () => {
    stop();
    for (const name of ["chosen", "marks", "said"]) model.off(`change:${name}`, show);
  };
}

export default { render };
