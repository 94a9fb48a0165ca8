// What the command wrote into the page: the description at once, layers when first looked at.
// Behind `serve` the same store asks the server instead. Shapes and encodings: ../README.md.

// The description of the page, or null if nobody wrote one.
export async function readHeader() {
  const element = document.getElementById("pozor-data");
  if (element !== null) return JSON.parse(element.textContent);
  try {
    const answer = await fetch("data.json");
    return answer.ok ? await answer.json() : null;
  } catch { return null; }
}

export function bytesOfBase64(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const characters = atob(base64.trim());
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

async function inflate(base64) {
  const stream = new Blob([bytesOfBase64(base64)]).stream();
  const inflated = stream.pipeThrough(new DecompressionStream("deflate"));
  return new Response(inflated).arrayBuffer();
}

// The weight behind each stored number: (u / 255)^2, or an IEEE half of either sign.
function decodeTable(encoding) {
  if (encoding === "sqrt-u8") return Float32Array.from({ length: 256 }, (_, u) => (u / 255) ** 2);
  return Float32Array.from({ length: 65536 }, (_, bits) => {
    const exponent = (bits >> 10) & 31, fraction = bits & 1023;
    const size = exponent === 0 ? fraction * 2 ** -24
      : (1 + fraction / 1024) * 2 ** (exponent - 15);
    return bits & 0x8000 ? -size : size;
  });
}

// Keeps the `most` entries used last.
class RecentMap {
  constructor(most) { this.most = most; this.map = new Map(); }
  get(key) {
    const value = this.map.get(key);
    if (value !== undefined) { this.map.delete(key); this.map.set(key, value); }
    return value;
  }
  set(key, value) {
    this.map.set(key, value);
    if (this.map.size > this.most) this.map.delete(this.map.keys().next().value);
  }
}

export class Store {
  // `changed` is called whenever weights that were asked for have arrived.
  constructor(header, changed) {
    this.header = header;
    this.changed = changed;
    this.size = header.tokens.length;
    this.table = decodeTable(header.encoding);
    this.exact = header.encoding !== "sqrt-u8";
    this.served = header.source === "served";
    // Every head of the page: {layer, head, at: place in its layer, slot: place among all}.
    this.heads = [];
    header.layers.forEach((layer, i) => header.heads[i].forEach((head, at) => this.heads.push(
      { layer, head, at, slot: this.heads.length, key: layer + ":" + head, ...header.attention[i] })));
    this.layers = new Map();   // "run/layer" -> raw numbers [heads, tokens, tokens]
    this.pending = new Map();  // what is being inflated or fetched
    this.lines = new RecentMap(64);
    this.matrices = new RecentMap(16);
    this.failure = "";
  }

  typed(buffer) {
    return !this.exact ? new Uint8Array(buffer) : new Uint16Array(buffer);
  }

  // Runs `job` once for a key; reports failures instead of throwing.
  once(key, job) {
    if (!this.pending.has(key)) {
      this.pending.set(key, job().then(
        () => { this.pending.delete(key); this.changed(); },
        (error) => { this.failure = `${key}: ${error.message || error}`; this.changed(); }));
    }
    return this.pending.get(key);
  }

  async load(run, layer) {
    const key = run + "/" + layer;
    if (this.served || this.layers.has(key)) return;
    await this.once(key, async () => {
      const block = document.getElementById(`pozor-run-${run}-layer-${layer}`);
      if (block === null) throw new Error("the page does not have this layer");
      const raw = this.typed(await inflate(block.textContent));
      const heads = this.heads.filter((head) => head.layer === layer).length;
      if (raw.length !== heads * this.size * this.size) throw new Error("the layer has another size");
      this.layers.set(key, raw);
    });
  }

  // All layers, one after another, so that the page stays awake between them.
  async loadAll() {
    for (let run = 0; run < this.header.runs.length; ++run) {
      for (const layer of this.header.layers) {
        await this.load(run, layer);
        await new Promise((resume) => setTimeout(resume));
      }
    }
  }

  async request(path, run) {
    const answer = await fetch(run ? path + "?run=" + run : path);
    if (!answer.ok) throw new Error(`${answer.status} ${(await answer.text()).slice(0, 200)}`);
    return this.typed(await answer.arrayBuffer());
  }

  // One row (direction "from") or column ("to") of a head: {raw, start, step}; null until it is here.
  line(run, head, token, direction) {
    const size = this.size;
    if (this.served && !this.hasMatrix(run, head)) {
      const key = `${run} token ${token} ${direction}`;
      const raw = this.lines.get(key);
      if (raw) return { raw, start: head.slot * size, step: 1 };
      this.once(key, async () =>
        this.lines.set(key, await this.request(`token/${token}/${direction}`, run)));
      return null;
    }
    const raw = this.matrix(run, head);
    if (raw === null) return null;
    return direction === "from" ? { raw, start: token * size, step: 1 } : { raw, start: token, step: size };
  }

  // [tokens, tokens] of a head; null until it is here.
  matrix(run, head) {
    const size = this.size;
    if (this.served) {
      const key = run + " head " + head.key;
      const raw = this.matrices.get(key);
      if (raw) return raw;
      this.once(key, async () => this.matrices.set(key,
        await this.request(`layer/${head.layer}/head/${head.head}`, run)));
      return null;
    }
    const layer = this.layers.get(run + "/" + head.layer);
    if (layer === undefined) { this.load(run, head.layer); return null; }
    return layer.subarray(head.at * size * size, (head.at + 1) * size * size);
  }

  // Whether the matrix of a head is here, without asking for it.
  hasMatrix(run, head) {
    return this.served ? this.matrices.map.has(run + " head " + head.key)
      : this.layers.has(run + "/" + head.layer);
  }

  // Whether a token may look at another by the model's own rules.
  visible(head, from, to) {
    if (head.causal && to > from) return false;
    return head.window === null || head.window === undefined || Math.abs(from - to) <= head.window;
  }
}
