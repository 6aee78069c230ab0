// The model view: every layer × head as a small map, and one of them large, with labels and exact weights.

const THUMBNAIL = 96; // pixels; longer texts are pooled by their largest weights, so that no strong one is lost

// Said on the button of a map that is open.
function modelView(app) {
  const { root, state } = app;
  const panel = root.querySelector(".panel.model");
  const grid = made("div", { className: "grid", role: "group", "aria-label": "all maps" });
  const back = made("button", { type: "button", className: "back", textContent: "← All maps" });
  const jump = made("button", { type: "button", className: "jump", textContent: "Show as lines" });
  const title = made("h3", { className: "title" });
  const matrix = made("canvas", { className: "matrix", tabIndex: 0, role: "application" });
  const cursor = made("div", { className: "cursor", hidden: true });
  const tip = made("div", { className: "tip", hidden: true });
  const board = made("div", { className: "board" }, matrix, cursor, tip);
  const large = made("div", { className: "large", hidden: true }, made("div", { className: "bar" }, back, title, jump), made("div", { className: "scroll" }, board));
  panel.append(made("div", { className: "scroll around" }, grid), large);
  let built = -1, opened = null, shape = null, at = null; // the map that is open, its sizes, and the cell pointed at
  const visible = new Set(), stale = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) visible.delete(entry.target);
      else {
        visible.add(entry.target);
        if (stale.has(entry.target)) thumbnail(entry.target);
      }
    }
  }, { rootMargin: "100px" });

  function build() {
    if (built === state.kind) return;
    built = state.kind;
    const kind = app.kind(), cells = [made("span", { className: "corner soft", textContent: "layer" })];
    watcher.disconnect();
    visible.clear();
    grid.style.setProperty("--heads", kind.heads.length);
    kind.heads.forEach((name) => cells.push(made("span", { className: "across soft", textContent: /^\d+$/.test(name) ? `head ${name}` : name })));
    kind.layers.forEach((layerName, layer) => {
      cells.push(made("span", { className: "down soft", textContent: layerName }));
      kind.heads.forEach((headName, head) => {
        const label = `layer ${layerName}, head ${headName} ${kind.says[layer][head]}`;
        const map = made("button", { type: "button", className: "map", tabIndex: layer || head ? -1 : 0, title: label, "aria-label": label, "data-layer": layer, "data-head": head }, made("canvas"));
        cells.push(map);
      });
    });
    grid.replaceChildren(...cells);
    grid.querySelectorAll(".map").forEach((map) => watcher.observe(map));
  }

  const colourOf = (weight, largest, grey) => {
    const level = weight < state.threshold ? 0 : Math.min(255, Math.round((255 * weight) / largest));
    return (grey ? app.theme.dull : app.theme.map)[level];
  };

  function picture(canvas, layer, index, head, most) {
    const kind = app.kind(), rows = app.rows(), columns = app.columns(), largest = app.largest(layer, index, head);
    const pool = Math.max(1, Math.ceil(Math.max(rows.length, columns.length) / most));
    return painted(canvas, Math.ceil(rows.length / pool), Math.ceil(columns.length / pool), (r, c) => {
      let weight = 0, grey = false;
      for (let i = r * pool; i < Math.min((r + 1) * pool, rows.length); i++) {
        for (let j = c * pool; j < Math.min((c + 1) * pool, columns.length); j++) {
          const here = layer.weight(head, rows[i], columns[j]);
          if (here >= weight) {
            weight = here;
            grey = app.greyed(kind.from.apart[rows[i]] || kind.to.apart[columns[j]]);
          }
        }
      }
      return colourOf(weight, largest, grey);
    });
  }

  async function thumbnail(map) {
    stale.delete(map);
    const { kind } = state, index = Number(map.dataset.layer);
    const layer = await app.layer(kind, index);
    if (kind !== state.kind) return;
    picture(map.firstChild, layer, index, Number(map.dataset.head), THUMBNAIL);
    map.dataset.drawn = "1";
  }

  // Sizes of the large map: cells as big as the width allows, labels where they fit.
  function measured(width) {
    const rows = app.rows(), columns = app.columns(), kind = app.kind();
    const longest = (axis, all) => all.reduce((most, i) => Math.max(most, Math.min(16, axis.labels[i].length)), 2);
    const left = Math.min(130, 14 + 7.5 * longest(kind.from, rows)), top = Math.min(130, 14 + 7.5 * longest(kind.to, columns));
    const cell = Math.max(7, Math.min(26, Math.floor((width - left - 12) / Math.max(columns.length, 1))));
    return { rows, columns, left, top, cell, every: Math.ceil(13 / cell), width: left + cell * columns.length + 8, height: top + cell * rows.length + 8 };
  }

  function labels(s, text) {
    const { from, to } = app.kind(), fill = (apart) => (app.greyed(apart) ? app.theme.grey : app.theme.ink);
    s.rows.forEach((i, n) => n % s.every || text(s.left - 6, s.top + (n + 0.5) * s.cell + 4, short(from.labels[i], 15), 0, fill(from.apart[i])));
    s.columns.forEach((j, n) => n % s.every || text(s.left + (n + 0.5) * s.cell + 4, s.top - 6, short(to.labels[j], 15), -90, fill(to.apart[j])));
  }

  // Said to a screen reader of the map that is open.
  async function drawLarge() {
    const one = opened, layer = await app.layer(state.kind, one.layer);
    if (opened !== one) return; // closed, or another one, while it was unpacked
    const s = (shape = { ...measured(panel.clientWidth - 2), layer });
    const ratio = Math.min(window.devicePixelRatio || 1, 12000 / Math.max(s.width, s.height));
    matrix.width = Math.round(s.width * ratio);
    matrix.height = Math.round(s.height * ratio);
    matrix.style.width = `${s.width}px`;
    matrix.style.height = `${s.height}px`;
    const context = matrix.getContext("2d");
    context.scale(ratio, ratio);
    context.imageSmoothingEnabled = false;
    const small = picture(made("canvas"), layer, opened.layer, opened.head, Infinity);
    context.drawImage(small, s.left, s.top, s.cell * s.columns.length, s.cell * s.rows.length);
    context.strokeStyle = app.theme.line;
    context.strokeRect(s.left - 0.5, s.top - 0.5, s.cell * s.columns.length + 1, s.cell * s.rows.length + 1);
    context.font = `12px ${FONT}`;
    labels(s, (x, y, content, turn, fill) => {
      context.save();
      context.translate(x, y);
      context.rotate((turn * Math.PI) / 180);
      context.textAlign = turn ? "left" : "right";
      context.fillStyle = fill;
      context.fillText(content, 0, 0);
      context.restore();
    });
    title.textContent = `Layer ${app.kind().layers[opened.layer]}, head ${app.kind().heads[opened.head]}`;
    matrix.setAttribute("aria-label", `${title.textContent}: a map of ${s.rows.length} × ${s.columns.length} weights; arrows move along its cells`);
    if (at && (at.r >= s.rows.length || at.c >= s.columns.length)) at = null;
    point(at);
  }

  function point(cell) {
    at = cell;
    cursor.hidden = tip.hidden = !cell;
    if (!shape || !opened) return;
    const s = shape, { from, to } = app.kind(), i = s.rows[cell ? cell.r : 0];
    const row = cell ? { side: "from", i } : null;
    app.answer.tell(app.does([opened.head]), app.profile(s.layer, [opened.head], row), row ? null : app.largest(s.layer, opened.layer, opened.head));
    if (i !== undefined) app.picture(s.columns, s.columns.map((j) => s.layer.weight(opened.head, i, j)), `attention from ${from.labels[i]}`, title.textContent.toLowerCase());
    if (!cell) return;
    const j = s.columns[cell.c], weight = s.layer.weight(opened.head, i, j);
    const error = (Math.ceil(s.layer.error(opened.head, j) * 1e4 + 0.5) / 1e4).toFixed(4); // and half of the last digit that is printed
    const x = s.left + cell.c * s.cell, y = s.top + cell.r * s.cell;
    Object.assign(cursor.style, { left: `${x}px`, top: `${y}px`, width: `${s.cell}px`, height: `${s.cell}px` });
    tip.replaceChildren(bdi(short(from.names[i], 30)), " → ", bdi(short(to.names[j], 30)), made("b", { textContent: ` ${weight.toFixed(4)}` }), ` ± ${error}`);
    tip.style.top = `${y + s.cell + 4}px`;
    tip.style.left = `${Math.max(0, Math.min(x, s.width - tip.offsetWidth - 4))}px`;
    app.say(`${short(from.names[i], 30)} → ${short(to.names[j], 30)}: ${weight.toFixed(4)} ± ${error}`);
  }

  async function open(layer, head) {
    opened = { layer, head };
    at = null;
    app.choose({ layer, opened });
    await app.draw();
    matrix.focus({ preventScroll: true });
    large.scrollIntoView({ block: "nearest" });
  }

  function close() {
    const was = opened;
    opened = shape = null;
    app.choose({ opened });
    app.say("");
    app.draw();
    const map = was && grid.querySelector(`.map[data-layer="${was.layer}"][data-head="${was.head}"]`);
    if (map) map.focus();
  }

  matrix.addEventListener("mousemove", (event) => {
    if (!shape) return;
    const r = Math.floor((event.offsetY - shape.top) / shape.cell), c = Math.floor((event.offsetX - shape.left) / shape.cell);
    const inside = r >= 0 && c >= 0 && r < shape.rows.length && c < shape.columns.length;
    if (!inside) point(null);
    else if (!at || at.r !== r || at.c !== c) point({ r, c });
  });
  matrix.addEventListener("mouseleave", () => point(null));
  matrix.addEventListener("keydown", (event) => {
    const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (!step || !shape) return;
    event.preventDefault();
    const limit = (value, count) => Math.max(0, Math.min(count - 1, value));
    point(at ? { r: limit(at.r + step[0], shape.rows.length), c: limit(at.c + step[1], shape.columns.length) } : { r: 0, c: 0 });
    cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && opened) close();
  });
  grid.addEventListener("click", (event) => {
    const map = event.target.closest(".map");
    if (map) open(Number(map.dataset.layer), Number(map.dataset.head));
  });
  const heads = () => app.kind().heads.length;
  arrows(grid, ".map", { ArrowRight: 1, ArrowLeft: -1, ArrowDown: (n) => n + heads(), ArrowUp: (n) => n - heads(), Home: () => 0, End: () => Infinity });
  back.addEventListener("click", close);
  jump.addEventListener("click", () => {
    if (!opened) return; // a second click, before the button is gone
    const { layer, head } = opened;
    opened = shape = null;
    app.choose({ opened, layer, heads: new Set([head]), view: "head" });
    app.draw();
  });

  // Said to a screen reader of all small maps.
  async function figureOfGrid() {
    const kind = app.kind(), size = 84, gap = 6, left = 54, top = 64, parts = [], theme = app.theme;
    parts.push(svg.text(12, 24, app.title(), { fill: theme.ink, size: 14 }));
    kind.heads.forEach((name, h) => parts.push(svg.text(left + h * (size + gap), top - 8, `head ${name}`, { fill: theme.soft, size: 11 })));
    for (let l = 0; l < kind.layers.length; l++) {
      const layer = await app.layer(state.kind, l);
      parts.push(svg.text(left - 10, top + l * (size + gap) + size / 2 + 4, kind.layers[l], { fill: theme.soft, size: 11, anchor: "end" }));
      kind.heads.forEach((_, h) => parts.push(svg.image(left + h * (size + gap), top + l * (size + gap), size, size, picture(made("canvas"), layer, l, h, THUMBNAIL))));
    }
    return svg.whole(left + kind.heads.length * (size + gap) + 8, top + kind.layers.length * (size + gap) + 8, theme, parts);
  }

  return {
    async draw() {
      build();
      if (opened && opened.head >= heads()) app.choose({ opened: (opened = null) });
      grid.parentElement.hidden = Boolean(opened);
      large.hidden = !opened;
      panel.classList.toggle("opened", Boolean(opened));
      root.classList.toggle("all", !opened);
      grid.querySelectorAll(".map").forEach((map) => stale.add(map));
      if (!opened) {
        const { layers, heads: all } = app.kind();
        app.answer.tell([`All heads as small maps, ${layers.length} ${layers.length === 1 ? "layer" : "layers"} of ${all.length} each. In a map, a row is a word that looks, and a column a word that is looked at. A click opens one.`], null, null);
        return Promise.all([...visible].map(thumbnail));
      }
      opened.layer = state.layer;
      return drawLarge();
    },
    async figure() {
      if (!opened) return figureOfGrid();
      const one = { ...opened }, heading = title.textContent; // it may be closed while it is unpacked
      const layer = await app.layer(state.kind, one.layer), s = measured(900), down = 36, parts = [];
      parts.push(svg.text(12, 24, `${app.title()} · ${heading}`, { fill: app.theme.ink, size: 14 }));
      s.top += down;
      parts.push(svg.image(s.left, s.top, s.cell * s.columns.length, s.cell * s.rows.length, picture(made("canvas"), layer, one.layer, one.head, Infinity)));
      labels(s, (x, y, content, turn, fill) => parts.push(svg.text(x, y, content, { fill, size: 12, turn, anchor: turn ? "start" : "end" })));
      return svg.whole(Math.max(s.width, 420), s.height + down, app.theme, parts);
    },
  };
}
