// What all views share: bytes to numbers, numbers to colours, small elements, and the pieces of an SVG.
// All texts are data: they go in by textContent, or escaped into an SVG, never as markup.

async function inflated(element) {
  const raw = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The weights of one layer; a byte is a number of equal steps, and a weight is off by at most half a step.
function unpackedLayer(kind, layer, bytes) {
  const rows = kind.from.labels.length, columns = kind.to.labels.length;
  const size = kind.causal ? (rows * (rows + 1)) / 2 : rows * columns;
  // words and places that are set apart have scales of their own
  const step = kind.scale[layer].map((largest) => largest.map((most) => most / kind.levels[layer]));
  const of = (head, j) => step[head][kind.to.apart[j]];
  const full = (head, i, j) => of(head, j) * bytes[head * size + i * columns + j];
  const half = (head, i, j) => (j > i ? 0 : of(head, j) * bytes[head * size + (i * (i + 1)) / 2 + j]);
  return { weight: kind.causal ? half : full, error: (head, j) => of(head, j) / 2 };
}

function unpackedNeurons(neurons, layer, bytes) {
  const at = neurons.layers.indexOf(layer), { dim, levels, shared } = neurons;
  const keys = neurons.heads.length * neurons.from.length * dim;
  const read = (start, largest) => Float32Array.from({ length: dim }, (_, d) => ((bytes[start + d] - levels) * largest) / levels);
  return {
    query: (head, i) => read((head * neurons.from.length + i) * dim, neurons.query[at][head]),
    key(head, j) {
      const group = Math.floor(head / shared);
      return read(keys + (group * neurons.to.length + j) * dim, neurons.key[at][group]);
    },
  };
}

function made(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && name !== "role") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// A label that may be of any script, cut by the style sheet where it is too long.
function bdi(label) {
  return made("bdi", { dir: "auto", className: "label", textContent: label });
}

const graphemes = window.Intl && Intl.Segmenter ? new Intl.Segmenter() : null;

function short(label, most) {
  const parts = graphemes ? Array.from(graphemes.segment(label), (s) => s.segment) : Array.from(label);
  return parts.length <= most ? label : `${parts.slice(0, most - 1).join("")}…`;
}

function percent(share) {
  return `${hundredths(share, 1)} %`;
}

// A weight that is stored as nothing need not be nothing: it is less than half a step.
function percentOr(share, halfStep) {
  return share === 0 && halfStep > 0 ? `< ${hundredths(Math.ceil(halfStep * 1000) / 1000, 1)} %` : percent(share);
}

// Inside a sentence: no more digits than a reader wants.
function about(share) {
  const hundred = share * 100;
  if (hundred === 0) return "0 %";
  if (hundred < 0.1) return "less than 0.1 %";
  return `${hundredths(share, hundred < 9.95 ? 1 : 0)} %`;
}

function listed(parts) {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

function signed(value) {
  return (value < 0 ? "−" : "+") + Math.abs(value).toFixed(Math.abs(value) < 10 ? 2 : 1);
}

// A colour of equal lightness for every hue, as a hexadecimal number: not every reader of an SVG knows oklch.
function hex(lightness, chroma, degrees) {
  const a = chroma * Math.cos((degrees * Math.PI) / 180), b = chroma * Math.sin((degrees * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  const channel = (x) => (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055);
  return `#${linear.map((x) => Math.round(255 * Math.max(0, Math.min(1, channel(x)))).toString(16).padStart(2, "0")).join("")}`;
}

// Colours come from the style sheet, so that light and dark are decided in one place.
function themeOf(element) {
  const style = getComputedStyle(element);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const rgb = (name) => [1, 3, 5].map((i) => parseInt(colour(name).slice(i, i + 2), 16));
  const ramp = (...names) => {
    const stops = names.map(rgb);
    return Array.from({ length: 256 }, (_, v) => {
      const x = (v / 255) * (stops.length - 1), i = Math.min(Math.floor(x), stops.length - 2);
      return stops[i].map((c, k) => Math.round(c + (x - i) * (stops[i + 1][k] - c)));
    });
  };
  const lightness = Number(colour("light")), heads = [];
  return {
    ink: colour("ink"), soft: colour("soft"), ground: colour("ground"), line: colour("line"), grey: colour("grey"), accent: colour("accent"),
    // yellow to green and violet to red: orange and blue are the signs of the neuron view, and mean nothing else
    head(h) {
      const along = (h * 0.381966 * 220 + 190) % 220;
      return (heads[h] ??= hex(lightness, 0.15, along < 120 ? 95 + along : 165 + along));
    },
    map: ramp("map0", "map1", "map2"), dull: ramp("map0", "grey"), diverging: ramp("neg", "mid", "pos"),
  };
}

// A picture of rows × columns, one pixel a cell; cell(row, column) gives [r, g, b].
function painted(canvas, rows, columns, cell) {
  canvas.width = Math.max(columns, 1);
  canvas.height = Math.max(rows, 1);
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  for (let i = 0, at = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++, at += 4) {
      const colour = cell(i, j);
      image.data[at] = colour[0];
      image.data[at + 1] = colour[1];
      image.data[at + 2] = colour[2];
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
const svg = {
  escaped: (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`),
  text(x, y, content, { anchor = "start", fill, size = 13, turn = 0 }) {
    const turned = turn ? ` transform="rotate(${turn} ${x} ${y})"` : "";
    return `<text x="${x}" y="${y}" text-anchor="${anchor}" fill="${fill}" font-size="${size}"${turned}>${svg.escaped(content)}</text>`;
  },
  image: (x, y, width, height, canvas) =>
    `<image x="${x}" y="${y}" width="${width}" height="${height}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${canvas.toDataURL()}"/>`,
  whole(width, height, theme, parts) {
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.ceil(width)}" height="${Math.ceil(height)}" ` +
      `viewBox="0 0 ${Math.ceil(width)} ${Math.ceil(height)}" font-family="${FONT}">` +
      `<rect width="100%" height="100%" fill="${theme.ground}"/>${parts.join("\n")}</svg>`
    );
  },
};

async function pngOf(source) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`; // a blob: address would need a wider policy
  await image.decode();
  const scale = Math.min(2, 12000 / Math.max(image.width, image.height)); // browsers refuse larger canvases
  const canvas = made("canvas", { width: Math.round(image.width * scale), height: Math.round(image.height * scale) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, failed) => canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("no picture"))), "image/png"));
}

function saved(blob, name) {
  const link = made("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// One tab stop for a list; arrows move along it.
function arrows(list, selector, steps) {
  list.addEventListener("keydown", (event) => {
    const here = event.target.closest(selector), step = steps[event.key];
    if (!here || step === undefined) return;
    const all = [...list.querySelectorAll(selector)];
    const at = all.indexOf(here), jump = typeof step === "function" ? step(at, all) : at + step;
    const next = all[jump === Infinity ? all.length - 1 : jump];
    event.preventDefault();
    if (!next) return;
    for (const other of all) other.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}
