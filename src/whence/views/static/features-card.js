// One feature: how often and how strongly it fires, on what, and what it does to the output.

const FAINT = 0.02; // of the largest activation; what is fainter would only blur the others
const DIGITS = { maximumFractionDigits: 0 };

function share(part) {
  const hundred = 100 * part;
  if (hundred >= 9.95) return `${hundredths(part)} %`;
  return hundred >= 0.01 ? `${Number(hundred.toPrecision(2))} %` : "< 0.01 %";
}

function digits(value) {
  return Number(value.toPrecision(3)).toString().replace("-", "−");
}

// White space that one would not see is spelt out.
function shownPiece(piece) {
  return piece.replace(/\n/g, "⏎").replace(/\t/g, "⇥");
}

function tokenName(name) {
  const shown = shownPiece(name);
  return made("bdi", { className: "token", textContent: shown.trim() ? shown.trim() : shown.replace(/ /g, "␣") || "∅" });
}

// Bars of a histogram over the activations that occur. Heights are logarithms: weak ones are far more frequent.
function bars(features, i, width, height) {
  const counts = Array.from(features.histogram(i));
  const first = counts.findIndex((count) => count > 0), last = counts.length - 1 - [...counts].reverse().findIndex((count) => count > 0);
  if (first < 0) return null;
  const used = counts.slice(first, last + 1), most = Math.log1p(Math.max(...used));
  const step = width / used.length, rects = used.map((count, k) => {
    const tall = count ? Math.max(1, (Math.log1p(count) / most) * height) : 0;
    return `<rect x="${(k * step).toFixed(2)}" y="${(height - tall).toFixed(2)}" width="${Math.max(step - 1, 0.7).toFixed(2)}" height="${tall.toFixed(2)}"><title>${digits(features.about.edges[first + k])} to ${digits(features.about.edges[first + k + 1])}: ${count.toLocaleString("en")} tokens</title></rect>`;
  });
  return { rects: rects.join(""), low: features.about.edges[first], high: features.about.edges[last + 1], total: counts.reduce((a, b) => a + b, 0) };
}

// Said of a feature's activations; that it is never active where no bin has any.
function histogram(features, i) {
  const drawn = bars(features, i, 320, 84);
  if (!drawn) return made("p", { className: "soft", textContent: "It is never active here." });
  const box = made("div", { className: "histogram" });
  // numbers only: no text of the corpus is in this markup
  box.innerHTML = `<svg viewBox="0 0 320 84" preserveAspectRatio="none" role="img" aria-label="activations of ${drawn.total} tokens, on a logarithmic scale">${drawn.rects}</svg>`;
  const ends = made("p", { className: "ends soft" }, made("span", { textContent: digits(drawn.low) }), made("span", { textContent: `${drawn.total.toLocaleString("en", DIGITS)} active tokens (both axes logarithmic)` }), made("span", { textContent: digits(drawn.high) }));
  return made("div", {}, box, ends);
}

function effectRows(several, most, kind) {
  const rows = several.map(({ name, effect }) => {
    const bar = made("i", { className: kind });
    bar.style.width = `${((100 * Math.abs(effect)) / most).toFixed(1)}%`;
    return made("tr", {}, made("th", { scope: "row" }, tokenName(name)), made("td", { className: "track" }, made("div", {}, bar)), made("td", { textContent: signed(effect) }));
  });
  return made("table", { className: "weighed" }, made("tbody", {}, ...rows));
}

function effectsOf(features, i) {
  const promotes = features.promotes(i), suppresses = features.suppresses(i);
  if (!promotes.length && !suppresses.length) return null;
  const most = Math.max(...[...promotes, ...suppresses].map(({ effect }) => Math.abs(effect)), 1e-9);
  const block = (title, several, kind) => made("div", {}, made("h4", { textContent: title }), several.length ? effectRows(several, most, kind) : made("p", { className: "soft", textContent: "nothing" }));
  return made("div", { className: "effects" }, block("Promotes", promotes, "p"), block("Suppresses", suppresses, "n"));
}

// Said of a neighbour that has no card in the page: it was left out, or is not active.
function similarTo(features, i, choose) {
  const rows = features.similar(i).map(({ number, cosine }) => {
    const there = features.placeOf.get(number);
    const button = made("button", { type: "button", className: "go", disabled: there === undefined }, made("strong", { textContent: number }));
    button.addEventListener("click", () => choose(there));
    const fires = there === undefined ? [made("span", { className: "soft", textContent: features.about.left_out ? "not on this page" : "not active here" })] : features.fires(there, 2).map(tokenName);
    return made("li", {}, button, made("span", { className: "cosine", textContent: cosine.toFixed(2).replace("-", "−") }), ...fires);
  });
  return rows.length ? made("ul", { className: "similar" }, ...rows) : null;
}

function passageRow(features, i, passage, word) {
  const peak = features.peak(i), parts = [];
  passage.pieces.forEach((piece, place) => {
    const level = passage.levels[place], shown = shownPiece(piece);
    const isHit = word && piece.toLowerCase().includes(word);
    if (level < FAINT && !isHit && place !== passage.place) return parts.push(shown);
    const tip = `${shown.trim() || "␣"}: ${digits(level * peak)}`;
    const token = made("span", { className: `u m${place === passage.place ? " strongest" : ""}${isHit ? " hit" : ""}`, textContent: shown, "data-tip": tip });
    token.style.setProperty("--v", level.toFixed(3));
    return parts.push(token);
  });
  const value = digits(passage.levels[passage.place] * peak);
  return made("li", {}, made("span", { className: "value", textContent: value }), made("span", { className: "running", dir: "auto" }, ...parts));
}

function fact(value, name, title) {
  return made("div", { className: "fact", title }, made("strong", { textContent: value }), made("span", { textContent: name }));
}

// Said on the card of a feature; what it does where that was found out.
function cardOf(features, i, word, choose) {
  const fires = features.fires(i, 4).map(tokenName);
  const facts = [
    fact(share(features.frequency(i)), "of all tokens", "how often it is active"),
    fact(digits(features.peak(i)), "largest", "its largest activation on this corpus"),
    fact(digits(features.mean(i)), "mean", "over the tokens on which it is active"),
  ];
  const parts = [
    made("header", {}, made("h2", { textContent: "Feature" }), made("p", { className: "big", textContent: features.number(i) }), made("p", { className: "fires" }, "strongest on ", ...fires.flatMap((token, k) => (k ? [" ", token] : [token]))), made("div", { className: "facts-row" }, ...facts)),
    made("div", { className: "pair" }, made("div", {}, made("h3", { textContent: "How strongly it fires" }), histogram(features, i)), similarBlock(features, i, choose)),
  ];
  const effects = effectsOf(features, i);
  if (effects) {
    const how = features.about.effects === "lens" ? "What it does to the next token (from the weights: an approximation)" : "What it does to the classes (measured where it fires)";
    parts.push(made("h3", { textContent: how }), made("p", { className: "soft", textContent: `In ${features.about.unit}.` }), effects);
  }
  const rows = features.passages(i).map((passage) => passageRow(features, i, passage, word));
  parts.push(made("h3", { textContent: "Strongest passages" }), made("ol", { className: "passages" }, ...rows));
  return parts;
}

function similarBlock(features, i, choose) {
  const list = similarTo(features, i, choose);
  return made("div", {}, made("h3", { textContent: "Nearest directions" }), list || made("p", { className: "soft", textContent: "none" }));
}
