// The controls above the picture: navigation in the journal, and the next actions. Every button has a Python method.

import { button, el, enable, keyed, setClass, setText, setTitle, svg, titled } from "./dom.js";

const FACES = { stop: "✖", start: "▲", act: "◆", freeze: "❙❙", thaw: "▲", session_lost: "✖", drop_request: "◆", duplicate_request: "◆", fire_timer: "◆", record_lost: "✖", tail_lost: "✖" };

// ---------------------------------------------------------------- navigation in the journal

export function walkBar(go) {
  const title = el("b"), release = el("span", "kc-tag"), world = el("span", "kc-tag"), place = el("span", "kc-place");
  const buttons = [
    button("previous_fault", "«", "previous fault or action (shift and left arrow)", () => go.fault(-1)),
    button("back", "‹", "back (left arrow)", () => go.by(-1)),
    button("forward", "›", "forward (right arrow)", () => go.by(1)),
    button("next_fault", "»", "next fault or action (shift and right arrow)", () => go.fault(1)),
    button("to", "now", "to the last record (End)", () => go.to(Infinity)),
  ];
  const node = el("div", "kc-bar", title, release, world, el("span", "kc-walk", ...buttons), place);
  node.setAttribute("role", "toolbar");
  node.setAttribute("aria-label", "navigation in the journal");
  // A wall clock's time is a date in UTC, virtual time a number of ms; a recording has no times.
  const timeOf = ({ at_ms }, clock) => ({ wall: () => ` · ${new Date(at_ms).toISOString().replace("T", " ").replace("Z", " UTC")}`, virtual: () => ` · ${at_ms} ms` })[clock]?.() ?? "";
  function draw(scene) {
    setText(title, scene.title);
    title.hidden = !scene.title;
    setText(release, scene.release ? `Kafka ${scene.release}` : "");
    setText(world, scene.world);
    release.hidden = !scene.release;
    world.hidden = !scene.world;
    setText(place, scene.record ? `record ${scene.index + 1} of ${scene.timeline.length}${timeOf(scene.record, scene.clock)}` : "no records");
    const last = scene.timeline.length - 1;
    buttons.forEach((b, i) => enable(b, i < 2 ? scene.index > 0 : scene.index < last));
  }
  return { node, draw };
}

const MARKS = 400; // the most marks above the slider; of more marks only every second or third one is drawn

// The slider, with a band for the terms of controllers and a mark for every action from outside.
export function trackBar(go) {
  const slider = el("input", "kc-slider"), reigns = el("div", "kc-reigns"), marks = el("div", "kc-marks");
  Object.assign(slider, { type: "range", min: 0, step: 1 });
  slider.dataset.do = "to";
  slider.setAttribute("aria-label", "position in the journal");
  slider.addEventListener("input", () => go.soon(+slider.value));
  const node = el("div", "kc-track", marks, slider, reigns);
  let known = -1;
  function draw(scene) {
    const { timeline } = scene, last = Math.max(1, timeline.length - 1), part = (index) => `${(100 * index) / last}%`;
    slider.max = last;
    slider.value = scene.index;
    slider.setAttribute("aria-valuetext", `record ${scene.index + 1} of ${timeline.length}: ${scene.record?.say ?? ""}`);
    if (known === timeline.length) return;
    known = timeline.length;
    const every = Math.ceil(timeline.acts.length / MARKS);
    keyed(marks, timeline.acts.filter((_, i) => i % every === 0), String, (index) => {
      const mark = el("span", `kc-face ${timeline.records[index].kind}`, FACES[timeline.records[index].kind] ?? "◆");
      mark.addEventListener("click", () => go.to(index));
      return mark;
    }, (mark, index) => {
      mark.style.left = part(index);
      setTitle(mark, timeline.records[index].say);
    });
    keyed(reigns, timeline.reigns, (reign) => reign.from, (reign) => el("span", "", `♛ ${reign.broker}`), (band, reign) => {
      const to = reign.to ?? last;
      band.style.left = part(reign.from);
      band.style.width = `${(100 * (to - reign.from)) / last}%`;
      setTitle(band, `broker ${reign.broker} is named in /controller`);
    });
  }
  return { node, draw };
}

// The sentence of the record; at the end of a run at rest, the last decision with its rule. Screen readers read it aloud.
export function sentenceBar(askWhy, goTo) {
  const text = el("span", "kc-sentence"), rule = el("span", "kc-dim"), cause = el("button", "kc-link kc-cause");
  let shown = 0, target = 0;
  const why = button("why", "why?", "the chain of causes of this", () => askWhy(shown));
  text.setAttribute("role", "status");
  text.setAttribute("aria-live", "polite");
  cause.type = "button";
  cause.dataset.do = "to";
  cause.addEventListener("click", () => goTo(target));
  const node = el("div", "kc-now", text, rule, cause, why);
  function draw(scene) {
    shown = scene.headline;
    const record = scene.timeline.records[shown], decides = scene.rests ? record?.decides : "", id = record?.cause?.join(".");
    setText(text, decides || (record?.say ?? "Nothing has happened yet."));
    setText(rule, decides ? record.rule : "");
    target = id ? scene.timeline.byId.get(id) ?? 0 : 0;
    setText(cause, id ? `because of ${id}` : "");
    cause.hidden = why.hidden = !id;
    if (id) setTitle(cause, scene.timeline.records[target].say);
  }
  return { node, draw };
}

// ---------------------------------------------------------------- branches

function chooser(name, title, first, onChoose) {
  const select = el("select", "kc-select");
  select.dataset.do = name;
  select.setAttribute("aria-label", title);
  setTitle(select, title);
  select.addEventListener("change", () => onChoose(select.value));
  const fill = (names, chosen) => {
    const options = [...first, ...names.map((branch) => [branch, branch])];
    keyed(select, options, ([value]) => value, ([value, text]) => Object.assign(el("option", "", text), { value }));
    select.value = chosen;
  };
  return { select, fill };
}

// The controls to switch between branches, to branch off at the record that is shown, and to choose a run to compare with.
export function branchBar(go) {
  const branches = chooser("click_switch", "the branch that is shown", [], go.switchTo);
  const others = chooser("click_compare", "the branch to show beside this one", [["", "nothing"]], go.compare);
  const name = Object.assign(el("input", "kc-field"), { type: "text", placeholder: "name", size: 12, maxLength: 60 });
  name.setAttribute("aria-label", "name of the new branch");
  const make = button("click_branch", "branch here", "branch off after the record that is shown", () => {
    go.branch(name.value.trim());
    name.value = "";
  });
  name.addEventListener("keydown", (event) => event.key === "Enter" && make.click());
  const node = el("div", "kc-bar kc-branches", el("label", "kc-pair", "branch ", branches.select), el("label", "kc-pair", "beside it ", others.select), el("span", "kc-pair", make, name));
  node.setAttribute("role", "toolbar");
  node.setAttribute("aria-label", "branches");
  function draw(scene) {
    node.hidden = scene.branches.length === 0;
    branches.fill(scene.branches, scene.branch);
    others.fill(scene.branches.filter((other) => other !== scene.branch), scene.otherName);
    others.select.disabled = scene.branches.length < 2;
    enable(make, !scene.busy && !scene.held);
  }
  return { node, draw };
}

// ---------------------------------------------------------------- the next actions

const SHOWN = 5; // routine actions in sight before the rest goes into a menu
const GROUPS = ["kill", "start", "terminate", "freeze", "thaw", "expire_session", "delete", "create_topic", "delete_topic", "drop_request", "duplicate_request", "shrink_isr", "fire_timer"];

function menu(className, heading) {
  const count = el("span", "kc-number"), list = el("div", "kc-menu-list");
  const node = el("details", `kc-menu ${className}`, el("summary", "kc-button", heading, count), list);
  const close = () => {
    if (list.contains(document.activeElement)) node.firstChild.focus({ preventScroll: true });
    node.open = false;
  };
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !node.open) return;
    close();
    event.stopPropagation();
  });
  return { node, list, count, close };
}

// `act(action)` requests one action, without an argument the next routine action; `run()` all routine actions until none is left.
export function actionBar(act, run) {
  const step = button("click_step", "▶ step", "perform the next routine action", () => act(null));
  const go = button("click_run", "▶▶ run", "perform routine actions until the cluster is quiet", run);
  const routine = el("span", "kc-routine"), more = menu("kc-more", "more"), faults = menu("kc-faults", "⚡ faults");
  const quiet = el("span", "kc-dim"), held = el("span", "kc-held");
  const node = el("div", "kc-bar kc-actions", step, go, routine, more.node, faults.node, quiet, held);
  node.setAttribute("role", "toolbar");
  node.setAttribute("aria-label", "next actions");

  function fill(list, actions, free) {
    const make = ([action, label]) => button("click_step", label, label, () => {
      more.close();
      faults.close();
      act(action);
    });
    keyed(list, actions, ([action]) => JSON.stringify(action), make, (b, [, label]) => {
      setText(b, label);
      setTitle(b, label);
      enable(b, free);
    });
  }

  // One line for each kind of fault, the most used kinds first.
  function fillGroups(list, actions, free) {
    const rank = (kind) => (GROUPS.includes(kind) ? GROUPS.indexOf(kind) : GROUPS.length);
    const kinds = [...new Set(actions.map(([action]) => action[0]))].sort((a, b) => rank(a) - rank(b));
    keyed(list, kinds, String, () => el("div", "kc-group"), (line, kind) => fill(line, actions.filter(([action]) => action[0] === kind), free));
  }

  function draw(scene) {
    node.hidden = !scene.live;
    const had = node.contains(document.activeElement) && document.activeElement;
    const free = !scene.busy && !scene.held, ordinary = scene.actions.filter((a) => a[2] === "routine"), others = scene.actions.filter((a) => a[2] !== "routine");
    fill(routine, ordinary.slice(0, SHOWN), free);
    fill(more.list, ordinary.slice(SHOWN), free);
    fillGroups(faults.list, others, free);
    more.node.hidden = ordinary.length <= SHOWN;
    setText(more.count, String(ordinary.length - SHOWN));
    setText(faults.count, String(others.length));
    faults.node.hidden = others.length === 0;
    for (const b of [step, go]) enable(b, free && ordinary.length > 0);
    setTitle(step, ordinary.length ? `next: ${ordinary[0][1]}` : "no routine action is left");
    setText(quiet, scene.busy ? scene.busy : ordinary.length ? "" : "quiet: no routine action is left");
    setClass(node, `kc-bar kc-actions${scene.busy ? " busy" : ""}`);
    node.setAttribute("aria-busy", String(Boolean(scene.busy)));
    setText(held, scene.held);
    if (had && !had.isConnected) (faults.node.open ? faults.node.firstChild : step).focus({ preventScroll: true });
  }
  return { node, draw };
}

// The text of the last error; it remains until an action succeeds.
export function errorBar() {
  const node = el("div", "kc-error");
  node.setAttribute("role", "alert");
  const draw = (scene) => {
    setText(node, scene.error);
    node.hidden = !scene.error;
  };
  return { node, draw };
}
