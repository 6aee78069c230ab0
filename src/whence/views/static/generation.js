// The page of a generated text: what is chosen, and the views that show it.

if (!root) return;
(async function () {
  const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const scores = scoresOf(data, await inflated(root.querySelector("script[data-blob='scores']")));
  // chosen: all that was written, a written word (by its place among the items), or a unit as a source
  const state = { method: 0, level: "whole", scale: "row", chosen: { what: "all" }, pinned: false };
  const items = { whole: itemsOf(data, "whole"), token: itemsOf(data, "token") };
  const memory = new Map();

  const app = {
    data, state,
    control: (name) => root.querySelector(`[data-control="${name}"]`),
    items: () => items[state.level],
    together(rows) {
      const key = `${state.method}:${rows.join()}`;
      if (!memory.has(key)) memory.set(key, scores.together(state.method, rows));
      return memory.get(key);
    },
    // a unit as a source; of the word that an item goes on with, the part before it
    sourceName(unit, item) {
      if (!item || item.unit !== unit) return data.names[unit];
      const before = data.outputs.slice(0, item.outputs[0]).filter((output) => output.unit === unit);
      return before.map((output) => output.text || output.name).join("").trim() || data.names[unit];
    },
    // the contrast of two whole texts, while nothing else is chosen
    contrast: () => (state.chosen.what === "all" ? scores.contrast(state.method) : null),
    // what is coloured: the sources of the chosen word, of that contrast, or of all that was written
    reading() {
      const contrast = app.contrast();
      if (contrast) return contrast;
      return state.chosen.what === "output" ? app.together(app.items()[state.chosen.item].rows) : scores.all(state.method);
    },
    choose(chosen, pinned) {
      const { chosen: before } = state;
      const same = state.pinned === pinned && before.what === chosen.what && before.item === chosen.item && before.unit === chosen.unit;
      if (same) return;
      Object.assign(state, { chosen, pinned });
      paint();
    },
  };
  const reader = readerOf(app), rows = rowsOf(app), matrix = matrixOf(app);

  function paint() {
    reader.paint();
    rows.paint();
    matrix.draw();
  }

  for (const name of ["method", "level"]) {
    const menu = app.control(name);
    if (!menu) continue;
    menu.addEventListener("change", () => {
      if (name === "method") state.method = Number(menu.value);
      else {
        // the word stays chosen: as the word of the chosen token, or as its first token
        const output = state.chosen.what === "output" ? app.items()[state.chosen.item].outputs[0] : null;
        state.level = menu.value;
        if (output !== null) state.chosen = { what: "output", item: app.items().findIndex((item) => item.outputs.includes(output)) };
        reader.build();
      }
      root.querySelectorAll(".sources").forEach((table, i) => { table.hidden = i !== state.method; });
      matrix.lay();
      paint();
    });
  }
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape") app.choose({ what: "all" }, false);
  });
  // on paper nothing can be opened
  window.addEventListener("beforeprint", () => root.querySelectorAll("details").forEach((part) => { part.open = true; }));

  root.querySelector(".controls").hidden = false;
  reader.build();
  rows.build();
  matrix.build();
  paint();
  root.dataset.ready = "true";
})();
