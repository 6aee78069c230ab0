// The page: what is chosen, the controls that choose it, and the view that draws it.

if (!root) return;
const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
const PARTS = { 0: data.kinds.some((k) => k.from.part.includes(1) || k.to.part.includes(1)) ? "A" : "text", 1: "B", 2: "generated" };
const state = { view: "head", kind: 0, layer: 0, head: 0, heads: new Set(), special: "shown", threshold: 0, filter: "all", scale: "shown", opened: null };
const decoded = new Map(), maxima = new Map();
const find = (selector) => root.querySelector(selector);
const control = (name) => find(`[data-control="${name}"]`);

function once(key, make) {
  if (!decoded.has(key)) decoded.set(key, make());
  return decoded.get(key);
}

function unpacked(what, kind, layer, make) {
  return once(`${what}-${kind}-${layer}`, async () => make(layer, await inflated(find(`[data-blob="${what}-${kind}-${layer}"]`))));
}

// The places that special tokens and the choice of texts leave.
function seen(side, at) {
  const axis = app.kind()[side], part = state.filter === "all" ? null : Number(state.filter.split(">")[at]);
  return axis.labels.map((_, i) => i).filter((i) => (state.special !== "hidden" || !axis.special[i]) && (part === null || axis.part[i] === part));
}

const app = {
  root, data, state, theme: themeOf(root),
  kind: () => data.kinds[state.kind],
  rows: () => seen("from", 0),
  columns: () => seen("to", 1),
  never: (i, j) => app.kind().causal && j > i, // what a causal model cannot see has no number
  greyed: (special) => Boolean(special) && state.special === "greyed",
  layer: (kind, layer) => unpacked("weights", kind, layer, (l, bytes) => unpackedLayer(data.kinds[kind], l, bytes)),
  neurons: (kind, layer) => unpacked("neurons", kind, layer, (l, bytes) => unpackedNeurons(data.kinds[kind].neurons, l, bytes)),
  // What full colour stands for in a head: its largest weight among the places that are shown in colour, or 1.
  largest(layer, index, head) {
    if (state.scale === "one") return 1;
    const key = [state.kind, index, head, state.special === "shown", state.filter].join();
    if (!maxima.has(key)) {
      let most = 1e-9;
      const { from, to } = app.kind(), coloured = (axis) => (i) => state.special === "shown" || !axis.special[i];
      const columns = app.columns().filter(coloured(to));
      for (const i of app.rows().filter(coloured(from))) for (const j of columns) most = Math.max(most, layer.weight(head, i, j));
      maxima.set(key, most);
    }
    return maxima.get(key);
  },
  title: () => [data.model, data.kinds.length > 1 ? app.kind().name : ""].filter(Boolean).join(" · ") || "Attention",
  where(whole) {
    const { heads, layers } = app.kind(), on = [...state.heads].sort((a, b) => a - b);
    const which = on.length === heads.length && on.length > 1 ? `mean of all ${on.length} heads` : on.length > 6 ? `mean of ${on.length} heads` : `${on.length > 1 ? "mean of heads" : "head"} ${on.map((h) => heads[h]).join(", ") || "none"}`;
    const here = `layer ${layers[state.layer]}, ${which}`;
    return whole ? `${app.title()} · ${here.replace("mean of ", "")}` : here;
  },
  say(text) {
    find(".status").textContent = text;
  },
  choose(changes) {
    Object.assign(state, changes);
    controls();
  },
  draw,
  // Heat over the image: weights of the places that are patches.
  picture(places, weights, caption, where = app.where()) {
    const figure = find(".picture");
    if (!figure) return;
    const { rows, columns, cells } = data.image, canvas = figure.querySelector("canvas");
    const most = weights.reduce((a, b) => Math.max(a, b), 1e-9), colours = app.theme.map;
    painted(canvas, rows, columns, () => colours[0]);
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, columns, rows);
    places.forEach((p, n) => {
      if (!cells[p] || weights[n] < state.threshold) return;
      context.fillStyle = `rgb(243 132 28 / ${(0.75 * weights[n]) / most})`;
      context.fillRect(cells[p][1], cells[p][0], 1, 1);
    });
    figure.querySelector("figcaption").textContent = caption ? `${caption}; ${where}; full colour at ${most.toFixed(3)}` : "";
  },
};

function options(select, all, chosen) {
  if (select.dataset.all !== JSON.stringify(all)) {
    select.dataset.all = JSON.stringify(all);
    select.replaceChildren(...all.map(([value, text]) => made("option", { value, textContent: text })));
  }
  select.value = chosen;
}

// Which text looks at which: only where a side has more than one, and only what a causal model can do.
function filters() {
  const kind = app.kind(), parts = (axis) => [...new Set(axis.part)].filter((p) => p >= 0).sort();
  const from = parts(kind.from), to = parts(kind.to);
  if (from.length < 2 && to.length < 2) return [["all", "all"]];
  const pairs = from.flatMap((f) => to.filter((t) => !kind.causal || t <= f).map((t) => [`${f}>${t}`, `${PARTS[f]} → ${PARTS[t]}`]));
  return [["all", "all"], ...pairs];
}

function controls() {
  const kind = app.kind(), available = filters();
  state.layer = Math.min(state.layer, kind.layers.length - 1);
  state.head = Math.min(state.head, (kind.neurons || kind).heads.length - 1);
  if (!available.some(([value]) => value === state.filter)) state.filter = "all";
  options(control("layer"), kind.layers.map((name, i) => [String(i), name]), String(state.layer));
  options(control("head"), (kind.neurons || kind).heads.map((name, i) => [String(i), name]), String(state.head));
  options(control("filter"), available, state.filter);
  find(".control.kind").hidden = data.kinds.length < 2;
  find(".control.filter").hidden = available.length < 2;
  find(".control.special").hidden = !kind.from.special.includes(1) && !kind.to.special.includes(1);
  find(".threshold output").textContent = state.threshold ? state.threshold.toPrecision(2) : "0";
  root.dataset.view = state.view;
  for (const tab of root.querySelectorAll("[role=tab]")) {
    const on = tab.dataset.view === state.view;
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
    root.querySelector(`.panel.${tab.dataset.view}`).hidden = !on;
  }
  chips();
  share();
}

function chips() {
  const { heads } = app.kind(), group = find(".heads");
  if (group.dataset.kind !== String(state.kind)) {
    group.dataset.kind = state.kind;
    const chip = (name, h) => made("button", { type: "button", className: "chip", "data-head": h, title: "click: on or off; double click: only this one", textContent: name });
    group.replaceChildren(made("span", { className: "soft", textContent: "Heads" }), ...heads.map(chip), made("button", { type: "button", className: "every", textContent: "all" }));
  }
  group.querySelectorAll(".chip").forEach((chip, h) => {
    chip.style.setProperty("--chip", app.theme.head(h));
    chip.setAttribute("aria-pressed", String(state.heads.has(h)));
    chip.setAttribute("aria-label", `head ${heads[h]}`);
  });
}

function share() {
  const all = app.kind().share[state.layer], one = state.view === "neuron" ? state.head : state.view === "model" && state.opened ? state.opened.head : null;
  const on = one === null ? [...state.heads] : [one];
  const mean = on.reduce((sum, h) => sum + all[h], 0) / on.length;
  const special = app.kind().to.special.includes(1);
  const where = one === null ? app.where() : `layer ${app.kind().layers[state.layer]}, head ${app.kind().heads[one]}`;
  find(".share").textContent = on.length && special && Number.isFinite(mean) ? `Special tokens hold ${percent(mean)} of the attention (${where}).` : "";
}

let views = null, turn = 0;

async function draw() {
  const mine = ++turn;
  root.setAttribute("aria-busy", "true");
  try {
    await views[state.view].draw();
  } catch (problem) {
    app.say(`This could not be drawn: ${problem.message}. The page needs a browser of 2023 or later.`);
  }
  if (mine === turn) root.setAttribute("aria-busy", "false");
}

function change(name, value) {
  if (name === "kind") {
    const all = data.kinds[value].heads.length;
    if (all !== app.kind().heads.length) state.heads = new Set(Array(all).keys());
  }
  if (name === "view" && value === "neuron") state.head = state.opened ? state.opened.head : state.heads.size === 1 ? [...state.heads][0] : state.head;
  app.say("");
  app.choose({ [name]: value });
  draw();
}

root.addEventListener("input", (event) => {
  const name = event.target.dataset.control;
  if (!name) return;
  const { value } = event.target;
  // most weights are small: the slider is finest there
  change(name, name === "threshold" ? (value / 100) ** 2.5 : ["kind", "layer", "head"].includes(name) ? Number(value) : value);
});
root.addEventListener("click", (event) => {
  const tab = event.target.closest("[role=tab]"), chip = event.target.closest(".chip");
  if (tab) change("view", tab.dataset.view);
  if (event.target.closest(".every")) change("heads", new Set(app.kind().heads.keys()));
  if (!chip) return;
  const heads = new Set(state.heads), head = Number(chip.dataset.head);
  if (!heads.delete(head)) heads.add(head);
  change("heads", heads);
});
root.addEventListener("dblclick", (event) => {
  const chip = event.target.closest(".chip");
  if (chip) change("heads", new Set([Number(chip.dataset.head)]));
});
root.addEventListener("keydown", (event) => {
  const step = { "[": -1, "]": 1 }[event.key], layer = state.layer + step;
  if (!step || event.ctrlKey || event.metaKey || layer < 0 || layer >= app.kind().layers.length) return;
  change("layer", layer);
});
arrows(find(".tabs"), "[role=tab]", { ArrowRight: 1, ArrowLeft: -1, Home: () => 0, End: () => Infinity });
find(".tabs").addEventListener("focusin", (event) => {
  if (event.target.dataset.view !== state.view) change("view", event.target.dataset.view);
});

const dark = window.matchMedia("(prefers-color-scheme: dark)"), theme = find(".theme");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
function themed() {
  app.theme = themeOf(root);
  theme.setAttribute("aria-pressed", String(isDark()));
  chips();
  draw();
}
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  themed();
});
dark.addEventListener("change", themed);
let width = find(".panels").clientWidth;
new ResizeObserver(() => {
  if (find(".panels").clientWidth === width) return; // a view that grows taller is no reason to draw it again
  width = find(".panels").clientWidth;
  draw();
}).observe(find(".panels"));

// A clipboard may refuse, above all in a page from the disk; then the file is downloaded instead.
root.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-export]");
  if (!button) return;
  const [how, format] = button.dataset.export.split("-");
  const source = await views[state.view].figure();
  const blob = () => (format === "svg" ? new Blob([source], { type: "image/svg+xml" }) : pngOf(source));
  const name = `whence-${state.view}-${app.kind().name}-layer-${app.kind().layers[state.layer]}.${format}`;
  if (how === "copy") {
    try {
      if (format === "svg") await navigator.clipboard.writeText(source);
      else await navigator.clipboard.write([new ClipboardItem({ "image/png": blob() })]);
      return app.say(`Copied as ${format.toUpperCase()}.`);
    } catch {
      app.say("The clipboard refused, so the file is downloaded.");
    }
  }
  saved(await blob(), name);
});

state.heads = new Set(app.kind().heads.keys());
views = { head: headView(app), model: modelView(app), neuron: neuronView(app) };
app.choose({});
themed();
