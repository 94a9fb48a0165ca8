// Weights between items: rows, columns and matrices of heads and of their summaries, under the
// choices of the reader. "null" always means: not here yet, ask again when the store has changed.

export const kWholeMatrices = 1024;  // tokens up to which sums over whole matrices are made

export class Weights {
  constructor(store, units) {
    this.store = store;
    this.units = units;
    this.cache = new Map();   // of the present items: matrices, thumbnails, row sums
    this.tokenCache = new Map();  // of tokens: statistics, mean matrices, rollouts
    this.key = "";
  }

  // Takes over the choices; items are made anew only when they changed.
  choose(choices) {
    const { unit, specials, merge, part, run } = choices;
    const key = [unit, specials, merge, part, run].join();
    if (key === this.key) return;
    this.key = key;
    this.cache.clear();
    Object.assign(this, { unit, specials, merge, part, run });
    const size = this.store.size;
    this.items = specials === "show" ? this.units[unit] : this.units[unit].filter((i) => !i.special);
    this.itemOf = new Int32Array(size).fill(-1);
    this.items.forEach((item, i) => item.tokens.forEach((token) => { this.itemOf[token] = i; }));
    const within = (side) => this.itemOf.map((item) =>
      part === "all" || item < 0 || this.items[item].segment === Number(part[side]) ? item : -1);
    this.rowItem = within(0);  // item of a token as one that looks, or -1
    this.colItem = within(1);  // item of a token as one that is looked at, or -1
  }

  headsOfLayer(layer) { return this.store.heads.filter((head) => head.layer === layer); }
  headOf(key) { return this.store.heads.find((head) => head.key === key) || null; }

  remember(cache, name, make) {
    if (cache.has(name)) return cache.get(name);
    const made = make();
    if (made !== null) cache.set(name, made);
    return made;
  }

  // How the tokens [first, last] look at each item ("from"), or how each item looks at them ("to").
  // `key` names a head or a summary. Items the choices leave out get 0.
  vector(key, [first, last], direction) {
    if (this.run !== "diff") return this.vectorOf(Number(this.run), key, first, last, direction);
    const a = this.vectorOf(0, key, first, last, direction);
    const b = this.vectorOf(1, key, first, last, direction);
    return a && b && a.map((value, i) => b[i] - value);
  }

  vectorOf(run, key, first, last, direction) {
    const renormalise = this.specials === "renormalise";
    if (direction === "to") return this.columnOf(run, key, first, last, renormalise);
    return this.rowOf(run, key, first, last, renormalise);
  }

  // Sums over the key tokens of each item, then merges the rows of the query tokens.
  rowOf(run, key, first, last, renormalise) {
    const out = new Float32Array(this.items.length);
    const queries = [];
    for (let token = first; token <= last; ++token) if (this.rowItem[token] >= 0) queries.push(token);
    if (this.merge === "first") queries.length = Math.min(queries.length, 1);
    for (const query of queries) {
      const tokens = this.tokenVector(run, key, query, "from");
      if (tokens === null) return null;
      const row = this.merge === "max" ? new Float32Array(out.length) : out;
      const factor = this.merge === "max" ? 1 : 1 / queries.length;
      for (let token = 0; token < tokens.length; ++token) {
        const item = this.colItem[token];
        if (item >= 0) row[item] += factor * tokens[token];
      }
      if (row !== out) row.forEach((value, i) => { if (value > out[i]) out[i] = value; });
    }
    if (!renormalise) return out;
    const sum = out.reduce((a, b) => a + b, 0);
    return sum > 0 ? out.map((value) => value / sum) : out;
  }

  // The same numbers seen from the other side: how each item looks at the key tokens.
  columnOf(run, key, first, last, renormalise) {
    const sums = new Float32Array(this.store.size);
    for (let token = first; token <= last; ++token) {
      if (this.colItem[token] < 0) continue;
      const tokens = this.tokenVector(run, key, token, "to");
      if (tokens === null) return null;
      for (let query = 0; query < sums.length; ++query) sums[query] += tokens[query];
    }
    const all = renormalise ? this.rowSums(run, key) : null;
    return Float32Array.from(this.items, (item, i) => {
      if (this.rowItem[item.first] < 0) return 0;
      const own = this.merge === "first" ? item.tokens.slice(0, 1) : item.tokens;
      const values = own.map((token) => sums[token]);
      const merged = this.merge === "max" ? Math.max(...values) : values.reduce((a, b) => a + b, 0) / own.length;
      return all && all[i] > 0 ? merged / all[i] : merged;
    });
  }

  // Of each item as a query: the sum of its weights that are shown.
  rowSums(run, key) {
    return this.remember(this.cache, `sums ${run} ${key}`, () => this.items.map(({ first, last }) =>
      (this.rowOf(run, key, first, last, false) || []).reduce((a, b) => a + b, 0)));
  }

  // The row ("from") or column ("to") of one token over all tokens, before anything is merged.
  tokenVector(run, key, token, direction) {
    const [layerText, kind] = key.split(":"), layer = Number(layerText);
    if (kind === "rollout") return this.rolloutVector(run, layer, token, direction);
    const heads = kind === "mean" || kind === "max" ? this.headsOfLayer(layer) : [this.headOf(key)];
    const { table, size } = this.store, out = new Float32Array(size);
    for (const head of heads) {
      const line = this.store.line(run, head, token, direction);
      if (line === null) return null;
      const { raw, step } = line;
      for (let i = 0, at = line.start; i < size; ++i, at += step) {
        const weight = table[raw[at]];
        if (kind !== "max") out[i] += weight / heads.length; else if (weight > out[i]) out[i] = weight;
      }
    }
    return out;
  }

  // Mean over the heads of a layer: Float32Array [tokens, tokens].
  meanMatrix(run, layer) {
    return this.remember(this.tokenCache, `mean ${run} ${layer}`, () => {
      const { size, table } = this.store, heads = this.headsOfLayer(layer);
      if (size > kWholeMatrices || this.store.served) return null;
      const out = new Float32Array(size * size);
      for (const head of heads) {
        const raw = this.store.matrix(run, head);
        if (raw === null) return null;
        for (let i = 0; i < out.length; ++i) out[i] += table[raw[i]] / heads.length;
      }
      return out;
    });
  }

  // Attention rollout (Abnar and Zuidema 2020): product over the layers up to this one of
  // (mean over heads + identity) / 2. One row or column needs no matrix product.
  rolloutVector(run, layer, token, direction) {
    const size = this.store.size, { layers } = this.store.header;
    const upTo = layers.filter((l) => l <= layer);
    if (direction === "from") upTo.reverse();
    let now = new Float32Array(size);
    now[token] = 1;
    for (const l of upTo) {
      const mean = this.meanMatrix(run, l);
      if (mean === null) return null;
      const next = now.map((value) => value / 2);
      for (let from = 0; from < size; ++from) {
        const row = from * size;
        if (direction === "from") {
          const factor = now[from] / 2;
          if (factor !== 0) for (let to = 0; to < size; ++to) next[to] += factor * mean[row + to];
        } else {
          let sum = 0;
          for (let to = 0; to < size; ++to) sum += mean[row + to] * now[to];
          next[from] += sum / 2;
        }
      }
      now = next;
    }
    return now;
  }

  // Which items are rows and columns under the present part: {rows, cols, data [rows, cols]}.
  matrix(key) {
    return this.remember(this.cache, "matrix " + key, () => this.makeMatrix(key));
  }

  makeMatrix(key) {
    if (this.run !== "diff") return this.matrixOf(Number(this.run), key);
    const a = this.matrixOf(0, key), b = a && this.matrixOf(1, key);
    return b && { ...a, data: a.data.map((value, i) => b.data[i] - value) };
  }

  matrixOf(run, key) {
    const indices = (of) => this.items.map((_, i) => i).filter((i) => of[this.items[i].first] >= 0);
    const rows = indices(this.rowItem), cols = indices(this.colItem);
    const head = this.headOf(key);
    if (head && this.store.matrix(run, head) === null) return null;
    const data = new Float32Array(rows.length * cols.length);
    for (let r = 0; r < rows.length; ++r) {
      const { first, last } = this.items[rows[r]];
      const row = this.vectorOf(run, key, first, last, "from");
      if (row === null) return null;
      for (let c = 0; c < cols.length; ++c) data[r * cols.length + c] = row[cols[c]];
    }
    return { rows, cols, data };
  }

  // A small picture of a head: the largest weight of each of `bins` x `bins` fields.
  thumbnail(key, bins) {
    return this.remember(this.cache, `thumbnail ${key} ${bins}`, () => {
      const matrix = this.makeMatrix(key);
      return matrix && shrink(matrix, bins);
    });
  }
}

// The largest value (by size) of each field of a matrix.
function shrink({ rows, cols, data }, bins) {
  const high = Math.min(bins, rows.length), wide = Math.min(bins, cols.length);
  const out = new Float32Array(high * wide);
  for (let r = 0; r < rows.length; ++r) {
    const into = Math.floor(r * high / rows.length) * wide;
    for (let c = 0; c < cols.length; ++c) {
      const at = into + Math.floor(c * wide / cols.length), value = data[r * cols.length + c];
      if (Math.abs(value) > Math.abs(out[at])) out[at] = value;
    }
  }
  return { rows: Array(high), cols: Array(wide), data: out };
}
