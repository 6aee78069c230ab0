// The neuron view: how one head comes to one row of weights: query, keys, their product, the score, the weight.

// Said as names of the parts of the view.
function neuronView(app) {
  const { root, state } = app;
  const panel = root.querySelector(".panel.neuron");
  if (!panel) return null;
  const note = made("p", { className: "note soft" });
  const tokens = made("div", { className: "tokens", role: "listbox", "aria-label": "the word that looks", "aria-orientation": "horizontal" });
  const table = made("div", { className: "neurons", role: "group", "aria-label": "query, keys, products, scores" });
  panel.append(note, made("p", { className: "soft", textContent: "The word that looks:" }), tokens, made("div", { className: "scroll" }, table));
  const strips = { query: made("canvas", { className: "query" }), keys: made("canvas", { className: "keys" }), products: made("canvas", { className: "products" }) };
  let built = "", from = 0, shown = null;

  const neurons = () => app.kind().neurons;
  // whether the words here are those of the other views
  const same = (n) => n.from.length === app.kind().from.labels.length;

  // Where the tokens attended to are shown, and what is known of each.
  async function computed() {
    const n = neurons(), head = Math.min(state.head, n.heads.length - 1);
    const one = await app.neurons(state.kind, state.layer);
    const layer = !n.why ? await app.layer(state.kind, state.layer) : null;
    const query = one.query(head, from);
    const rows = n.to.map((_, j) => j).filter((j) => !(state.special === "hidden" && n.apart[j])).map((j) => {
      const key = one.key(head, j), product = key.map((k, d) => k * query[d]);
      const weight = layer ? layer.weight(head, from, j) : null;
      const halfStep = layer ? layer.error(head, j) : 0;
      const never = n.from.length === n.to.length && app.never(from, j);
      return { j, key, product, score: n.scale * product.reduce((a, b) => a + b, 0), weight, halfStep, never };
    });
    const most = (vectors) => vectors.reduce((top, v) => v.reduce((t, x) => Math.max(t, Math.abs(x)), top), 1e-12);
    const limits = { query: most([query]), key: most(rows.map((r) => r.key)), product: most(rows.map((r) => r.product)), score: most([rows.map((r) => r.score)]), weight: most([rows.map((r) => r.weight)]) };
    return { n, head, query, rows, limits };
  }

  const diverging = (value, limit) => app.theme.diverging[Math.round(127.5 + 127.5 * Math.max(-1, Math.min(1, value / limit)))];

  function build() {
    const n = neurons(), key = `${state.kind}`;
    if (key === built) return;
    built = key;
    from = Math.min(from, n.from.length - 1);
    tokens.replaceChildren(...n.from.map((label, i) => made("button", { type: "button", className: "token", role: "option", tabIndex: i === from ? 0 : -1, title: label, "data-i": i }, bdi(label))));
  }

  // Said below the queries and keys; of merged tokens, rounding and missing layers where there are such.
  function words(n) {
    const held = n.layers.length === n.names.length ? "" : ` Of ${n.names.length} layers, this page has room for ${n.layers.length} (${n.layers.map((l) => n.names[l]).join(", ") || "none"}); attend(…, neurons=True, layers=[…]) gets others.`;
    const stored = n.layers.includes(state.layer) ? `Entries are stored in ${2 * n.levels + 1} steps, so a score of this layer is off by up to ${n.error[n.layers.indexOf(state.layer)]}.` : "";
    const weight = n.why ? ` ${n.why}` : "";
    const merged = n.merged ? " A word of several tokens has the mean of their queries and keys, so its score is the mean of theirs; its weight is the sum over them." : "";
    const product = n.scale === 1 ? "" : `, times ${Number(n.scale.toPrecision(4))}`;
    return `The query of the looking word is multiplied with the key of each word, entry by entry; the sum is the score${product}. The softmax of a row of scores gives the weights; before it the model may add a mask or a bias. Orange is positive, blue negative.${merged} ${stored}${weight}${held}`;
  }

  function fill({ n, query, rows, limits }) {
    const { dim } = n, cells = [];
    const add = (column, row, element, span = 1) => {
      element.style.gridColumn = column;
      element.style.gridRow = `${row} / span ${span}`;
      cells.push(element);
    };
    ["looks at", "key", "query × key", "score", !n.why ? "weight" : ""].forEach((name, k) => add(k + 1, 1, made("span", { className: "name soft", textContent: name })));
    add(1, 2, made("span", { className: "name query", textContent: "query" }));
    painted(strips.query, 1, dim, (_, d) => diverging(query[d], limits.query));
    painted(strips.keys, rows.length, dim, (r, d) => diverging(rows[r].key[d], limits.key));
    painted(strips.products, rows.length, dim, (r, d) => diverging(rows[r].product[d], limits.product));
    add(2, 2, strips.query);
    add(2, 3, strips.keys, rows.length);
    add(3, 3, strips.products, rows.length);
    rows.forEach((row, k) => {
      const classes = ["to", app.greyed(n.apart[row.j]) ? "grey" : "", row.never || (row.weight !== null && row.weight < state.threshold) ? "faint" : ""].join(" ").trim();
      const tint = row.never ? "transparent" : `rgb(${diverging(row.score, limits.score).join(" ")})`;
      const score = made("span", { className: `score ${classes.replace("grey", "")}`, textContent: row.never ? "masked" : signed(row.score) });
      score.style.background = tint;
      add(1, k + 3, made("span", { className: classes, title: n.to[row.j] }, bdi(n.to[row.j])));
      add(4, k + 3, score);
      if (row.weight === null) return;
      const bar = made("i"), weight = made("span", { className: `weight ${classes.replace("grey", "")}` }, bar, made("span", { textContent: row.never ? percent(row.weight) : percentOr(row.weight, row.halfStep) }));
      bar.style.width = `${(100 * row.weight) / limits.weight}%`;
      add(5, k + 3, weight);
    });
    table.classList.toggle("unweighted", Boolean(n.why));
    table.replaceChildren(...cells);
  }

  // Said where a kind of attention, or a layer, has no queries and keys in the page.
  async function draw() {
    const n = neurons();
    panel.classList.toggle("absent", !n || !n.layers.includes(state.layer));
    shown = null;
    app.answer.tell(n && n.heads.length !== app.kind().heads.length ? [""] : app.does([Math.min(state.head, app.kind().heads.length - 1)]), null, null);
    if (!n) {
      note.textContent = `There are no queries and keys of the ${app.kind().name} attention in this page.`;
      return;
    }
    if (same(n) && state.place && state.place.side === "from") from = state.place.i;
    build();
    note.textContent = (n.layers.includes(state.layer) ? "" : `Layer ${n.names[state.layer]} is not in this page. `) + words(n);
    if (!n.layers.includes(state.layer)) return;
    shown = await computed();
    tokens.querySelectorAll(".token").forEach((t, i) => {
      t.setAttribute("aria-selected", String(i === from));
      t.tabIndex = i === from ? 0 : -1;
    });
    fill(shown);
    if (n.why) return;
    const p = app.profile(await app.layer(state.kind, state.layer), [shown.head], { side: "from", i: from });
    app.answer.tell(app.does([shown.head]), p, p.largest);
  }

  // Said where a word is chosen in a layer that is not in the page.
  const choose = (event) => {
    const token = event.target.closest(".token");
    if (!token || Number(token.dataset.i) === from) return;
    from = Number(token.dataset.i);
    if (same(neurons())) state.place = { side: "from", i: from };
    tokens.querySelectorAll(".token").forEach((t) => (t.tabIndex = t === token ? 0 : -1));
    app.draw();
  };
  tokens.addEventListener("click", choose);
  tokens.addEventListener("focusin", choose);
  arrows(tokens, ".token", { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1, Home: () => 0, End: () => Infinity });
  table.addEventListener("mousemove", (event) => {
    const { target } = event;
    if (!shown || target.tagName !== "CANVAS") return;
    const d = Math.min(shown.n.dim - 1, Math.floor((event.offsetX / target.clientWidth) * shown.n.dim));
    const row = shown.rows[Math.min(shown.rows.length - 1, Math.floor((event.offsetY / target.clientHeight) * shown.rows.length))];
    const label = short(shown.n.to[row.j], 24);
    if (target === strips.query) app.say(`query of ${short(shown.n.from[from], 24)}, dimension ${d}: ${signed(shown.query[d])}`);
    else if (target === strips.keys) app.say(`key of ${label}, dimension ${d}: ${signed(row.key[d])}`);
    else app.say(`query × key of ${label}, dimension ${d}: ${signed(row.product[d])}`);
  });

  return {
    draw,
    async figure() {
      await draw();
      if (!shown) return svg.whole(420, 60, app.theme, [svg.text(12, 34, "This layer's queries and keys are not in the page.", { fill: app.theme.ink })]);
      const { n, rows, limits } = shown, theme = app.theme, left = 150, wide = 280, top = 100, row = 20, parts = [];
      const right = left + 2 * wide + 20, end = right + (!n.why ? 170 : 90);
      parts.push(svg.text(12, 24, `${app.title()} · layer ${n.names[state.layer]}, head ${n.heads[shown.head]} · from ${short(n.from[from], 24)}`, { fill: theme.ink, size: 14 }));
      [["key", left], ["query × key", left + wide + 10], ["score", right + 8], [!n.why ? "weight" : "", right + 88]].forEach(([name, x]) => parts.push(svg.text(x, 52, name, { fill: theme.soft, size: 12 })));
      parts.push(svg.text(left - 8, 76, "query", { fill: theme.ink, size: 12, anchor: "end" }), svg.image(left, 62, wide, row, strips.query));
      parts.push(svg.image(left, top, wide, row * rows.length, strips.keys), svg.image(left + wide + 10, top, wide, row * rows.length, strips.products));
      rows.forEach((r, k) => {
        const y = top + (k + 0.5) * row + 4;
        parts.push(svg.text(left - 8, y, short(n.to[r.j], 18), { fill: theme.ink, size: 12, anchor: "end" }));
        parts.push(`<rect x="${right}" y="${top + k * row}" width="74" height="${row}" fill="${r.never ? "none" : `rgb(${diverging(r.score, limits.score).join(",")})`}"/>`);
        parts.push(svg.text(right + 66, y, r.never ? "masked" : signed(r.score), { fill: theme.ink, size: 12, anchor: "end" }));
        if (r.weight !== null) parts.push(svg.text(right + 132, y, r.never ? percent(r.weight) : percentOr(r.weight, r.halfStep), { fill: theme.ink, size: 12, anchor: "end" }));
      });
      return svg.whole(end, top + row * rows.length + 16, theme, parts);
    },
  };
}
