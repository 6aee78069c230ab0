// A written word is chosen, and the units of the context that it rests on are coloured.

if (!root) return;
const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
const units = Array.from(root.querySelectorAll("[data-u]")), words = Array.from(root.querySelectorAll("[data-row]"));
const told = root.querySelector(".told"), menu = root.querySelector("[data-control='method']");
const rows = Array.from(root.querySelectorAll(".row"));
const state = { method: 0, row: null, kept: null };

function paint() {
  const method = data.methods[state.method];
  for (const word of words) {
    const row = Number(word.dataset.row);
    word.classList.toggle("picked", row === state.row);
    word.classList.toggle("kept", row === state.kept);
    word.setAttribute("aria-pressed", String(row === state.kept));
  }
  told.textContent = state.row === null ? "" : data.told[state.row];
  if (!method) return;
  const levels = method.levels[state.row === null ? 0 : state.row + 1];
  for (const unit of units) {
    const level = levels[Number(unit.dataset.u)], kind = method.signed ? (level > 0 ? "p" : "n") : "m";
    unit.className = `u ${kind}`;
    unit.style.setProperty("--v", Math.abs(level) < data.faint ? "0" : Math.abs(level).toFixed(3));
  }
  paintRows(levels, method.largest[state.row === null ? 0 : state.row + 1], method.signed);
}

// The rows of documents and sentences: sums, each beside its neighbours; and the score of each word.
function paintRows(levels, largest, isSigned) {
  const sums = new Map(rows.map((row) => [row, levels.slice(Number(row.dataset.from), Number(row.dataset.to)).reduce((sum, level) => sum + level, 0)]));
  for (const [row, sum] of sums) {
    const beside = Array.from(row.parentElement.children, (other) => Math.abs(sums.get(other) || 0)), most = Math.max(...beside);
    const zero = isSigned ? 50 : 0, end = zero + (most ? ((100 - zero) * sum) / most : 0), bar = row.querySelector("i");
    row.querySelector(".track").className = isSigned ? "track both" : "track";
    bar.className = isSigned ? (sum > 0 ? "p" : "n") : "m";
    bar.style.left = `${Math.min(zero, end)}%`;
    bar.style.width = `${Math.abs(end - zero)}%`;
    row.querySelector(".number").textContent = shown(sum * largest, most * largest, isSigned);
  }
  for (const unit of units) {
    const number = unit.parentElement.querySelector(":scope.scored > small");
    if (number) number.textContent = shown(levels[Number(unit.dataset.u)] * largest, largest, isSigned);
  }
}

// Three digits of the largest one beside it; rounding to nothing leaves no sign behind.
function shown(value, largest, isSigned) {
  let text = "0.00";
  if (largest > 0 && (largest < 1e-5 || largest >= 1e6)) text = value ? value.toExponential(1) : "0";
  else if (largest > 0) text = value.toFixed(Math.min(Math.max(2 - Math.floor(Math.log10(largest)), 0), 6));
  if (Number(text) === 0) return text.replace("-", "");
  return isSigned && value > 0 ? `+${text}` : text.replace("-", "−");
}

function choose(row) {
  state.row = row;
  paint();
}

for (const word of words) {
  const row = Number(word.dataset.row);
  word.addEventListener("mouseenter", () => choose(row));
  word.addEventListener("mouseleave", () => choose(state.kept));
  word.addEventListener("focus", () => choose(row));
  word.addEventListener("blur", () => choose(state.kept));
  const keep = () => {
    state.kept = state.kept === row ? null : row;
    choose(row);
  };
  word.addEventListener("click", keep);
  word.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    keep();
  });
}
root.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  state.kept = null;
  choose(null);
});
if (menu) {
  menu.closest(".controls").hidden = false;
  menu.addEventListener("change", () => {
    state.method = Number(menu.value);
    paint();
  });
}
// on paper nothing can be opened
window.addEventListener("beforeprint", () => rows.forEach((row) => { row.open = true; }));
paint();
root.dataset.ready = "true";
