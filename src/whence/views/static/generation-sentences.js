// A prompt of several sentences: a bar for each, the sum over its words, and each opens into its words.

function sentencesOf(app) {
  const { data, state } = app, box = root.querySelector(".by-sentence");
  const groups = data.sentences, isFine = groups.some(([start, stop]) => stop - start > 1);
  const isUseful = groups.filter(([start]) => !data.written[start]).length > 1;
  const rows = [];

  function build() {
    box.hidden = !isUseful;
    if (!isUseful || rows.length) return;
    const things = isFine ? "Sentence by sentence" : `By ${data.kind}`;
    const about = isFine ? "A bar is the sum of the scores of a sentence's words. Open a sentence to see them." : "";
    const list = groups.map(([start, stop], i) => {
      const text = data.units.slice(start, stop).join("").trim(), track = made("span", { className: "bar-place" });
      const number = made("span", { className: "number" }), line = made("span", { className: "line", dir: "auto", textContent: text });
      const words = made("div", { className: "text", dir: "auto" });
      const details = made("details", { className: "sentence" }, made("summary", {}, track, number, line), words);
      if (data.written[start]) line.prepend(made("span", { className: "badge", textContent: "written" }), " ");
      details.addEventListener("toggle", () => details.open && paintWords(i));
      rows.push({ start, stop, track, number, words, details });
      return details;
    });
    box.replaceChildren(made("h3", { textContent: things }), made("p", { className: "soft of" }), ...list, made("p", { className: "soft", textContent: about }));
  }

  function paint() {
    if (!isUseful) return;
    const reading = app.reading(), isSigned = data.signed[state.method];
    const sums = rows.map(({ start, stop }) => {
      let sum = 0;
      for (let unit = start; unit < Math.min(stop, reading.count); unit++) sum += reading.at(unit);
      return sum;
    });
    const largest = sums.reduce((most, sum) => Math.max(most, Math.abs(sum)), 0);
    box.querySelector(".of").replaceChildren(...of());
    rows.forEach(({ start, track, number, details }, i) => {
      details.hidden = start >= reading.count;
      track.replaceChildren(trackOf(sums[i], largest, isSigned, "span"));
      number.textContent = shownScore(sums[i], largest, isSigned);
      if (details.open) paintWords(i);
    });
  }

  function of() {
    if (state.chosen.what !== "output") return ["What all that was written rests on:"];
    return ["What “", bdi(app.items()[state.chosen.item].name), "” rests on:"];
  }

  function paintWords(i) {
    const { start, stop, words } = rows[i], reading = app.reading(), isSigned = data.signed[state.method], parts = [];
    for (let unit = start; unit < Math.min(stop, reading.count); unit++) {
      const text = data.units[unit], body = text.trimStart(), value = reading.at(unit), level = reading.largest ? value / reading.largest : 0;
      const tip = `${data.names[unit]}: ${shownScore(value, reading.largest, isSigned)}`;
      const word = made("span", { className: `u ${isSigned ? (level > 0 ? "p" : "n") : "m"}`, textContent: body || spelled(text) || data.names[unit], "data-tip": tip, "aria-label": tip });
      word.style.setProperty("--v", Math.abs(level) < FAINT ? "0" : Math.abs(level).toFixed(3));
      parts.push(body ? text.slice(0, text.length - body.length) : "", word);
    }
    words.replaceChildren(...parts);
  }
  return { build, paint };
}
