// The scores of a generated text: bytes to numbers, rows taken together, numbers to words.

/**
 * @typedef {{ name: string, p: number, entropy: number, others: [string, number][], unit?: number, text?: string }} Output
 * @typedef {{ outputs: number[], rows: number[], unit?: number, text: string, name: string, isChip: boolean, p: number }} Item
 * @typedef {{ count: number, largest: number, at: (unit: number) => number }} Reading
 */

// A byte is a number of steps of the largest score of its row; only units before an output are stored.
function scoresOf(data, bytes) {
  const steps = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length), starts = [];
  let size = 0;
  for (const length of data.before) {
    starts.push(size);
    size += length;
  }
  /** @type {(method: number, row: number, unit: number) => number} */
  const score = (method, row, unit) => (steps[method * size + starts[row] + unit] * data.largest[method][row]) / data.steps;

  /**
   * Several outputs together, over the units before the first of them: scores of log-probabilities are added, others averaged.
   * @returns {Reading}
   */
  function together(method, rows) {
    const count = rows.length ? data.before[rows[0]] : 0, part = data.adds[method] ? 1 : 1 / rows.length;
    const sums = Float64Array.from({ length: count }, (_, unit) => part * rows.reduce((sum, row) => sum + score(method, row, unit), 0));
    const largest = sums.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    return { count, largest, at: (unit) => (unit < count ? sums[unit] : NaN) };
  }

  /**
   * A contrast of two whole texts, of the units of the prompt; nothing where a method has none.
   * @returns {Reading | null}
   */
  function contrast(method) {
    const own = data.contrast && data.contrast.scores[method];
    if (!own) return null;
    const largest = own.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    return { count: own.length, largest, at: (unit) => (unit < own.length ? own[unit] : NaN) };
  }

  /**
   * All that was explained, over the units before the first of it: rounded once, and not row by row.
   * @returns {Reading}
   */
  function all(method) {
    const [largest, own] = data.all[method];
    return { count: own.length, largest, at: (unit) => (unit < own.length ? (own[unit] * largest) / data.steps : NaN) };
  }
  return { together, contrast, all };
}

/** What was written, token by token or the tokens of a word together; those of a word that is explained in part stand alone. */
function itemsOf(data, level) {
  const rowOf = new Map(data.explained.map((output, row) => [output, row]));
  const groups = [];
  for (const [start, stop] of data.words) {
    const outputs = Array.from({ length: stop - start }, (_, i) => start + i);
    const isWhole = outputs.every((i) => rowOf.has(i)) || !outputs.some((i) => rowOf.has(i));
    if (level === "whole" && isWhole) groups.push(outputs);
    else groups.push(...outputs.map((i) => [i]));
  }
  return groups.map((outputs) => {
    const every = outputs.map((i) => data.outputs[i]), text = every.map((output) => output.text || "").join("");
    return {
      outputs, text, unit: every[0].unit,
      rows: outputs.filter((i) => rowOf.has(i)).map((i) => rowOf.get(i)),
      name: text.trim() || every.map((output) => output.name).join(""),
      isChip: !text,
      p: every.reduce((product, output) => product * output.p, 1),
    };
  });
}

// Three digits of the largest one beside it, as everywhere in whence; rounding to nothing leaves no sign behind.
function shownScore(value, largest, isSigned) {
  let text = "0.00";
  if (largest > 0 && (largest < 1e-5 || largest >= 1e6)) text = value ? value.toExponential(1) : "0";
  else if (largest > 0) text = value.toFixed(Math.min(Math.max(2 - Math.floor(Math.log10(largest)), 0), 6));
  if (Number(text) === 0) return text.replace("-", "");
  return isSigned && value > 0 ? `+${text}` : text.replace("-", "−");
}

function shownShare(share) {
  const hundred = share * 100;
  if (hundred >= 9.95 || hundred === 0) return `${hundredths(share)} %`;
  return hundred >= 0.01 ? `${Number(hundred.toPrecision(2))} %` : "< 0.01 %";
}

// White space that stands alone would not be seen.
function spelled(text) {
  return text.replace(/\n/g, "⏎").replace(/\t/g, "⇥").replace(/ /g, "␣");
}
