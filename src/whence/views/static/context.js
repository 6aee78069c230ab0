// A written word is chosen, and the units of the context that it rests on are coloured.

if (!root) return;
const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
const units = Array.from(root.querySelectorAll("[data-u]")), words = Array.from(root.querySelectorAll("[data-row]"));
const told = root.querySelector(".told"), menu = root.querySelector("[data-control='method']");
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
paint();
root.dataset.ready = "true";
