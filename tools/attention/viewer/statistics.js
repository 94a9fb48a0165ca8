import { header, size, table, served, rawMatrix, hasMatrix } from "./data.js";
import { state } from "./state.js";
import { rememberOfTokens } from "./weights.js";

// What kind of head it is: means over the rows of its matrix, over tokens as the model has them.

const share = (name, what) => ({ name, unit: "%", what: "share on " + what });
export const statistics = {
  entropy: { name: "entropy", unit: "bits", what: "how widely it spreads; 0: over one token" },
  distance: { name: "distance", unit: "tokens", what: "how far away it looks" },
  cls: share("first special", "the first special token"),
  sep: share("other specials", "the other special tokens"),
  self: share("itself", "the token itself"),
  previous: share("previous", "the token before"),
  next: share("next", "the token after"),
};
const kDifferences = {
  divergence: { name: "divergence", unit: "bits", what: "Jensen-Shannon divergence, mean over rows" },
  meanDifference: { name: "mean |B-A|", unit: "a weight", what: "mean absolute difference" },
  maxDifference: { name: "max |B-A|", unit: "a weight", what: "largest absolute difference" },
};

// Names specials as this model does: "[CLS]", "[SEP]", "<s>".
export function nameStatistics() {
  const specials = header.tokens.filter((_, i) => header.special[i]), { cls, sep } = statistics;
  if (specials.length > 0) cls.name = specials[0];
  if (specials.length > 1) sep.name = specials.at(-1) + (specials[0] === specials.at(-1) ? " (later)" : "");
  if (header.runs.length > 1) Object.assign(statistics, kDifferences);
}

function headStatistics(run, head) {
  const raw = rawMatrix(run, head);
  if (raw === null) return null;
  const surprise = rememberOfTokens("surprise", () => table.map((p) => (p > 0 ? -p * Math.log2(p) : 0)));
  const sums = { entropy: 0, distance: 0, cls: 0, sep: 0, self: 0, previous: 0, next: 0 }, columns = new Float64Array(size);
  let entropy = 0, distance = 0;
  for (let from = 0, at = 0; from < size; ++from) {
    for (let to = 0; to < size; ++to, ++at) {
      const weight = table[raw[at]];
      entropy += surprise[raw[at]];
      distance += weight * Math.abs(from - to);
      columns[to] += weight;
    }
    const diagonal = from * size + from;
    sums.self += table[raw[diagonal]];
    if (from > 0) sums.previous += table[raw[diagonal - 1]];
    if (from + 1 < size) sums.next += table[raw[diagonal + 1]];
  }
  const first = header.special.indexOf(1);
  columns.forEach((sum, to) => { if (header.special[to]) sums[to === first ? "cls" : "sep"] += sum; });
  Object.assign(sums, { entropy, distance });
  for (const name of Object.keys(sums)) sums[name] /= Math.max(1, size);
  return sums;
}

// How far run 1 is from run 0 in a head.
function headDifferences(head) {
  const a = rawMatrix(0, head), b = rawMatrix(1, head);
  if (a === null || b === null) return null;
  let sum = 0, most = 0, divergence = 0;
  for (let i = 0; i < a.length; ++i) {
    const p = table[a[i]], q = table[b[i]], middle = (p + q) / 2, change = Math.abs(p - q);
    sum += change;
    if (change > most) most = change;
    if (p > 0) divergence += p * Math.log2(p / middle) / 2;
    if (q > 0) divergence += q * Math.log2(q / middle) / 2;
  }
  return { meanDifference: sum / Math.max(1, a.length), maxDifference: most, divergence: divergence / Math.max(1, size) };
}

// All statistics of a head, remembered; null until its weights are here.
export function statisticsOf(head) {
  const run = state.run === "1" ? 1 : 0;
  if (!head || (served && !hasMatrix(run, head))) return null;  // from a server only those looked at
  return rememberOfTokens(`statistics ${run} ${head.key}`, () => {
    const own = headStatistics(run, head), both = header.runs.length > 1 ? headDifferences(head) : {};
    return own && both && { ...own, ...both };
  });
}

// One sentence for a reader who sees such a picture for the first time.
export function describeHead({ entropy, cls, sep, self, previous, next }) {
  const percent = (share) => Math.round(share * 100) + " %";
  const [special, share] = cls > sep ? [statistics.cls.name, cls] : [statistics.sep.name, sep];
  for (const [what, value] of [["before", previous], ["after", next], ["itself", self]]) {
    if (value > 0.4) return `Mostly looks at the token ${what} (${percent(value)}).`;
  }
  if (share > 0.5) return `Rests on ${special} (${percent(share)}): often what a head does when it has nothing to say.`;
  if (previous + self + next > 0.6) return `Looks at the neighbourhood (${percent(previous + self + next)}).`;
  if (size > 3 && entropy > 0.85 * Math.log2(size)) return "Spreads evenly over the whole text.";
  return "No simple pattern: look at single words.";
}
