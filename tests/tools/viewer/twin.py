"""The numbers that the page should show, computed the slow and plain way from a whole matrix."""


def matrix_of(header, weights, run, key, decoded):
    """[tokens][tokens] of a head ("2:1") or a summary ("2:mean", "2:max", "2:rollout")."""
    layer, kind = key.split(":")
    place = header["layers"].index(int(layer))
    size = range(len(header["tokens"]))
    seen = lambda i: [[[decoded(w) for w in row] for row in head] for head in weights[run][i]]
    if kind.isdigit():
        return seen(place)[header["heads"][place].index(int(kind))]
    if kind == "max":
        return [[max(head[a][b] for head in seen(place)) for b in size] for a in size]
    mean = lambda i: [[sum(head[a][b] for head in seen(i)) / len(weights[run][i]) for b in size] for a in size]
    if kind == "mean":
        return mean(place)
    rolled = [[float(a == b) for b in size] for a in size]
    for i in range(place + 1):
        mixed = [[(w + (a == b)) / 2 for b, w in enumerate(row)] for a, row in enumerate(mean(i))]
        rolled = [[sum(mixed[a][c] * rolled[c][b] for c in size) for b in size] for a in size]
    return rolled


def items_of(header, unit):
    """Lists of tokens: pieces, or words with each special on its own."""
    tokens = range(len(header["tokens"]))
    if unit == "pieces":
        return [[t] for t in tokens]
    items = []
    for t in tokens:
        if t and header["word"][t] >= 0 and header["word"][t] == header["word"][t - 1]:
            items[-1].append(t)
        else:
            items.append([t])
    return items


def text_of(header, token):
    """0 or 1: specials belong to the text before them."""
    return next((header["sequence"][t] for t in range(token, -1, -1) if header["sequence"][t] >= 0), 0)


def merged(matrix, header, unit="words", merge="mean", specials="show", part="all"):
    """{(first query token, first key token): weight} between items: keys summed, queries merged."""
    shown = [item for item in items_of(header, unit) if specials == "show" or not header["special"][item[0]]]
    side = lambda which: [item for item in shown if part == "all" or text_of(header, item[0]) == int(part[which])]
    out = {}
    for queries in side(0):
        used = queries[:1] if merge == "first" else queries
        row = {}
        for keys in side(1):
            sums = [sum(matrix[q][k] for k in keys) for q in used]
            row[keys[0]] = max(sums) if merge == "max" else sum(sums) / len(sums)
        total = sum(row.values()) if specials == "renormalise" else 1
        out.update({(queries[0], key): weight / total for key, weight in row.items()})
    return out
