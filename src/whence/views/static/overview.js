// The texts of a run: unpacked, searched, and each opened on its own comparison.
// All texts are data: they go in by textContent, never as markup.
(async function () {
  const AT_ONCE = 40; // texts that are listed before one asks for more
  const FAINT = 0.02; // of full colour; what is fainter would only blur the others
  const root = document.getElementById("whence");
  const blob = (name) => root.querySelector(`script[data-blob="${name}"]`);
  const list = root.querySelector(".texts");
  if (!list) return;

  async function inflated(element) {
    const raw = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).arrayBuffer();
  }

  const data = JSON.parse(new TextDecoder().decode(await inflated(blob("texts"))));
  const steps = new Int8Array(await inflated(blob("scores")));
  const { methods, signed, labels } = data;

  // where the scores of each text by each method begin
  let start = 0;
  for (const text of data.texts) {
    text.words = text.units.map((unit) => unit.trim().toLowerCase());
    text.starts = text.by.map((reading) => {
      if (!reading) return null;
      start += text.units.length;
      return start - text.units.length;
    });
  }

  function made(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in element) element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  const percent = (share) => `${hundredths(share)} %`;
  const correlation = (r) => r.toFixed(2).replace("-", "−").replace("−0.00", "0.00");

  // Each method with the score of a unit as a share of its largest one; its sign where that is the matter.
  // Whoever is ``weak`` gives less than a tenth, which is not rounded up to one.
  function withShares(text, unit, places, withSign, weak = false) {
    const share = (place) => steps[text.starts[place] + unit] / data.steps;
    const plain = (part) => `${withSign && part > 0 ? "+" : ""}${percent(withSign ? part : Math.abs(part))}`.replace("-", "−");
    const shown = (part) => (weak && plain(part) === percent(0.1) ? `< ${percent(0.1)}` : plain(part));
    return places.map((place) => `${methods[place]} (${shown(share(place))})`).join(", ");
  }

  function exact(value, withSign) {
    const shown = Number(value.toPrecision(2)).toString().replace("-", "−");
    return withSign && value > 0 ? `+${shown}` : shown;
  }

  // ------------------------------------------------------------------ one text

  // The units of a text; ``dress`` may give each a look of its own. White space stays outside of it.
  function running(text, dress) {
    const parts = [];
    text.units.forEach((unit, i) => {
      if (text.parts && i && text.parts[i] !== text.parts[i - 1]) parts.push(made("span", { className: "between", textContent: "‖" }));
      const body = unit.trimStart();
      parts.push(unit.slice(0, unit.length - body.length));
      if (body) parts.push(dress(body, i));
    });
    return parts;
  }

  function coloured(text, method) {
    const largest = text.by[method][0], first = text.starts[method];
    // Said of a text that is coloured by a method, to those who cannot see it.
    const dress = (body, i) => {
      const level = steps[first + i] / data.steps;
      const kind = signed[method] ? (level > 0 ? "p" : "n") : "m";
      const tip = `${body}: ${exact(level * largest, signed[method])}`;
      const unit = made("span", { className: `u ${kind}`, textContent: body, tabIndex: i ? -1 : 0, "aria-label": tip, "data-tip": tip, "data-i": i });
      unit.style.setProperty("--v", Math.abs(level) < FAINT ? "0" : Math.abs(level).toFixed(3));
      return unit;
    };
    const name = `the text as ${methods[method]} sees it`;
    return made("div", { className: "text", dir: "auto", role: "group", "aria-label": name }, ...running(text, dress));
  }

  // Said of a method that was judged on a text.
  function badge(reading) {
    if (reading.length < 2) return "";
    const [, verdict, beaten, p] = reading;
    const about = [];
    if (beaten !== null) about.push(`beats ${percent(beaten)} of random rankings`);
    if (p !== null) about.push(`${p < 0.001 ? "p < 0.001" : `p = ${p.toPrecision(2)}`}${data.classes[verdict] === "worse" ? " of worse" : ""}`);
    const words = made("span", { className: `badge ${data.classes[verdict]}`, textContent: `${data.marks[verdict]} ${data.verdicts[verdict]}` });
    return made("span", {}, words, made("span", { className: "soft", textContent: about.length ? ` ${about.join(", ")}` : "" }));
  }

  // Those with the best verdict first, as they are where nothing was judged; the control is last.
  function ordered(text) {
    const rank = (method) => (text.by[method].length < 2 ? 9 : text.by[method][1] || 8);
    const every = methods.map((_, method) => method).filter((method) => text.by[method]);
    return every.sort((a, b) => data.control[a] - data.control[b] || rank(a) - rank(b) || (text.by[b][2] || 0) - (text.by[a][2] || 0) || a - b);
  }

  // Said of a text that was opened: of methods that gave nothing, and of the word in dispute.
  function comparison(text) {
    const rows = [];
    const about = [];
    if (text.id) about.push(`id ${text.id}`);
    about.push(`row ${text.row}`, data.asked.replace("{}", () => labels[text.of]));
    rows.push(made("p", { className: "soft", textContent: about.join("; ") }));
    for (const method of ordered(text)) {
      const head = made("p", { className: "by" }, made("strong", { textContent: methods[method] }), data.control[method] ? " (the control) " : " ", badge(text.by[method]));
      rows.push(made("div", { className: "strip" }, head, coloured(text, method)));
    }
    const missing = methods.filter((_, method) => !text.by[method]);
    if (missing.length) rows.push(made("p", { className: "soft", textContent: `Nothing came of ${missing.join(", ")}.` }));
    if (text.split) {
      const [unit, one, ones, other, others] = text.split;
      const word = made("bdi", { textContent: `“${text.units[unit].trim()}”` });
      const withSign = one === "for";
      const here = withShares(text, unit, ones, withSign);
      const there = withShares(text, unit, others, withSign, other === "weak");
      const said = withSign ? ` is for ${labels[text.of]} in ${here}, and against it in ${there}.` : ` is ${one} in ${here}, and ${other} in ${there}.`;
      rows.push(made("p", { className: "soft" }, "Most in dispute: ", word, said));
    }
    return rows;
  }

  function isRight(text) {
    return text.says === undefined || text.label === undefined || text.unjudged ? null : text.says === text.label;
  }

  // Said of each text: one label, or, where each label has its own yes or no, several or none.
  function said(text) {
    const highest = `${labels[text.says]} ${percent(text.sure)}`;
    if (text.holds === undefined) return highest;
    const several = text.holds.map(([label, p]) => `${labels[label]} ${percent(p)}`).join(", ");
    return several || `none of its labels; highest is ${highest}`;
  }

  function namesSaid(text) {
    if (text.says === undefined) return [];
    if (text.holds === undefined) return [labels[text.says]];
    return text.holds.length ? text.holds.map(([label]) => labels[label]) : [data.none];
  }

  // Said of a text whose label the model has.
  function facts(text) {
    const parts = [];
    if (text.says !== undefined) parts.push(made("span", { textContent: said(text) }));
    const right = isRight(text);
    if (right === false) parts.push(made("span", { className: "wrong", textContent: `✗ data: ${labels[text.label]}` }));
    if (text.unjudged) parts.push(made("span", { textContent: `data: ${labels[text.label]}` }));
    if (right === true) parts.push(made("span", { className: "right", textContent: "✓ as in the data" }));
    const judged = text.by.filter((reading, method) => reading && reading.length > 1 && !data.control[method]);
    const better = judged.filter((reading) => data.classes[reading[1]] === "better").length;
    const word = data.verdicts[data.classes.indexOf("better")];
    if (judged.length) parts.push(made("span", { textContent: `${better} of ${judged.length} method${judged.length === 1 ? "" : "s"} ${word}` }));
    if (text.agree !== undefined) parts.push(made("span", { textContent: `agreement ${correlation(text.agree)}` }));
    return made("span", { className: "facts" }, ...parts);
  }

  function entry(text, isHit) {
    const dress = (body, i) => (isHit(text.words[i]) ? made("mark", { textContent: body }) : body);
    const words = made("span", { className: "words", dir: "auto" }, ...running(text, dress));
    const details = made("details", { className: "read", id: `text-${text.row}` }, made("summary", {}, words, facts(text)));
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) details.append(made("div", { className: "compared" }, ...comparison(text)));
    });
    return details;
  }

  // ------------------------------------------------------------------ the search

  const form = root.querySelector("form.search");
  const more = root.querySelector("button.more");
  const count = root.querySelector(".count");
  let found = [], shown = 0, isHit = () => false;

  // A term in quotation marks is a whole word, any other the beginning of one.
  function termsOf(query) {
    const terms = query.toLowerCase().match(/"[^"]+"|[^\s"]+/g) || [];
    return terms.map((term) => {
      const word = term.replaceAll('"', "");
      return term.startsWith('"') ? (other) => other === word : (other) => other.startsWith(word);
    });
  }

  const ORDERS = {
    agree: (a, b) => (a.agree ?? 2) - (b.agree ?? 2) || a.row - b.row,
    sure: (a, b) => (a.sure ?? 2) - (b.sure ?? 2) || a.row - b.row,
    row: (a, b) => a.row - b.row,
  };

  function search() {
    const asked = Object.fromEntries(new FormData(form));
    const terms = termsOf(asked.words || "");
    const is = (place, name) => !name || (place !== undefined && labels[place] === name);
    found = data.texts.filter((text) => {
      if (asked.says && !namesSaid(text).includes(asked.says)) return false;
      if (!is(text.label, asked.label)) return false;
      if (asked.right && isRight(text) !== (asked.right === "right")) return false;
      return terms.every((term) => text.words.some(term));
    });
    found.sort(ORDERS[asked.order] || ORDERS.row);
    isHit = (word) => terms.some((term) => term(word));
    shown = 0;
    list.replaceChildren();
    const all = data.texts.length;
    const ofAll = `${all.toLocaleString("en")} ${all === 1 ? "text" : "texts"}`;
    count.textContent = found.length === all ? ofAll : `${found.length.toLocaleString("en")} of ${ofAll}`;
    grow();
  }

  function grow(atLeast = 0) {
    const until = Math.min(found.length, Math.max(shown + AT_ONCE, atLeast));
    list.append(...found.slice(shown, until).map((text) => entry(text, isHit)));
    shown = until;
    more.hidden = shown >= found.length;
    more.textContent = `Show ${Math.min(AT_ONCE, found.length - shown)} more`;
  }

  // #text-17 opens that text, wherever it stands in the list
  function openNamed() {
    const row = Number((location.hash.match(/^#text-(\d+)$/) || [])[1] ?? NaN);
    if (Number.isNaN(row)) return;
    if (!found.some((text) => text.row === row)) {
      form.reset();
      search();
    }
    const place = found.findIndex((text) => text.row === row);
    if (place < 0) return;
    if (place >= shown) grow(place + 1);
    const goal = document.getElementById(`text-${row}`);
    goal.open = true;
    goal.scrollIntoView({ block: "nearest" });
  }

  form.addEventListener("input", search);
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => grow());
  window.addEventListener("hashchange", openNamed);
  form.hidden = false;
  search();
  openNamed();

  // ------------------------------------------------------------------ words

  for (const button of root.querySelectorAll("button.find")) {
    button.disabled = false;
    button.addEventListener("click", () => {
      form.elements.words.value = `"${button.dataset.word}"`;
      search();
      document.getElementById("texts").scrollIntoView({ block: "start" });
    });
  }
  const menu = root.querySelector("#words-by");
  if (menu) {
    const blocks = [...root.querySelectorAll(".carrying > .block")];
    const choose = () => blocks.forEach((block, i) => { block.hidden = String(i) !== menu.value; });
    menu.closest("label").hidden = false;
    root.querySelector(".carrying").classList.add("chosen");
    menu.addEventListener("change", choose);
    choose();
  }

  // ------------------------------------------------------------------ pointing at a word

  const light = (event, on) => {
    const unit = event.target.closest && event.target.closest(".u");
    if (!unit) return;
    const scope = unit.closest(".compared");
    scope.querySelectorAll(`.u[data-i="${unit.dataset.i}"]`).forEach((other) => other.classList.toggle("same", on && other !== unit));
  };
  for (const [name, on] of [["mouseover", true], ["mouseout", false], ["focusin", true], ["focusout", false]]) {
    list.addEventListener(name, (event) => light(event, on));
  }
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const unit = step && event.target.closest(".u");
    if (!unit) return;
    const row = [...unit.closest(".text").querySelectorAll(".u")];
    const next = row[row.indexOf(unit) + step];
    if (!next) return;
    unit.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    event.preventDefault();
  });
})();
