// The units in rows: sections, sentences or words, a bar for each; larger ones open into their words, each with its score.

function rowsOf(app) {
  const { data, state } = app, box = root.querySelector(".by-row"), menu = app.control("rows");
  const kinds = data.rows, list = made("div", { className: "rows" }), title = made("h3", {}), of = made("p", { className: "soft of" }), note = made("p", { className: "soft" });
  let rows = [];

  function build() {
    box.hidden = !kinds.length;
    if (!kinds.length) return;
    menu.closest("label").hidden = kinds.length < 2;
    menu.addEventListener("change", () => {
      lay();
      paint();
    });
    box.prepend(title);
    box.append(of, list, note);
    lay();
  }

  // The rows of the chosen kind; what is no larger than a unit has nothing to open.
  // Said below rows that open.
  function lay() {
    const { kind, groups, opens } = kinds[Number(menu.value) || 0];
    title.textContent = `By ${kind}`;
    note.textContent = opens ? `A bar is the sum of the scores of its ${data.kind}. Open a row to see them.` : "";
    rows = groups.map(([start, stop, name]) => {
      const text = data.units.slice(start, stop).join("").trim().replace(/\s+/g, " ") || data.names[start];
      const track = made("span", { className: "bar-place" }), number = made("span", { className: "number" }), line = made("span", { className: "line", dir: "auto", textContent: text });
      const badge = name || (data.written[start] ? data.standing : "");
      if (badge) line.prepend(made("span", { className: "badge", textContent: badge }), " ");
      const row = { start, stop, track, number, words: null, whole: null };
      if (opens || kind !== "words") {
        row.words = made("div", { className: "text", dir: "auto" });
        row.whole = made("details", { className: "row" }, made("summary", {}, track, number, line), row.words);
        row.whole.addEventListener("toggle", () => row.whole.open && paintWords(row));
      } else row.whole = made("div", { className: "row plain-row" }, track, number, line);
      return row;
    });
    list.replaceChildren(...rows.map((row) => row.whole));
  }

  function paint() {
    if (!kinds.length) return;
    const reading = app.reading(), isSigned = data.signed[state.method];
    const sums = rows.map(({ start, stop }) => {
      let sum = 0;
      for (let unit = start; unit < Math.min(stop, reading.count); unit++) sum += reading.at(unit);
      return sum;
    });
    const largest = sums.reduce((most, sum) => Math.max(most, Math.abs(sum)), 0);
    of.replaceChildren(...about());
    rows.forEach((row, i) => {
      row.whole.hidden = row.start >= reading.count;
      row.track.replaceChildren(trackOf(sums[i], largest, isSigned, "span"));
      row.number.textContent = shownScore(sums[i], largest, isSigned);
      if (row.words && row.whole.open) paintWords(row);
    });
  }

  // Said above the rows: of what they are sources.
  function about() {
    if (app.contrast()) return ["What ", bdi(data.contrast.name), " rests on:"];
    if (state.chosen.what !== "output") return [`What all that was ${data.explained.length === data.outputs.length ? data.standing : "explained"} rests on:`];
    return ["What “", bdi(app.items()[state.chosen.item].name), "” rests on:"];
  }

  // Each word in its colour, and its score below it.
  function paintWords({ start, stop, words }) {
    const reading = app.reading(), isSigned = data.signed[state.method], parts = [];
    for (let unit = start; unit < Math.min(stop, reading.count); unit++) {
      const text = data.units[unit], body = text.trim(), value = reading.at(unit), level = reading.largest ? value / reading.largest : 0;
      const score = shownScore(value, reading.largest, isSigned), tip = `${data.names[unit]}: ${score}`;
      const word = made("span", { className: `u ${isSigned ? (level > 0 ? "p" : "n") : "m"}`, textContent: body || spelled(text) || data.names[unit], "data-tip": tip });
      word.style.setProperty("--v", Math.abs(level) < FAINT ? "0" : Math.abs(level).toFixed(3));
      const scored = stop - start > 1 ? made("span", { className: "scored", role: "group", "aria-label": tip }, word, made("small", { textContent: score })) : word;
      parts.push(body ? text.slice(0, text.indexOf(body)) : "", scored, body ? text.slice(text.indexOf(body) + body.length) : "");
    }
    words.replaceChildren(...parts);
  }
  return { build, paint };
}
