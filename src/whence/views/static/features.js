// The list of features: searched, sorted, and drawn only where one looks; the card of the chosen one; the map.
// All texts are data: they go in by textContent, never as markup.
(async function () {
  const ROW = 54; // pixels; the style sheet says the same
  const shelf = root.querySelector(".shelf"), rows = root.querySelector(".rows"), sizer = root.querySelector(".sizer");
  const form = root.querySelector("form"), count = root.querySelector(".count"), card = root.querySelector(".about-feature");
  const figure = root.querySelector(".top figure"), map = root.querySelector("canvas.map");
  const features = featuresOf(await unpackedColumns());
  const every = Array.from({ length: features.count }, (_, i) => i);
  let listed = every, chosen = -1, word = "";

  const ORDERS = {
    frequency: (a, b) => features.frequency(b) - features.frequency(a),
    rare: (a, b) => features.frequency(a) - features.frequency(b),
    peak: (a, b) => features.peak(b) - features.peak(a),
    number: (a, b) => features.number(a) - features.number(b),
  };

  // ------------------------------------------------------------------ the list

  function row(i, place) {
    const drawn = bars(features, i, 56, 26), spark = made("span", { className: "spark" });
    // numbers only: no text of the corpus is in this markup
    if (drawn) spark.innerHTML = `<svg viewBox="0 0 56 26" preserveAspectRatio="none" aria-hidden="true">${drawn.rects}</svg>`;
    const fires = made("span", { className: "on" }, ...features.fires(i, 4).flatMap((name) => [tokenName(name), " "]));
    const element = made("div", { className: "row", role: "option", id: `feature-${features.number(i)}`, "aria-selected": String(i === chosen), "aria-posinset": place + 1, "aria-setsize": listed.length }, made("span", { className: "number", textContent: features.number(i) }), fires, spark, made("span", { className: "often", textContent: share(features.frequency(i)) }));
    element.style.top = `${place * ROW}px`;
    element.addEventListener("click", () => choose(i));
    return element;
  }

  function drawRows() {
    const first = Math.max(0, Math.floor(rows.scrollTop / ROW) - 3);
    const last = Math.min(listed.length, Math.ceil((rows.scrollTop + rows.clientHeight) / ROW) + 3);
    sizer.style.height = `${listed.length * ROW}px`;
    sizer.replaceChildren(...listed.slice(first, last).map((i, k) => row(i, first + k)));
  }

  function search() {
    const asked = Object.fromEntries(new FormData(form));
    word = asked.words.trim().toLowerCase();
    const order = ORDERS[asked.order] || ORDERS.frequency, by = (a, b) => order(a, b) || a - b;
    const asNumber = /^#?\d+$/.test(word) ? features.placeOf.get(Number(word.replace("#", ""))) : undefined;
    if (!word) listed = [...every].sort(by);
    else {
      const fits = new Map(every.map((i) => [i, features.fits(i, word, asked.where)]));
      if (asNumber !== undefined) fits.set(asNumber, 1e9);
      listed = every.filter((i) => fits.get(i) > 0).sort((a, b) => fits.get(b) - fits.get(a) || by(a, b));
    }
    const all = every.length.toLocaleString("en");
    count.textContent = word ? `${listed.length.toLocaleString("en")} of ${all} features` : `${all} features`;
    rows.scrollTop = 0;
    drawRows();
    drawMap();
    if (listed.length && (word || chosen < 0)) choose(listed[0]);
    else if (chosen >= 0) drawCard();
  }

  // ------------------------------------------------------------------ the chosen one

  function drawCard() {
    card.replaceChildren(...cardOf(features, chosen, word, choose));
  }

  function choose(i, keepHash = false) {
    chosen = i;
    const place = listed.indexOf(i);
    if (place >= 0) {
      const top = place * ROW;
      if (top < rows.scrollTop) rows.scrollTop = top;
      else if (top + ROW > rows.scrollTop + rows.clientHeight) rows.scrollTop = top + ROW - rows.clientHeight;
    }
    rows.setAttribute("aria-activedescendant", `feature-${features.number(i)}`);
    drawRows();
    drawCard();
    drawMap();
    if (!keepHash) history.replaceState(null, "", `#${features.number(i)}`);
  }

  function move(step) {
    if (!listed.length) return;
    const place = listed.indexOf(chosen);
    choose(listed[Math.max(0, Math.min(listed.length - 1, place < 0 ? 0 : place + step))]);
  }

  // ------------------------------------------------------------------ all at once

  const logs = (of) => every.map((i) => Math.log10(Math.max(of(i), 1e-9)));
  const across = logs(features.frequency), up = logs(features.peak);
  const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity), most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
  const frame = { left: least(across), right: most(across), low: least(up), high: most(up) };

  function pointOf(i, width, height) {
    const x = (across[i] - frame.left) / (frame.right - frame.left || 1), y = (up[i] - frame.low) / (frame.high - frame.low || 1);
    return [12 + x * (width - 24), height - 24 - y * (height - 38)];
  }

  function drawMap() {
    const width = map.clientWidth, height = map.clientHeight, scale = window.devicePixelRatio || 1;
    if (!width) return;
    map.width = width * scale;
    map.height = height * scale;
    const context = map.getContext("2d"), style = getComputedStyle(root), colour = (name) => style.getPropertyValue(`--${name}`).trim();
    context.scale(scale, scale);
    const shown = new Set(listed);
    for (const i of every) {
      const [x, y] = pointOf(i, width, height);
      context.globalAlpha = shown.has(i) ? 0.6 : 0.12;
      context.fillStyle = colour("mag");
      context.beginPath();
      context.arc(x, y, 2.4, 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
    if (chosen >= 0) {
      const [x, y] = pointOf(chosen, width, height);
      context.fillStyle = colour("pos");
      context.strokeStyle = colour("ink");
      context.lineWidth = 1.5;
      context.beginPath();
      context.arc(x, y, 5.5, 0, 7);
      context.fill();
      context.stroke();
    }
    context.fillStyle = colour("soft");
    context.font = "11px system-ui, sans-serif";
    context.fillText(`${share(10 ** frame.left)} of tokens`, 8, height - 6);
    context.textAlign = "right";
    context.fillText(share(10 ** frame.right), width - 8, height - 6);
    context.textAlign = "left";
    context.fillText(`↑ largest activation (${digits(10 ** frame.high)})`, 8, 12);
  }

  map.addEventListener("click", (event) => {
    const box = map.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let best = -1, near = Infinity;
    for (const i of listed) {
      const [px, py] = pointOf(i, box.width, box.height), far = (px - x) ** 2 + (py - y) ** 2;
      if (far < near) [best, near] = [i, far];
    }
    if (best >= 0) choose(best);
  });

  // ------------------------------------------------------------------ what one does

  form.addEventListener("input", search);
  form.addEventListener("submit", (event) => event.preventDefault());
  rows.addEventListener("scroll", drawRows, { passive: true });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest && event.target.closest("input, select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && form.elements.words.value) {
      form.elements.words.value = "";
      search();
      rows.focus({ preventScroll: true });
      return;
    }
    if (typing && !(event.target.type === "search" && /^Arrow(Up|Down)$/.test(event.key))) return;
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[event.key];
    const isOfList = event.key.length === 1 || event.target === rows || typing;
    if (step !== undefined && isOfList) {
      event.preventDefault();
      move(step);
    } else if (event.key === "/") {
      event.preventDefault();
      form.elements.words.focus();
    } else if (event.key === "r" && listed.length) choose(listed[Math.floor(Math.random() * listed.length)]);
  });
  const named = () => features.placeOf.get(Number(location.hash.slice(1) || NaN));
  window.addEventListener("hashchange", () => named() !== undefined && choose(named(), true));
  window.addEventListener("resize", () => { drawRows(); drawMap(); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawMap);
  window.addEventListener("themechange", drawMap);

  shelf.hidden = false;
  figure.hidden = !features.count;
  const asked = named();
  search();
  if (asked !== undefined) choose(asked, true);
  root.dataset.ready = "";
})();
