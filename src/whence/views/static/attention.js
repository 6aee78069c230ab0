// The page: what is chosen, the controls that choose it, and the view that draws it.

if (!root) return;
const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
const PARTS = { 0: data.kinds.some((k) => k.from.part.includes(1) || k.to.part.includes(1)) ? "first text" : "text", 1: "second text", 2: "written" };
// place: the word that stays chosen, by the side on which it stands
const state = { view: "head", kind: data.kind, layer: 0, head: 0, heads: new Set(), place: null, special: "greyed", threshold: 0, filter: "all", scale: "shown", opened: null };
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
  return axis.labels.map((_, i) => i).filter((i) => (state.special !== "hidden" || !axis.apart[i]) && (part === null || axis.part[i] === part));
}

const app = {
  root, data, state, theme: themeOf(root),
  kind: () => data.kinds[state.kind],
  rows: () => seen("from", 0),
  columns: () => seen("to", 1),
  never: (i, j) => app.kind().causal && j > i, // what a causal model cannot see has no number
  greyed: (apart) => Boolean(apart) && state.special === "greyed",
  // one head alone has the colour of the text above; several are told apart
  colour: (head) => (state.heads.size > 1 ? app.theme.head(head) : app.theme.accent),
  layer: (kind, layer) => unpacked("weights", kind, layer, (l, bytes) => unpackedLayer(data.kinds[kind], l, bytes)),
  neurons: (kind, layer) => unpacked("neurons", kind, layer, (l, bytes) => unpackedNeurons(data.kinds[kind].neurons, l, bytes)),
  // Of a chosen place: the mean weight over some heads, for every place of the other side, and what special places hold.
  profile(layer, heads, one) {
    if (!one || !heads.length) return null;
    const from = one.side === "from", axis = from ? app.kind().to : app.kind().from;
    const others = from ? app.columns() : app.rows();
    const of = (h, o) => (from ? layer.weight(h, one.i, o) : layer.weight(h, o, one.i));
    // Said of which heads are shown together, and of the strongest patch.
    const averaged = (weights) => weights.reduce((a, b) => a + b, 0) / weights.length;
    const each = others.map((o) => heads.map((h) => of(h, o))), mean = each.map(averaged);
    const coloured = mean.filter((_, n) => state.special === "shown" || !axis.apart[others[n]]);
    const largest = state.scale === "one" ? 1 : coloured.reduce((a, b) => Math.max(a, b), 1e-9);
    let apart = 0; // also what hidden places hold
    axis.apart.forEach((is, o) => is && (apart += averaged(heads.map((h) => of(h, o)))));
    return { one, heads, others, each, mean, largest, apart };
  },
  // What full colour stands for in a row (or a column) of some heads.
  largestOfRow(layer, heads, one) {
    if (state.scale === "one") return 1;
    const from = one.side === "from", axis = from ? app.kind().to : app.kind().from;
    const others = (from ? app.columns() : app.rows()).filter((o) => state.special === "shown" || !axis.apart[o]);
    let most = 1e-9;
    for (const o of others) for (const h of heads) most = Math.max(most, from ? layer.weight(h, one.i, o) : layer.weight(h, o, one.i));
    return most;
  },
  // What full colour stands for in a head: its largest weight among the places that are shown in colour, or 1.
  largest(layer, index, head) {
    if (state.scale === "one") return 1;
    const key = [state.kind, index, head, state.special === "shown", state.filter].join();
    if (!maxima.has(key)) {
      let most = 1e-9;
      const { from, to } = app.kind(), coloured = (axis) => (i) => state.special === "shown" || !axis.apart[i];
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
  // What these heads of the chosen layer do.
  does(heads) {
    const kind = app.kind(), layer = `Layer ${kind.layers[state.layer]}`;
    if (!heads.length) return [`${layer}: no head is on.`];
    if (heads.length > 1) return [`${layer}: the mean of ${heads.length === kind.heads.length ? `all ${heads.length}` : heads.length} heads.`];
    const { opening } = kind, opens = state.kind === data.kind && state.layer === opening.layer && heads[0] === opening.head && kind.heads.length * kind.layers.length > 1;
    const name = /^\d+$/.test(kind.heads[heads[0]]) ? `head ${kind.heads[heads[0]]}` : `the ${kind.heads[heads[0]]} of its heads`;
    return [`${layer}, ${name} ${kind.says[state.layer][heads[0]]}. `, opens ? data.why : ""];
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
      context.fillStyle = `rgb(107 70 184 / ${(0.75 * weights[n]) / most})`;
      context.fillRect(cells[p][1], cells[p][0], 1, 1);
    });
    figure.querySelector("figcaption").textContent = caption ? `${caption}; ${where}; the strongest patch gets ${about(most)}` : "";
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

// Said in the menu of what is set apart, where that is the first token alone.
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
  find(".control.special").hidden = !kind.from.apart.includes(1) && !kind.to.apart.includes(1);
  find(".control.special span").textContent = kind.to.apart.some((a, j) => a && !kind.to.special[j]) ? "The first token" : "Special tokens";
  control("kind").value = String(state.kind);
  control("special").value = state.special;
  find(".threshold output").textContent = `${Number((100 * state.threshold).toPrecision(2))} %`;
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
    // Said as the tip of a head's button.
    const chip = (name, h) => made("button", { type: "button", className: "chip", "data-head": h, title: "click: this head alone; Shift and click: add it or take it away", textContent: name });
    group.replaceChildren(made("span", { className: "soft", textContent: "Heads" }), ...heads.map(chip), made("button", { type: "button", className: "every", textContent: "all" }));
  }
  group.querySelectorAll(".chip").forEach((chip, h) => {
    chip.style.setProperty("--chip", state.heads.has(h) ? app.colour(h) : app.theme.head(h));
    chip.setAttribute("aria-pressed", String(state.heads.has(h)));
    chip.setAttribute("aria-label", `head ${heads[h]}`);
  });
}

// Said where places are set apart and a head is on: what they hold of all rows.
function share() {
  const all = app.kind().share[state.layer], one = state.view === "neuron" ? state.head : state.view === "model" && state.opened ? state.opened.head : null;
  const on = one === null ? [...state.heads] : [one];
  const mean = on.reduce((sum, h) => sum + all[h], 0) / on.length;
  const { apart, special: tokens } = app.kind().to, count = apart.filter(Boolean).length;
  const special = count > 0, first = apart.some((a, j) => a && !tokens[j]);
  const only = count === 1 ? "The special token holds" : "Special tokens hold";
  const who = !first ? only : count === 1 ? "The first token holds" : "The first token and special tokens hold";
  const where = one === null ? app.where() : `layer ${app.kind().layers[state.layer]}, head ${app.kind().heads[one]}`;
  find(".share").textContent = on.length && special && Number.isFinite(mean) ? `${who} ${percent(mean)} of the attention (${where}, all rows).` : "";
}

let views = null, turn = 0;

// Said where drawing failed.
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

// Each kind of attention opens on the head and the word that are worth a look.
function opens(kind) {
  const { layer, head, place } = data.kinds[kind].opening;
  Object.assign(state, { kind, layer, head, heads: new Set([head]), place: { side: "from", i: place }, opened: null });
}

function change(name, value) {
  if (name === "kind") opens(value);
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
  const head = Number(chip.dataset.head), several = event.shiftKey || event.ctrlKey || event.metaKey;
  const heads = new Set(several ? state.heads : []);
  if (!heads.delete(head)) heads.add(head);
  change("heads", heads);
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

function themed() {
  app.theme = themeOf(root);
  chips();
  draw();
}
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themed);
window.addEventListener("themechange", themed); // the button of the page
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
  // Said where the browser does not give its clipboard.
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

opens(data.kind);
app.answer = answerAbove(app);
views = { head: headView(app), model: modelView(app), neuron: neuronView(app) };
app.choose({});
themed();
