// The features of an autoencoder, unpacked from columns. Nothing is made of a feature before it is asked for.

const ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, i1: Int8Array };

async function unpackedColumns() {
  const columns = {};
  for (const element of root.querySelectorAll("script[data-blob]")) {
    const bytes = await inflated(element), kind = element.dataset.type;
    if (kind === "json") columns[element.dataset.blob] = JSON.parse(new TextDecoder().decode(bytes));
    else columns[element.dataset.blob] = new ARRAYS[kind](bytes.buffer, 0, bytes.byteLength / ARRAYS[kind].BYTES_PER_ELEMENT);
  }
  return columns;
}

// Where each of several rows of unequal length begins; one more for the end.
function beginnings(lengths) {
  const starts = new Uint32Array(lengths.length + 1);
  for (let i = 0; i < lengths.length; i++) starts[i + 1] = starts[i] + lengths[i];
  return starts;
}

function featuresOf(c) {
  const { about } = c, { pieces, width, neighbours, nobody } = about;
  const bins = about.edges.length - 1;
  const excerpts = beginnings(c.lengths), tops = beginnings(c.counts), values = beginnings(c.length);
  const placeOf = new Map(Array.from(c.number, (number, i) => [number, i]));
  const lower = pieces.map((piece) => piece.toLowerCase());
  const tokenAt = (top, place) => c.ids[excerpts[c.excerpt[top]] + c.start[top] + place];

  const weighed = (ids, effects, i) => {
    const several = [];
    for (let k = i * width; k < (i + 1) * width; k++) if (ids[k] !== nobody) several.push({ name: pieces[ids[k]], effect: effects[k] });
    return several;
  };

  const tokensOf = (top) => {
    const first = excerpts[c.excerpt[top]] + c.start[top];
    return Array.from(c.ids.subarray(first, first + c.length[top]));
  };

  // What is searched is made once, when it is first wanted.
  const found = new Map();
  const searched = (where, i) => {
    const key = `${where} ${i}`;
    if (!found.has(key)) {
      const parts = [];
      if (where === "promotes") for (let k = i * width; k < (i + 1) * width; k++) if (c.promotes[k] !== nobody) parts.push(lower[c.promotes[k]]);
      for (let top = tops[i]; where !== "promotes" && top < tops[i + 1]; top++) {
        if (where === "fires") parts.push(lower[tokenAt(top, c.place[top])]);
        else parts.push(tokensOf(top).map((id) => lower[id]).join(""));
      }
      found.set(key, parts);
    }
    return found.get(key);
  };

  return {
    about, count: c.number.length, placeOf, bins,
    number: (i) => c.number[i], frequency: (i) => c.frequency[i], peak: (i) => c.peak[i], mean: (i) => c.mean[i],
    histogram: (i) => c.histogram.subarray(i * bins, (i + 1) * bins),
    promotes: (i) => weighed(c.promotes, c.promotes_by, i),
    suppresses: (i) => weighed(c.suppresses, c.suppresses_by, i),
    similar(i) {
      const several = [];
      for (let k = i * neighbours; k < (i + 1) * neighbours; k++) {
        if (c.similar[k] !== nobody) several.push({ number: c.similar[k], cosine: c.cosine[k] / about.cosine_steps });
      }
      return several;
    },
    // The tokens on which it is strongest, those of most passages first.
    fires(i, most) {
      const counts = new Map();
      for (let top = tops[i]; top < tops[i + 1]; top++) {
        const piece = pieces[tokenAt(top, c.place[top])], name = piece.trim() || piece;
        counts.set(name, (counts.get(name) || 0) + 1);
      }
      return [...counts].sort((a, b) => b[1] - a[1]).slice(0, most).map(([name]) => name);
    },
    passages(i) {
      const several = [];
      for (let top = tops[i]; top < tops[i + 1]; top++) {
        const steps = c.values.subarray(values[top], values[top + 1]);
        several.push({ excerpt: c.excerpt[top], place: c.place[top], pieces: tokensOf(top).map((id) => pieces[id]), levels: Array.from(steps, (step) => step / about.steps) });
      }
      return several;
    },
    // How well a word fits a feature: 0 where it does not occur. Tokens that it fires on count most.
    fits(i, word, where) {
      const hits = (kind) => searched(kind, i).reduce((sum, part) => sum + part.includes(word), 0);
      if (where !== "any") return hits(where);
      return 100 * hits("fires") + 10 * hits("promotes") + hits("passages");
    },
  };
}
