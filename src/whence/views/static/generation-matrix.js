// All outputs × all units on a canvas, which the arrow keys and the pointer read cell by cell.

const MANY_COLUMNS = 80; // from which on sentences are closed at first
const NAME = 12; // pixels that a name takes across
const LONGEST = 16; // letters of a name
const LARGEST_CANVAS = 15000; // pixels; browsers draw nothing on much larger ones

function matrixOf(app) {
  const { data, state } = app, box = root.querySelector(".map"), canvas = box.querySelector("canvas"), scroll = box.querySelector(".cells");
  const readout = box.querySelector(".readout"), context = canvas.getContext("2d");
  const canFold = data.sentences.some(([start, stop]) => stop - start > 1) && data.sentences.length > 1;
  const opened = new Set();
  let rows = [], columns = [], at = null, place = null;

  function foldAll(isFolded) {
    opened.clear();
    if (!isFolded) data.sentences.forEach((_, i) => opened.add(i));
  }

  function build() {
    box.hidden = false;
    app.control("columns").closest("label").hidden = !canFold;
    box.querySelector(".opening").hidden = !canFold;
    const isFolded = canFold && data.units.length > MANY_COLUMNS;
    app.control("columns").value = isFolded ? "folded" : "open";
    foldAll(isFolded);
    lay();
  }

  // The rows and columns as they are now; a closed sentence is one column.
  function lay() {
    rows = app.items().flatMap((item, i) => (item.rows.length ? [{ item, i, reading: app.together(item.rows) }] : []));
    const end = rows.reduce((most, row) => Math.max(most, row.reading.count), 0);
    columns = [];
    data.sentences.forEach(([start, stop], sentence) => {
      if (start >= end) return;
      const last = Math.min(stop, end);
      if (opened.has(sentence)) for (let unit = start; unit < last; unit++) columns.push({ start: unit, stop: unit + 1, sentence, name: data.names[unit], isWritten: data.written[unit] });
      else columns.push({ start, stop: last, sentence, name: data.units.slice(start, last).join("").trim() || data.names[start], isWritten: data.written[start] });
    });
    if (at) at = { row: Math.min(at.row, rows.length - 1), column: Math.min(at.column, columns.length - 1) };
    draw();
  }

  function value({ reading }, { start, stop }) {
    if (start >= reading.count) return NaN;
    let sum = 0;
    for (let unit = start; unit < Math.min(stop, reading.count); unit++) sum += reading.at(unit);
    return sum;
  }

  function colours() {
    const style = getComputedStyle(root), of = (name) => style.getPropertyValue(`--${name}`).trim();
    const rgb = (name) => [1, 3, 5].map((i) => parseInt(of(name).slice(i, i + 2), 16));
    return { ink: of("ink"), soft: of("soft"), line: of("line"), panel: of("panel"), ground: rgb("ground"), p: rgb("pos"), n: rgb("neg"), m: rgb("mag"), strength: parseFloat(of("strength")) / 100 };
  }

  function draw() {
    if (!rows.length || !columns.length || !scroll.clientWidth) return;
    const colour = colours(), table = rows.map((row) => columns.map((column) => value(row, column)));
    const largestOf = (values) => values.reduce((most, v) => (Number.isNaN(v) ? most : Math.max(most, Math.abs(v))), 0);
    const largest = table.map(largestOf), overall = largestOf(largest);
    const font = "11px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
    context.font = font;
    const longest = (names) => names.reduce((most, name) => Math.max(most, context.measureText(short(spelled(name), LONGEST)).width), 0);
    const left = Math.ceil(longest(rows.map(({ item }) => item.name.replace(/ /g, "\u00a0")))) + 10, top = Math.ceil(longest(columns.map(({ name }) => name.replace(/ /g, "\u00a0")))) + 10;
    const ratio = window.devicePixelRatio || 1;
    const least = Math.max(1, Math.min(4, Math.floor(LARGEST_CANVAS / ratio / columns.length)));
    const wide = Math.max(least, Math.min(30, Math.floor((scroll.clientWidth - left - 2) / columns.length)));
    const high = Math.max(5, Math.min(18, Math.floor(640 / rows.length)));
    place = { left, top, wide, high };

    const width = left + wide * columns.length + 1, height = top + high * rows.length + 1;
    canvas.width = Math.ceil(width * ratio);
    canvas.height = Math.ceil(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = font;
    context.fillStyle = colour.panel;
    context.fillRect(left, top, wide * columns.length, high * rows.length);
    const gap = wide > 6 && high > 6 ? 1 : 0;
    table.forEach((values, r) => values.forEach((v, c) => {
      if (Number.isNaN(v)) return;
      const full = state.scale === "all" ? overall : largest[r], level = full ? v / full : 0;
      const end = data.signed[state.method] ? (level > 0 ? colour.p : colour.n) : colour.m, share = Math.min(Math.abs(level), 1) * colour.strength;
      context.fillStyle = `rgb(${colour.ground.map((g, k) => Math.round(g + share * (end[k] - g))).join(",")})`;
      context.fillRect(left + c * wide, top + r * high, wide - gap, high - gap);
    }));
    names(colour, left, top, wide, high);
    mark(colour, left, top, wide, high);
  }

  // As many names as there is room for; the chosen cell always has both of its own.
  function names(colour, left, top, wide, high) {
    const everyRow = Math.ceil(NAME / high), everyColumn = Math.ceil(NAME / wide);
    context.textBaseline = "middle";
    rows.forEach(({ item, i }, r) => {
      const isChosen = (at && at.row === r) || (state.chosen.what === "output" && state.chosen.item === i);
      if (!isChosen && (r % everyRow || (at && Math.abs(at.row - r) < everyRow))) return;
      context.fillStyle = isChosen ? colour.ink : colour.soft;
      context.textAlign = "right";
      context.fillText(short(item.name, LONGEST), left - 6, top + (r + 0.5) * high);
    });
    columns.forEach(({ name, stop, start }, c) => {
      const isChosen = at && at.column === c;
      if (!isChosen && (c % everyColumn || (at && Math.abs(at.column - c) < everyColumn))) return;
      context.save();
      context.translate(left + (c + 0.5) * wide, top - 5);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
      context.fillStyle = isChosen || stop - start > 1 ? colour.ink : colour.soft;
      context.fillText(short(name, LONGEST), 0, 0);
      context.restore();
    });
  }

  function mark(colour, left, top, wide, high) {
    const border = columns.findIndex((column) => column.isWritten);
    context.strokeStyle = colour.soft;
    if (border > 0) {
      context.beginPath();
      context.moveTo(left + border * wide - 0.5, top - 4);
      context.lineTo(left + border * wide - 0.5, top + rows.length * high);
      context.stroke();
    }
    const chosen = state.chosen.what === "output" ? rows.findIndex(({ i }) => i === state.chosen.item) : -1;
    if (chosen >= 0) context.strokeRect(left - 0.5, top + chosen * high - 0.5, wide * columns.length, high);
    if (!at) return;
    context.strokeStyle = colour.ink;
    context.lineWidth = 2;
    context.strokeRect(left + at.column * wide, top + at.row * high, wide - 1, high - 1);
    context.lineWidth = 1;
  }

  // ------------------------------------------------------------------ reading a cell

  // Said of a cell of what stands behind its word.
  function read() {
    if (!at) return readout.replaceChildren();
    const row = rows[at.row], column = columns[at.column], v = value(row, column);
    const name = short(column.stop - column.start > 1 ? column.name : app.sourceName(column.start, row.item), 60);
    const isSigned = data.signed[state.method], all = columns.reduce((most, one) => Math.max(most, Math.abs(value(row, one)) || 0), 0);
    const score = Number.isNaN(v) ? "comes after it" : shownScore(v, all, isSigned);
    const many = column.stop - column.start > 1 ? ` (${column.stop - column.start} ${data.kind} together)` : "";
    readout.replaceChildren(made("strong", {}, bdi(row.item.name)), ` ${shownShare(row.item.p)}, from `, made("strong", {}, bdi(name)), `${many}: ${score}`);
    return undefined;
  }

  function cellAt(event) {
    const frame = canvas.getBoundingClientRect(), x = event.clientX - frame.left - place.left, y = event.clientY - frame.top - place.top;
    return { row: Math.floor(y / place.high), column: Math.floor(x / place.wide) };
  }

  const isCell = (cell) => rows[cell.row] !== undefined && columns[cell.column] !== undefined;

  function move(cell) {
    at = cell;
    read();
    draw();
  }

  function turn(column) {
    if (!canFold || !column) return;
    if (!opened.delete(column.sentence)) opened.add(column.sentence);
    lay();
    read();
  }

  canvas.addEventListener("mousemove", (event) => {
    if (!place) return;
    const cell = cellAt(event);
    canvas.style.cursor = cell.row < 0 && canFold ? "pointer" : "crosshair";
    if (isCell(cell) && !(at && at.row === cell.row && at.column === cell.column)) move(cell);
  });
  canvas.addEventListener("mouseleave", () => document.activeElement !== canvas && move(null));
  canvas.addEventListener("click", (event) => {
    if (!place) return;
    const cell = cellAt(event);
    if (cell.row < 0) turn(columns[cell.column]);
    else if (isCell(cell)) app.choose({ what: "output", item: rows[cell.row].i }, true);
  });
  canvas.addEventListener("focus", () => at || move({ row: 0, column: 0 }));
  canvas.addEventListener("blur", () => move(null));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (step && at) {
      const cell = { row: at.row + step[0], column: at.column + step[1] };
      if (isCell(cell)) move(cell);
    } else if (event.key === "Enter" && at) app.choose({ what: "output", item: rows[at.row].i }, true);
    else if (event.key === "o" && at) turn(columns[at.column]);
    else return;
    event.preventDefault();
  });
  app.control("columns").addEventListener("change", () => {
    foldAll(app.control("columns").value === "folded");
    at = document.activeElement === canvas ? { row: 0, column: 0 } : null;
    lay();
    read();
  });
  app.control("scale").addEventListener("change", () => {
    state.scale = app.control("scale").value;
    draw();
  });
  new ResizeObserver(() => draw()).observe(scroll);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  window.addEventListener("themechange", draw);
  return { build, lay, draw };
}
