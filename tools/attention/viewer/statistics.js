// What kind of head it is: means over the rows of its matrix, over tokens as the model has them.

export const kStatistics = {
  entropy: { name: "entropy", unit: "bits", what: "how widely it spreads: 0 looks at one token only" },
  distance: { name: "distance", unit: "tokens", what: "how far away it looks on average" },
  cls: { name: "first special", unit: "%", what: "share of attention on the first special token" },
  sep: { name: "other specials", unit: "%", what: "share of attention on the other special tokens" },
  self: { name: "itself", unit: "%", what: "share of attention on the token itself" },
  previous: { name: "previous", unit: "%", what: "share of attention on the token before" },
  next: { name: "next", unit: "%", what: "share of attention on the token after" },
};
const kDifferences = {
  divergence: { name: "divergence", unit: "bits", what: "Jensen-Shannon divergence of the two runs, mean over rows" },
  meanDifference: { name: "mean |B-A|", unit: "", what: "mean absolute difference of a weight" },
  maxDifference: { name: "max |B-A|", unit: "", what: "largest absolute difference of a weight" },
};

// Names specials as this model does: "[CLS]", "[SEP]", "<s>".
export function nameStatistics({ tokens, special, runs }) {
  const specials = tokens.filter((_, i) => special[i]);
  if (specials.length > 0) kStatistics.cls.name = specials[0];
  if (specials.length > 1) kStatistics.sep.name = specials[specials.length - 1];
  if (specials.length > 1 && specials[0] === specials[specials.length - 1]) kStatistics.sep.name += " (later)";
  return runs.length > 1 ? { ...kStatistics, ...kDifferences } : kStatistics;
}

function headStatistics(store, run, head) {
  const raw = store.matrix(run, head);
  if (raw === null) return null;
  const { size, table } = store, { special } = store.header;
  if (!store.surprise) store.surprise = table.map((p) => (p > 0 ? -p * Math.log2(p) : 0));
  const surprise = store.surprise, columns = new Float64Array(size);
  let entropy = 0, distance = 0, self = 0, previous = 0, next = 0;
  for (let from = 0, at = 0; from < size; ++from) {
    for (let to = 0; to < size; ++to, ++at) {
      const weight = table[raw[at]];
      entropy += surprise[raw[at]];
      distance += weight * Math.abs(from - to);
      columns[to] += weight;
    }
    const diagonal = from * size + from;
    self += table[raw[diagonal]];
    if (from > 0) previous += table[raw[diagonal - 1]];
    if (from + 1 < size) next += table[raw[diagonal + 1]];
  }
  let cls = 0, sep = 0;
  const firstSpecial = special.indexOf(1);
  columns.forEach((sum, to) => {
    if (to === firstSpecial) cls += sum; else if (special[to]) sep += sum;
  });
  const mean = (sum) => (size > 0 ? sum / size : 0);
  return {
    entropy: mean(entropy), distance: mean(distance), cls: mean(cls), sep: mean(sep),
    self: mean(self), previous: mean(previous), next: mean(next),
  };
}

// How far run 1 is from run 0 in a head.
function headDifferences(store, head) {
  const a = store.matrix(0, head), b = store.matrix(1, head);
  if (a === null || b === null) return null;
  const { size, table } = store;
  let sum = 0, most = 0, divergence = 0;
  for (let i = 0; i < a.length; ++i) {
    const p = table[a[i]], q = table[b[i]], middle = (p + q) / 2;
    sum += Math.abs(p - q);
    if (Math.abs(p - q) > most) most = Math.abs(p - q);
    if (p > 0) divergence += p * Math.log2(p / middle) / 2;
    if (q > 0) divergence += q * Math.log2(q / middle) / 2;
  }
  return {
    meanDifference: a.length ? sum / a.length : 0, maxDifference: most,
    divergence: size ? Math.max(0, divergence / size) : 0,
  };
}

// All statistics of a head of the page, remembered; null until its layer is here.
export function statisticsOf(weights, head) {
  const { store } = weights, run = weights.run === "1" ? 1 : 0;
  if (store.served && !store.hasMatrix(run, head)) return null;  // only of heads looked at
  return weights.remember(weights.tokenCache, `statistics ${run} ${head.key}`, () => {
    const own = headStatistics(store, run, head);
    const both = own && store.header.runs.length > 1 ? headDifferences(store, head) : {};
    return own && both && { ...own, ...both };
  });
}

// One sentence for a reader who sees such a picture for the first time.
export function describeHead(statistics, size) {
  const { entropy, cls, sep, self, previous, next } = statistics;
  const percent = (share) => Math.round(share * 100) + " %";
  const specials = [[cls, kStatistics.cls.name], [sep, kStatistics.sep.name]].sort((a, b) => b[0] - a[0]);
  if (previous > 0.4) return `Mostly looks at the token before (${percent(previous)}).`;
  if (next > 0.4) return `Mostly looks at the token after (${percent(next)}).`;
  if (self > 0.4) return `Mostly looks at the token itself (${percent(self)}).`;
  if (specials[0][0] > 0.5) {
    return `Rests on ${specials[0][1]} (${percent(specials[0][0])}): often what a head does when it has nothing to say.`;
  }
  if (previous + self + next > 0.6) return `Looks at the neighbourhood (${percent(previous + self + next)} within one token).`;
  if (size > 3 && entropy > 0.85 * Math.log2(size)) return "Spreads evenly over the whole text.";
  return "No simple pattern: look at single words.";
}
