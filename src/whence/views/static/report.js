// The page is complete without this script. It adds: the choice of the method that colours the text, arrow keys along a text, one unit lit in every method, every part opened for print, and the download.
(function () {
  const root = document.getElementById("ROOT");
  if (!root) return;
  const units = (scope, i) => scope.querySelectorAll(i === undefined ? ".u" : `.u[data-i="${i}"]`);
  const light = (event, on) => {
    const unit = event.target.closest && event.target.closest(".u");
    if (unit) units(root, unit.dataset.i).forEach((other) => other.classList.toggle("same", on && other !== unit));
  };
  for (const [name, on] of [["mouseover", true], ["mouseout", false], ["focusin", true], ["focusout", false]]) {
    root.addEventListener(name, (event) => light(event, on));
  }
  root.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const unit = step && event.target.closest(".u");
    if (!unit) return;
    const row = [...units(unit.closest(".text, .patches"))];
    const next = row[row.indexOf(unit) + step];
    if (!next) return;
    unit.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    event.preventDefault();
  });
  const choice = root.querySelector(".choice");
  if (choice) {
    const menu = choice.querySelector("select");
    const strips = [...root.querySelectorAll(".strips > .strip")];
    const show = () => {
      strips.forEach((strip, i) => { strip.hidden = menu.value !== "all" && menu.value !== String(i); });
      root.querySelector(".strips").classList.toggle("chosen", menu.value !== "all");
    };
    choice.hidden = false;
    menu.addEventListener("change", show);
    show();
  }
  // on paper nothing can be opened
  window.addEventListener("beforeprint", () => root.querySelectorAll("details.fold").forEach((part) => { part.open = true; }));
  const button = root.querySelector("button.download");
  button.hidden = false;
  button.addEventListener("click", () => {
    const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(data)], { type: "application/json" }));
    link.download = `whence-${data.kind}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
})();
