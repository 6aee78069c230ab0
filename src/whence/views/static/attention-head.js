// The head view: places on both sides, and a line for every weight.

const ROW = 22; // pixels; the style sheet takes it from here
const MOST_LINES = 3000; // the strongest; more of them take seconds to draw, and only add fog

// Said beside both columns of words.
function headView(app) {
  const { root, state } = app;
  const panel = root.querySelector(".panel.head");
  const from = made("div", { className: "places from", role: "listbox", "aria-label": "the word that looks" });
  const to = made("div", { className: "places to", role: "listbox", "aria-label": "the word that is looked at" });
  const canvas = made("canvas", { className: "lines", role: "img" });
  panel.append(made("p", { className: "sides soft" }, made("span", { textContent: "this word looks" }), made("span", { textContent: "at this one" })), made("div", { className: "columns" }, from, canvas, to));
  panel.style.setProperty("--row", `${ROW}px`);
  let built = "", hovered = null, focused = null, layer = null;

  function place(side, axis, i, first) {
    const begins = axis.part[i] > 0 && axis.part.indexOf(axis.part[i]) === i && axis.part.some((part) => part === 0);
    const classes = ["place", axis.special[i] ? "special" : "", axis.apart[i] ? "apart" : "", axis.part[i] > 0 ? `part${axis.part[i]}` : "", begins ? "begins" : ""];
    const content = [bdi(axis.labels[i]), made("span", { className: "strip" }), made("span", { className: "number" })];
    const title = begins ? `${axis.names[i]}; here begins: ${BESIDE[axis.part[i]].replace(":", "")}` : axis.names[i];
    return made("div", { className: classes.filter(Boolean).join(" "), role: "option", tabIndex: first ? 0 : -1, title, "aria-selected": "false", "data-side": side, "data-i": i }, ...content);
  }

  function build() {
    const rows = app.rows(), columns = app.columns();
    const key = `${state.kind}|${rows}|${columns}`;
    if (key === built) return;
    built = key;
    hovered = focused = null;
    const pinned = state.place, kept = pinned && (pinned.side === "from" ? rows : columns).includes(pinned.i);
    if (!kept) state.place = null;
    const first = (side, all) => (kept && pinned.side === side ? pinned.i : all[0]);
    from.replaceChildren(...rows.map((i) => place("from", app.kind().from, i, i === first("from", rows))));
    to.replaceChildren(...columns.map((j) => place("to", app.kind().to, j, j === first("to", columns))));
  }

  const chosen = () => hovered || focused || state.place;
  const masked = (one, other) => (one.side === "from" ? app.never(one.i, other) : app.never(other, one.i));

  // Visits every line that is not below the threshold: head, positions on both sides, opacity, and whether it is grey.
  function eachLine(heads, visit) {
    const kind = app.kind(), rows = app.rows(), columns = app.columns(), one = chosen(), fade = one ? 1 : heads.length ** -0.4;
    const ofRow = one ? app.largestOfRow(layer, heads, one) : null;
    for (const head of heads) {
      const largest = one ? ofRow : app.largest(layer, state.layer, head);
      for (let r = 0; r < rows.length; r++) {
        if (one && one.side === "from" && one.i !== rows[r]) continue;
        for (let c = 0; c < columns.length; c++) {
          if (one && one.side === "to" && one.i !== columns[c]) continue;
          const weight = layer.weight(head, rows[r], columns[c]);
          if (weight < state.threshold || weight === 0) continue;
          const here = one && one.side === "from" ? 0 : kind.from.apart[rows[r]], there = one && one.side === "to" ? 0 : kind.to.apart[columns[c]];
          const grey = app.greyed(here || there);
          visit(head, r, c, Math.min(1, weight / largest) * fade * (grey ? 0.4 : 1), grey);
        }
      }
    }
  }

  // The lines that are to be seen, the strongest last. They are counted first: millions of objects would be too many.
  function strongest() {
    const one = chosen(), heads = [...state.heads].sort((a, b) => a - b), counts = new Uint32Array(1001), all = [];
    const bin = (alpha) => Math.floor(1000 * alpha);
    eachLine(heads, (head, r, c, alpha) => counts[bin(alpha)]++);
    let least = 1000;
    for (let above = counts[1000]; least > 0 && (one || above < MOST_LINES); above += counts[--least]);
    eachLine(heads, (head, r, c, alpha, grey) => bin(alpha) >= least && all.push({ head, r, c, alpha, grey }));
    const spread = one ? Math.min(2.5, (ROW - 8) / heads.length) : 0; // lines of one place lie beside each other, head by head
    const lines = thinned(all).sort((a, b) => a.alpha - b.alpha);
    for (const line of lines) {
      const shift = (heads.indexOf(line.head) - (heads.length - 1) / 2) * spread;
      line.colour = line.grey ? app.theme.grey : app.colour(line.head);
      line.y = [(line.r + 0.5) * ROW + shift, (line.c + 0.5) * ROW + shift];
    }
    return { lines, count: counts.reduce((a, b) => a + b), thickness: lines.length > 600 ? 1 : one ? 2 : 1.4 };
  }

  // At most so many lines: the strongest, and of equally strong ones every so-manieth, that no part of the text is favoured.
  function thinned(all) {
    if (all.length <= MOST_LINES || chosen()) return all;
    const cut = Float64Array.from(all, (line) => line.alpha).sort()[all.length - MOST_LINES];
    const above = all.filter((line) => line.alpha > cut), equal = all.filter((line) => line.alpha === cut);
    const every = equal.length / (MOST_LINES - above.length);
    return above.concat(equal.filter((_, n) => Math.floor((n + 1) / every) > Math.floor(n / every)));
  }

  // Said where there are more lines than are drawn.
  function drawLines() {
    const width = canvas.clientWidth, height = ROW * Math.max(app.rows().length, app.columns().length);
    const ratio = Math.min(window.devicePixelRatio || 1, 16000 / Math.max(height, 1));
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d"), { lines, count, thickness } = strongest();
    context.scale(ratio, ratio);
    context.lineWidth = thickness;
    for (const { colour, alpha, y } of lines) {
      context.strokeStyle = colour;
      context.globalAlpha = alpha;
      context.beginPath(); // each line by itself: a path of many that cross is far slower
      context.moveTo(0, y[0]);
      context.lineTo(width, y[1]);
      context.stroke();
    }
    canvas.dataset.count = lines.length;
    canvas.setAttribute("aria-label", `${lines.length} lines, ${app.where()}`);
    app.say(lines.length < count ? `Of ${count.toLocaleString("en")} lines, the ${lines.length.toLocaleString("en")} strongest are drawn; pointing at a word shows all of its own.` : "");
  }

  const profile = () => app.profile(layer, [...state.heads].sort((a, b) => a - b), chosen());

  function drawNumbers() {
    for (const element of panel.querySelectorAll(".place")) {
      const pinned = state.place, on = chosen() && element.dataset.side === chosen().side && Number(element.dataset.i) === chosen().i;
      element.classList.toggle("chosen", Boolean(on));
      element.classList.toggle("pinned", Boolean(pinned) && element.dataset.side === pinned.side && Number(element.dataset.i) === pinned.i);
      element.setAttribute("aria-selected", String(Boolean(on)));
      element.querySelector(".number").textContent = "";
      element.querySelector(".strip").style.background = "";
    }
    const p = profile(), heads = [...state.heads];
    panel.classList.toggle("choosing", Boolean(p));
    const largest = p ? p.largest : heads.length === 1 ? app.largest(layer, state.layer, heads[0]) : null;
    app.answer.tell(app.does(heads), p, largest);
    if (!p) return;
    const side = p.one.side === "from" ? to : from, axis = p.one.side === "from" ? app.kind().to : app.kind().from;
    p.others.forEach((o, n) => {
      if (p.mean[n] < state.threshold || masked(p.one, o)) return;
      const element = side.children[n];
      element.querySelector(".number").textContent = numberOf(p, n);
      // a grey place may get more than any word: its bar would not fit beside theirs
      if (!app.greyed(axis.apart[o])) element.querySelector(".strip").style.background = bar(p, n, side === from);
    });
  }

  function numberOf(p, n) {
    const seen = p.one.side === "from" ? p.others[n] : p.one.i;
    return percentOr(p.mean[n], Math.max(...p.heads.map((h) => layer.error(h, seen))));
  }

  // A bar is as long as its number, the full width being what full colour stands for. Of a mean, each head has its part, in its own colour.
  function bar(p, n, leftwards) {
    let end = 0;
    const parts = p.heads.map((h, k) => {
      const start = end;
      end += (100 * p.each[n][k]) / p.heads.length / p.largest;
      return `${app.colour(h)} ${start}% ${end}%`;
    });
    return `linear-gradient(${leftwards ? 270 : 90}deg, ${parts.join(", ")}, transparent ${end}%)`;
  }

  function heat() {
    const p = profile(), heads = [...state.heads];
    if (p) return app.picture(p.others, p.mean, `${p.one.side === "from" ? "attention from" : "attention to"} ${app.kind()[p.one.side].labels[p.one.i]}`);
    const first = app.rows()[0], columns = app.columns();
    if (first === undefined || !heads.length) return app.picture([], [], "");
    const mean = columns.map((j) => heads.reduce((sum, h) => sum + layer.weight(h, first, j), 0) / heads.length);
    app.picture(columns, mean, `attention from ${app.kind().from.labels[first]}`);
  }

  function update() {
    if (!layer) return;
    drawLines();
    drawNumbers();
    heat();
  }

  const placeOf = (event) => {
    const element = event.target.closest && event.target.closest(".place, .word");
    return element ? { side: element.dataset.side, i: Number(element.dataset.i) } : null;
  };
  panel.addEventListener("mouseover", (event) => {
    const now = placeOf(event);
    if ((now && hovered && now.side === hovered.side && now.i === hovered.i) || (!now && !hovered)) return;
    hovered = now;
    update();
  });
  panel.addEventListener("mouseleave", () => {
    hovered = null;
    update();
  });
  panel.addEventListener("focusin", (event) => {
    focused = placeOf(event);
    update();
  });
  panel.addEventListener("focusout", () => {
    focused = null;
    update();
  });
  // A place that was clicked stays chosen, so that it can be exported; clicked again, it is let go.
  function pin(event) {
    const now = placeOf(event), pinned = state.place;
    if (!now) return;
    event.preventDefault();
    const same = pinned && pinned.side === now.side && pinned.i === now.i;
    state.place = same ? null : now;
    if (same) event.target.closest(".place, .word").blur();
    update();
  }
  panel.addEventListener("click", pin);
  app.answer.running.addEventListener("click", (event) => state.view === "head" && pin(event));
  for (const how of ["mouseover", "mouseleave"]) {
    app.answer.running.addEventListener(how, (event) => {
      if (state.view !== "head") return;
      hovered = how === "mouseover" ? placeOf(event) : null;
      update();
    });
  }
  panel.addEventListener("keydown", (event) => {
    const here = event.target.closest(".place");
    if (!here) return;
    if (event.key === "Enter" || event.key === " ") pin(event);
    if (event.key === "Escape") {
      state.place = null;
      here.blur();
    }
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = event.key === "ArrowRight" ? to : from;
    const next = other.querySelector('.place[tabindex="0"]');
    event.preventDefault();
    if (next && !other.contains(here)) next.focus();
  });
  const along = { ArrowDown: 1, ArrowUp: -1, Home: () => 0, End: () => Infinity };
  arrows(from, ".place", along);
  arrows(to, ".place", along);

  return {
    async draw() {
      const wanted = await app.layer(state.kind, state.layer);
      build();
      layer = wanted;
      panel.classList.toggle("greyed", state.special === "greyed");
      update();
    },
    async figure() {
      layer = await app.layer(state.kind, state.layer);
      build();
      const kind = app.kind(), rows = app.rows(), columns = app.columns(), theme = app.theme;
      const side = 200, middle = 260, top = 44, p = profile(), parts = [];
      parts.push(svg.text(12, 24, app.where(true), { fill: theme.ink, size: 14 }));
      const { lines, thickness } = strongest();
      for (const { colour, alpha, y } of lines) {
        const path = `M${side} ${(top + y[0]).toFixed(1)}L${side + middle} ${(top + y[1]).toFixed(1)}`;
        parts.push(`<path d="${path}" stroke="${colour}" stroke-width="${thickness}" stroke-opacity="${alpha.toFixed(3)}"/>`);
      }
      const label = (axis, name, i, n) => {
        const number = p && p.one.side !== name && p.mean[n] >= state.threshold && !masked(p.one, i) ? numberOf(p, n) : "";
        const fill = app.greyed(axis.apart[i]) ? theme.grey : theme.ink, y = top + (n + 0.5) * ROW + 4.5, left = name === "from";
        parts.push(svg.text(left ? side - 6 : side + middle + 6, y, short(axis.labels[i], 22), { fill, anchor: left ? "end" : "start" }));
        if (number) parts.push(svg.text(left ? 8 : 2 * side + middle - 8, y, number, { fill: theme.soft, size: 11, anchor: left ? "start" : "end" }));
      };
      rows.forEach((i, n) => label(kind.from, "from", i, n));
      columns.forEach((j, n) => label(kind.to, "to", j, n));
      return svg.whole(2 * side + middle, top + ROW * Math.max(rows.length, columns.length) + 12, theme, parts);
    },
  };
}
