// The answer above the views: what the head does, what the chosen word looks at, and the text in these colours.

const NAMED = 3; // words of a row that the sentence names
const SIDES = { cross: { from: "written:", to: "read:" }, other: { from: "looks:", to: "is looked at:" } };
const BESIDE = { 1: "second text:", 2: "written by the model:" };

function answerAbove(app) {
  const { root, data, state } = app;
  const does = root.querySelector(".answer .does"), row = root.querySelector(".answer .row");
  const running = root.querySelector(".answer .running"), legend = root.querySelector(".answer .legend");
  const quoted = (name) => `“${short(name, 30)}”`;
  let built = "";

  // The places that are set apart, by name: [CLS] and [SEP], or the first token.
  // Said where places are set apart: by their names, or by what they are where there are more than three.
  function apartNames(kind) {
    const names = [...new Set(kind.to.labels.filter((_, j) => kind.to.apart[j]))].map((name) => short(name, 20));
    const hasFirst = kind.to.apart.some((is, j) => is && !kind.to.special[j]);
    if (names.length > 3) return { names: hasFirst ? "The first token and special tokens" : "Special tokens", take: "take" };
    const one = kind.to.apart.filter(Boolean).length === 1;
    const first = one && !kind.to.special[0] && kind.to.apart[0] ? "The first token " : "";
    return { names: `${first}${first ? `“${names[0]}”` : listed(names)}`, take: one ? "takes" : "take" };
  }

  // Said of a chosen word: what it looks at, or what looks at it, of the places that are shown; what those set apart take, where it looks.
  function sentence(p) {
    if (!p) return "";
    const kind = app.kind(), from = p.one.side === "from", axis = from ? kind.to : kind.from;
    const own = (from ? kind.from : kind.to).names[p.one.i];
    const words = p.others.map((_, n) => n).filter((n) => !axis.apart[p.others[n]] && p.mean[n] >= 0.0005);
    const most = words.sort((a, b) => p.mean[b] - p.mean[a]).slice(0, NAMED);
    const list = listed(most.map((n) => `${quoted(axis.names[p.others[n]])} (${about(p.mean[n])})`));
    if (!from) return list ? `${quoted(own)} is looked at most by ${list}.` : `No word looks at ${quoted(own)} with 0.05 % or more.`;
    const looks = list ? `${quoted(own)} looks most at ${list}.` : `${quoted(own)} looks at no word with 0.05 % or more.`;
    if (!kind.to.apart.includes(1)) return looks;
    const { names, take } = apartNames(kind);
    return `${looks} ${names} ${take} ${about(p.apart)} of this row.`;
  }

  // Words in reading order; of two texts, who looks stands above what is looked at.
  function build() {
    const kind = app.kind();
    if (built === String(state.kind)) return;
    built = String(state.kind);
    const sides = kind.two_sided ? ["from", "to"] : ["to"];
    running.replaceChildren(...sides.map((side) => words(kind, side)).filter(Boolean));
  }

  function words(kind, side) {
    const axis = kind[side], name = (SIDES[kind.name] || SIDES.other)[side];
    const line = made("p", { className: "words", dir: "auto", "data-side": side });
    let before = 0;
    const shown = axis.labels.map((_, i) => i).filter((i) => !(data.image && (axis.labels.length !== data.image.cells.length || data.image.cells[i])));
    if (!shown.length) return null;
    if (kind.two_sided) line.append(made("span", { className: "mark", textContent: name }), " ");
    for (const i of shown) {
      const part = axis.part[i];
      if (part > 0 && part !== before && (side === "to" || part === 1) && !(kind.two_sided && shown.every((k) => axis.part[k] < 0 || axis.part[k] === part))) {
        line.append(made("span", { className: "mark begins", textContent: BESIDE[part] }), " ");
      }
      before = part < 0 ? before : part;
      const word = made("span", { className: ["word", axis.special[i] ? "special" : ""].join(" ").trim(), "data-i": i, "data-side": kind.two_sided ? side : "from", textContent: axis.labels[i] });
      line.append(word, " ");
    }
    return line;
  }

  function colour(p) {
    const kind = app.kind();
    for (const word of running.querySelectorAll(".word")) {
      word.classList.remove("chosen", "apart");
      word.style.background = word.style.color = word.title = "";
    }
    const apart = (side, i) => state.special !== "shown" && kind[side].apart[i];
    const find = (side, i) => running.querySelector(`.words[data-side="${kind.two_sided ? side : "to"}"] .word[data-i="${i}"]`);
    if (!p) return;
    const own = find(p.one.side, p.one.i), other = p.one.side === "from" ? "to" : "from";
    if (own) own.classList.add("chosen");
    p.others.forEach((o, n) => {
      const word = find(other, o);
      if (!word) return;
      word.title = percent(p.mean[n]);
      if (apart(other, o)) return word.classList.add("apart");
      const level = p.mean[n] < state.threshold ? 0 : Math.min(1, p.mean[n] / p.largest);
      if (level < 0.04) return;
      const rgb = app.theme.map[Math.round(255 * level)];
      word.style.background = `rgb(${rgb.join(" ")})`;
      word.style.color = rgb[0] * 0.3 + rgb[1] * 0.59 + rgb[2] * 0.11 > 140 ? "#101216" : "#ffffff";
    });
    if (own && running.scrollHeight > running.clientHeight) running.scrollTop = own.offsetTop - running.offsetTop - 40;
  }

  // On a narrow screen a line may not end between a number and its sign.
  function unbroken(text) {
    return text.replaceAll(" %", "\u00a0%");
  }

  // What the colours mean, in a sentence behind the ramp.
  // Said behind the ramp: what full colour stands for, and which places are left out of it.
  function explain(p, largest) {
    const kind = app.kind(), grey = state.special === "greyed" && kind.to.apart.includes(1);
    const one = `one ${data.units}`, gets = p && p.one.side === "from" ? `the most that ${one} of this row gets` : `the most that ${one} gives it`;
    const which = p ? gets : "the largest weight of the head";
    const most = state.scale === "one" ? "100 %: all attention of a row" : largest === null ? which : `${about(largest)}: ${which}`;
    const left = grey ? ` ${apartNames(kind).names} ${kind.to.apart.filter(Boolean).length === 1 ? "is" : "are"} grey and left out of the colours.` : "";
    legend.replaceChildren("no attention ", made("span", { className: "ramp", "aria-hidden": "true" }), ` ${most}.${left}`);
  }

  return {
    // p: the row that is chosen, or null; text: what is said of the head, and why it is shown; largest: what the darkest colour stands for.
    tell(text, p, largest) {
      build();
      const [first, more] = text;
      does.replaceChildren(unbroken(first), made("span", { className: "why", textContent: more || "" }));
      row.textContent = unbroken(sentence(p));
      colour(p);
      explain(p, largest);
    },
    running,
  };
}
