// What the command wrote into the page: the header at once, layers when first looked at. Behind
// `serve` the same functions ask the server instead. Shapes and encodings: ../README.md.

export let header = null;
export let heads = [];       // {layer, head, at: place in its layer, slot: place among all, key, causal, window}
export let size = 0;         // tokens
export let table = null;     // the weight behind each stored number
export let exact = false;    // numbers are not rounded to 8 bits
export let served = false;
export let failure = "";     // why something could not be read
let whenArrived = null;
const layers = new Map();    // "run/layer" -> raw numbers [heads, tokens, tokens]
const pending = new Map();   // what is being inflated or fetched

const lines = new Map(), matrices = new Map();  // what the server gave

// Called when something else is looked at: what was fetched for it is kept, up to a limit.
export function forgetOld() {
  if (lines.size > 200) lines.clear();
  if (matrices.size > 16) matrices.clear();
}

export function bytesOfBase64(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  return Uint8Array.from(atob(base64.trim()), (c) => c.charCodeAt(0));
}

function inflate(base64) {
  const stream = new Blob([bytesOfBase64(base64)]).stream();
  return new Response(stream.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

// (u / 255)^2 of a byte, or an IEEE half.
function decodeTable(encoding) {
  if (encoding === "sqrt-u8") return Float32Array.from({ length: 256 }, (_, u) => (u / 255) ** 2);
  return Float32Array.from({ length: 65536 }, (_, bits) => {
    const exponent = (bits >> 10) & 31, fraction = bits & 1023;
    return exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
  });
}

// Reads the header; false if there is none. `arrived` is called whenever weights asked for are here.
export function readHeader(arrived) {
  const block = document.getElementById("pozor-data");
  if (!block) return false;
  header = JSON.parse(block.textContent);
  whenArrived = arrived;
  size = header.tokens.length;
  table = decodeTable(header.encoding);
  exact = header.encoding !== "sqrt-u8";
  served = header.source === "served";
  header.layers.forEach((layer, i) => header.heads[i].forEach((head, at) => heads.push(
    { layer, head, at, slot: heads.length, key: layer + ":" + head, ...header.attention[i] })));
  return true;
}

// Runs `job` once for a key.
function once(key, job) {
  if (!pending.has(key)) {
    pending.set(key, job().then(() => pending.delete(key), (error) => { failure = `${key}: ${error.message || error}`; })
      .then(() => whenArrived()));
  }
  return pending.get(key);
}

function typed(buffer) { return exact ? new Uint16Array(buffer) : new Uint8Array(buffer); }

async function load(run, layer) {
  const key = `run ${run}, layer ${layer}`;
  if (served || layers.has(key)) return;
  await once(key, async () => {
    const block = document.getElementById(`pozor-run-${run}-layer-${layer}`);
    const raw = typed(await inflate(block.textContent));
    if (raw.length !== headsOfLayer(layer).length * size * size) throw new Error("the data has another size");
    layers.set(key, raw);
  });
}

// All layers, one after another, so that the page stays awake between them.
export async function loadAll() {
  for (let run = 0; run < header.runs.length; ++run) {
    for (const layer of header.layers) {
      await load(run, layer);
      await new Promise((resume) => setTimeout(resume));
    }
  }
}

function ask(map, key, run, path) {
  const raw = map.get(key);
  if (raw) return raw;
  once(key, async () => {
    const answer = await fetch(run ? path + "?run=" + run : path);
    if (!answer.ok) throw new Error(`${answer.status} ${(await answer.text()).slice(0, 200)}`);
    map.set(key, typed(await answer.arrayBuffer()));
  });
  return null;
}

const matrixKey = (run, { key }) => `run ${run}, head ${key}`;

// Whether the matrix of a head is here, without asking for it.
export function hasMatrix(run, head) {
  return served ? matrices.has(matrixKey(run, head)) : layers.has(`run ${run}, layer ${head.layer}`);
}

// Raw numbers [tokens, tokens] of a head; null until they are here.
export function rawMatrix(run, head) {
  if (served) return ask(matrices, matrixKey(run, head), run, `layer/${head.layer}/head/${head.head}`);
  const layer = layers.get(`run ${run}, layer ${head.layer}`);
  if (layer) return layer.subarray(head.at * size * size, (head.at + 1) * size * size);
  load(run, head.layer);
  return null;
}

// One row ("from") or column ("to") of a head: {raw, start, step}; null until it is here.
export function rawLine(run, head, token, direction) {
  if (served && !hasMatrix(run, head)) {
    const raw = ask(lines, `run ${run}, token ${token} ${direction}`, run, `token/${token}/${direction}`);
    return raw && { raw, start: head.slot * size, step: 1 };
  }
  const raw = rawMatrix(run, head);
  return raw && (direction === "from" ? { raw, start: token * size, step: 1 } : { raw, start: token, step: size });
}

export function headsOfLayer(layer) { return heads.filter((head) => head.layer === layer); }
export function headOf(key) { return heads.find((head) => head.key === key) || null; }

// Whether a token may look at another by the model's own rules.
export function visible({ causal, window }, from, to) {
  return !(causal && to > from) && !(typeof window === "number" && Math.abs(from - to) > window);
}
