// The text itself: a written word is chosen, and what it rests on is coloured. All texts go in by textContent.

const FAINT = 0.02; // of full colour; what is fainter would only blur the others
const STRONGEST = 5;

function readerOf(app) {
  const { data, state } = app, box = root.querySelector(".reader"), about = root.querySelector(".about");
  let sources = [], written = [];

  // One word: white space around it stays outside its colour, and where there is nothing else it is spelt out.
  function pieces(text, properties, chip) {
    const body = text.trim(), before = body ? text.slice(0, text.indexOf(body)) : text, after = body ? text.slice(before.length + body.length) : "";
    const shown = chip || body || spelled(text);
    const unit = made("span", { tabIndex: -1, ...properties, textContent: shown });
    if (!body && text.includes("\n")) return [unit, before];
    return body || chip ? [before, unit, after] : [unit];
  }

  function build() {
    sources = [];
    const parts = [];
    data.units.forEach((text, unit) => {
      if (data.written[unit]) return;
      const chip = text ? "" : data.names[unit];
      const put = pieces(text, { className: "u", "data-u": unit }, chip);
      sources.push({ element: put.find((part) => part instanceof Element), unit });
      parts.push(...put);
    });
    written = [];
    app.items().forEach((item, i) => {
      const put = pieces(item.text, { className: "u", "data-item": i }, item.isChip ? item.name : "");
      written.push({ element: put.find((part) => part instanceof Element), item, i });
      parts.push(...put);
    });
    box.replaceChildren(...parts);
    // one stop of the Tab key among the words of the prompt, one among those written
    for (const row of [sources, written]) if (row.length) row[0].element.tabIndex = 0;
    box.classList.add("alive");
  }

  function dress(element, classes, value, largest, tip) {
    const level = largest > 0 && !Number.isNaN(value) ? value / largest : 0;
    const kind = data.signed[state.method] ? (level > 0 ? "p" : "n") : "m";
    element.className = `u ${kind} ${classes}`;
    element.style.setProperty("--v", Math.abs(level) < FAINT ? "0" : Math.min(Math.abs(level), 1).toFixed(3));
    element.dataset.tip = tip;
    element.setAttribute("aria-label", tip);
  }

  function paint() {
    const chosen = state.chosen, isSigned = data.signed[state.method];
    const column = chosen.what === "source" ? columnOf(chosen.unit) : null;
    const reading = column ? null : app.reading();
    const scored = (value, largest) => (Number.isNaN(value) ? "" : shownScore(value, largest, isSigned));
    for (const { element, unit } of sources) {
      const value = reading ? reading.at(unit) : NaN, score = reading ? scored(value, reading.largest) : "";
      const isChosen = chosen.what === "source" && chosen.unit === unit;
      dress(element, isChosen ? "source picked" : "source", value, reading ? reading.largest : 0, score ? `${data.names[unit]}: ${score}` : data.names[unit]);
    }
    for (const { element, item, i } of written) {
      const isPast = chosen.what === "output" && i < chosen.item && item.unit !== undefined;
      const value = column ? column.values[i] : isPast ? reading.at(item.unit) : NaN;
      const largest = column ? column.largest : reading.largest;
      const isChosen = chosen.what === "output" && chosen.item === i;
      const classes = ["output", isChosen && "picked", item.isChip && "chip", !item.rows.length && "unexplained"];
      const score = scored(value, largest);
      dress(element, classes.filter(Boolean).join(" "), value, largest, score ? `${item.name}: ${score}` : `${item.name}: ${shownShare(item.p)}`);
      if (isChosen && state.pinned) element.classList.add("pinned");
    }
    root.querySelector(".together").textContent = note();
    tell(column, reading);
  }

  // Said where some word has several tokens, and words are shown.
  function note() {
    if (state.level !== "whole" || app.items().every((item) => item.outputs.length === 1)) return "";
    const how = data.adds[state.method] ? "sum of the scores of its tokens, as what they explain adds up" : "mean of the scores of its tokens";
    const own = data.kind === "words" || data.kind === "tokens" ? "; its own tokens are no source of it" : "";
    return `A word of several tokens has the ${how}, and the product of their probabilities${own}.`;
  }

  // What rests on one unit: its score for every written word behind it.
  function columnOf(unit) {
    const values = app.items().map((item) => (item.rows.length ? app.together(item.rows).at(unit) : NaN));
    return { values, largest: values.reduce((most, value) => (Number.isNaN(value) ? most : Math.max(most, Math.abs(value))), 0) };
  }

  // ------------------------------------------------------------------ beside the text

  // A bar for each; the one that was written stands out.
  function bars(entries, label, written) {
    const rows = entries.flatMap(([name, share]) => {
      const bar = made("i", {}), first = name === written ? "first" : "";
      bar.style.width = `${Math.min(share, 1) * 100}%`;
      return [made("dt", { className: first }, bdi(name)), made("dd", { className: `bar ${first}` }, bar), made("dd", { className: first, textContent: shownShare(share) })];
    });
    return made("dl", { className: "bars", "aria-label": label }, ...rows);
  }

  // Said where no unit has a score.
  function strongest(entries, largest) {
    const isSigned = data.signed[state.method];
    // a score that is shown as nothing is no reason
    const order = entries.filter(([, value]) => Number(shownScore(value, largest, false).replace("−", "-"))).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, STRONGEST);
    const rows = order.map(([name, value]) => {
      const cells = [made("th", { scope: "row" }, bdi(name)), made("td", { textContent: shownScore(value, largest, isSigned) }), trackOf(value, largest, isSigned, "td")];
      return made("tr", {}, ...cells);
    });
    return rows.length ? made("table", { className: "scores" }, made("tbody", {}, ...rows)) : made("p", { className: "soft", textContent: "Nothing scores here." });
  }

  const titled = (title, ...children) => [made("h4", { textContent: title }), ...children];

  // Said beside the text: of all that was explained, or of the word that is chosen.
  function tell(column, reading) {
    const chosen = state.chosen;
    if (column) return about.replaceChildren(...tellSource(chosen.unit, column));
    const item = chosen.what === "output" ? app.items()[chosen.item] : null;
    const every = Array.from({ length: reading.count }, (_, unit) => [app.sourceName(unit, item), reading.at(unit)]);
    if (!item && app.contrast()) {
      about.replaceChildren(
        made("p", { className: "who" }, bdi(data.contrast.name)),
        made("p", { className: "soft", textContent: data.contrast.of }),
        ...titled("Rests on", strongest(every, reading.largest)),
      );
      return undefined;
    }
    if (!item) {
      const count = data.explained.length, isAll = count === data.outputs.length;
      about.replaceChildren(
        made("p", { className: "who", textContent: `All that was ${isAll ? data.standing : "explained"}` }),
        made("p", { className: "soft", textContent: `the ${data.adds[state.method] ? "sum" : "mean"} over ${count} ${count === 1 ? "token" : "tokens"}` }),
        ...titled("Rests on", strongest(every, reading.largest)),
      );
      return undefined;
    }
    const outputs = item.outputs.map((i) => data.outputs[i]);
    const who = made("p", { className: "who" }, bdi(item.name), made("span", { className: "soft", textContent: state.pinned ? " chosen; Esc lets it go" : "" }));
    const parts = [who, made("p", { className: "facts", textContent: facts(item, outputs) })];
    if (item.rows.length) parts.push(...titled("Rests on", strongest(every, reading.largest)));
    else parts.push(made("p", { className: "soft", textContent: "This one was not explained." }));
    if (outputs.length > 1) parts.push(...titled("Its tokens", bars(outputs.map((output) => [output.name, output.p]), "probabilities of its tokens", null)));
    const others = outputs[0].others.some(([name]) => name === outputs[0].alike) ? outputs[0].others : [...outputs[0].others, [outputs[0].alike, outputs[0].p]];
    parts.push(...titled(outputs.length > 1 ? `Could have stood in place of “${outputs[0].name}”` : "Could have stood there", bars(others, `the likeliest tokens, and the one ${data.standing}`, outputs[0].alike)));
    return about.replaceChildren(...parts);
  }

  // Said of the chosen word: its probability, and how open its first token was.
  function facts(item, outputs) {
    const open = outputs[0].entropy, like = Math.exp(open);
    const first = outputs.length > 1 ? " at its first token" : "";
    const choice = like < 1.05 ? "no real choice" : `as open as ${like < 10 ? like.toFixed(1) : Math.round(like).toLocaleString("en")} equal chances`;
    return `probability ${shownShare(item.p)}; entropy${first} ${open.toFixed(2)} nats, ${choice}`;
  }

  // Said of a word of the prompt that is chosen.
  function tellSource(unit, column) {
    const items = app.items(), entries = column.values.map((value, i) => [items[i].name, value]);
    return [made("p", { className: "who" }, bdi(data.names[unit])), made("p", { className: "soft", textContent: "as a source; Esc lets it go" }), ...titled("Rest on it", strongest(entries, column.largest))];
  }

  // ------------------------------------------------------------------ choosing

  const found = (event) => (event.target.closest ? event.target.closest(".reader .u") : null);

  function point(event) {
    const unit = found(event);
    if (!unit) return;
    // a tip of a word on the right would run over the side
    unit.classList.toggle("late", unit.offsetLeft > box.clientWidth / 2);
    if (unit.dataset.item !== undefined && !state.pinned) app.choose({ what: "output", item: Number(unit.dataset.item) }, false);
    unit.classList.toggle("late", unit.offsetLeft > box.clientWidth / 2);
  }

  function pick(unit) {
    const wanted = unit.dataset.item !== undefined ? { what: "output", item: Number(unit.dataset.item) } : { what: "source", unit: Number(unit.dataset.u) };
    const same = state.pinned && state.chosen.what === wanted.what && state.chosen.item === wanted.item && state.chosen.unit === wanted.unit;
    if (same && wanted.what === "source") app.choose({ what: "all" }, false);
    else app.choose(wanted, !same);
  }

  box.addEventListener("mouseover", point);
  box.addEventListener("focusin", point);
  box.addEventListener("click", (event) => {
    const unit = found(event);
    if (unit) pick(unit);
  });
  box.addEventListener("keydown", (event) => {
    const unit = found(event);
    if (!unit) return;
    const row = (unit.dataset.item !== undefined ? written : sources).map((one) => one.element), at = row.indexOf(unit);
    const goal = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: row.length - 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") pick(unit);
    else if (goal === undefined) return;
    else if (row[goal]) {
      unit.tabIndex = -1;
      row[goal].tabIndex = 0;
      row[goal].focus();
    }
    event.preventDefault();
  });
  return { build, paint };
}

// A bar from zero to a score, on both sides where scores have signs.
function trackOf(value, largest, isSigned, tag) {
  const zero = isSigned ? 50 : 0, end = zero + (largest ? ((100 - zero) * value) / largest : 0);
  const bar = made("i", { className: isSigned ? (value > 0 ? "p" : "n") : "m" });
  bar.style.left = `${Math.min(zero, end)}%`;
  bar.style.width = `${Math.abs(end - zero)}%`;
  return made(tag, { className: isSigned ? "track both" : "track", "aria-hidden": "true" }, made("div", {}, bar));
}
