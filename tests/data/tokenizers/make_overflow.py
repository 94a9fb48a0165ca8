#!/usr/bin/env python3
"""make_overflow.py > overflow.jsonl: the windows of texts that are cut, as the package `tokenizers`
gives them, for every kind of post-processor. A row: tokenizer (the text of its tokenizer.json, where
it is another than in the row before), add_special_tokens, max_length, stride, strategy, direction,
text, pair?, windows [{ids, type_ids, chars}], the first of which is the result.
"""

import itertools
import json
import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer

WORDS = ["[UNK]", "<s>", "</s>", *"abcdefghijklmnop"]
FRAME = {"cls": ["<s>", 1], "sep": ["</s>", 2]}
SPECIALS = {token: {"id": token, "ids": [WORDS.index(token)], "tokens": [token]} for token in ("<s>", "</s>")}


def template(single, pair):
    """From "<s>:0 A:3 </s>:4"."""
    def parts(text):
        for part in text.split():
            name, type_id = part.rsplit(":", 1)
            kind = "Sequence" if name in "AB" else "SpecialToken"
            yield {kind: {"id": name, "type_id": int(type_id)}}
    return {"type": "TemplateProcessing", "single": list(parts(single)), "pair": list(parts(pair)),
            "special_tokens": SPECIALS}


BERT = {"type": "BertProcessing", **FRAME}
ROBERTA = {"type": "RobertaProcessing", **FRAME, "trim_offsets": True, "add_prefix_space": False}
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
USUAL = template("<s>:0 A:0 </s>:0", "<s>:0 A:0 </s>:0 B:1 </s>:1")
ODD = template("<s>:2 A:3 </s>:4", "<s>:2 A:5 </s>:6 B:7 </s>:8")
SWAPPED = template("A:0 </s>:0", "B:5 </s>:6 A:7 </s>:8")


def sequence(*processors):
    return {"type": "Sequence", "processors": processors}


PROCESSORS = [None, BERT, ROBERTA, BYTE_LEVEL, USUAL, ODD, SWAPPED, sequence(BYTE_LEVEL, ODD),
              sequence(ODD, BYTE_LEVEL), sequence(BYTE_LEVEL, ROBERTA), sequence(ROBERTA, BYTE_LEVEL),
              sequence(ODD), sequence(ROBERTA), sequence(BERT, BYTE_LEVEL)]


def row(processor, add_special_tokens, pair, strategy, direction, kept):
    definition = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
                  "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
                  "post_processor": processor, "decoder": None,
                  "model": {"type": "WordLevel", "vocab": {w: i for i, w in enumerate(WORDS)},
                            "unk_token": "[UNK]"}}
    tokenizer = Tokenizer.from_str(json.dumps(definition))
    text = "a b c d e"
    specials = tokenizer.num_special_tokens_to_add(pair is not None)
    options = {"max_length": kept + specials, "stride": 1, "strategy": strategy,
               "direction": direction}
    tokenizer.enable_truncation(**options)
    encoded = tokenizer.encode(text, pair, add_special_tokens=add_special_tokens)
    windows = [{"ids": e.ids, "type_ids": e.type_ids, "chars": [x for o in e.offsets for x in o]}
               for e in [encoded, *encoded.overflowing]]
    return {"tokenizer": definition, "add_special_tokens": add_special_tokens, **options,
            "text": text, **({"pair": pair} if pair else {}), "windows": windows}


def main():
    before = None
    for processor, specials, direction in itertools.product(PROCESSORS, (True, False), ("right", "left")):
        rows = [row(processor, specials, None, "longest_first", direction, 2),
                row(processor, specials, "h i j k l m", "longest_first", direction, 4)]
        rows += [row(processor, specials, "h i j k", strategy, direction, 7)
                 for strategy in ("only_first", "only_second")]
        for one in rows:
            definition = one.pop("tokenizer")
            one = {"tokenizer": json.dumps(definition), **one} if definition != before else one
            before = definition
            print(json.dumps(one, separators=(",", ":")))


if __name__ == "__main__":
    main()
