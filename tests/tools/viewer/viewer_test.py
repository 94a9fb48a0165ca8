"""The attention page in a real browser: viewer_test.py FOLDER_FOR_SCREENSHOTS [POZOR [TEST...]]

With the command, its own pages too. Without Chromium it says so and exits 77. Times are printed, never judged.
"""

import csv
import http.server
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse
import xml.etree.ElementTree
import zlib

import pages
import twin
from chromium import Chromium, find_chromium

SHIFT = 8
MOST_BYTES = 80_000
BANK = "The bank of the river was muddy, unbelievably so."
HOSTILE = ("Say \"hi\" & 'bye' </script><script>window.x=1</script> \"><img src=x onerror=window.x=2> <!-- {{7*7}} "
           "${7*7} \u2028 `</style>` \\u003c &lt;b&gt; ]]> ")
OVERRIDES = "a\u202egnp.exe \u2066x\u200bz \u0000 \u0007 \ufeff"
WORD = "[...document.querySelectorAll('.word')].find(w => w.textContent === %s)"
screenshots = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
command = sys.argv[2] if len(sys.argv) > 2 else None
DATA = pathlib.Path(__file__).resolve().parents[2] / "data"
MODEL = DATA / "bert"
ARCHITECTURES = DATA / "architectures"


def quoted(text):
    return pages.json.dumps(text)


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Chromium()
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    def tearDown(self):
        self.assertEqual(self.browser.problems(), [])

    def value(self, expression):
        return self.browser.value(expression)

    def text(self, selector):
        return self.value(f"document.querySelector({quoted(selector)}).textContent")

    def shot(self, name):
        self.browser.screenshot(screenshots / f"{name}.png", whole=False)

    def table(self, column=0):
        """{first token: weight} of the table view."""
        rows = self.value("[...document.querySelectorAll('#panel tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
        return {int(row[0]): number(row[2 + column]) for row in rows}


class ViewerTest(PageTest):
    """Pages of made-up attention."""

    def show(self, fragment="", change=None, **made):
        """Opens a page of made-up attention; keeps its header, after a change to it, and its weights."""
        self.header, self.weights = pages.make(**made)
        self.header.update(change or {})
        path = pathlib.Path(self.folder.name) / "page.html"
        path.write_text(pages.page_of(self.header, self.weights), encoding="utf-8")
        self.browser.open(path.as_uri() + (f"#{fragment}" if fragment else ""))
        self.browser.settle()

    def expected(self, key, run=0, **choices):
        exact = self.header["encoding"] == "f16"
        matrix = twin.matrix_of(self.header, self.weights, run, key, lambda w: pages.decoded(w, exact))
        return twin.merged(matrix, self.header, **choices)

    def check_table(self, key, picked, direction="from", **choices):
        shown, expected = self.table(), self.expected(key, **choices)
        self.assertGreater(len(shown), 1)
        for token, weight in shown.items():
            pair = (picked, token) if direction == "from" else (token, picked)
            self.assertAlmostEqual(weight, expected.get(pair, 0.0), delta=6e-5, msg=f"{pair} {choices}")

    def test_size_and_addresses(self):
        page = pages.bundle()
        print(f"the page without data: {len(page.encode())} bytes")
        self.assertLess(len(page.encode()), MOST_BYTES)
        self.assertNotRegex(page, r"https?:(?!//www\.w3\.org/2000/svg)")
        for name in pages.SCRIPT.findall(pages.read("index.html")):
            self.assertNotRegex(pages.read(name), r"</script|innerHTML|\beval\b")

    def test_first_look(self):
        self.show(texts=[BANK])
        self.assertEqual(self.value("document.querySelectorAll('.cell').length"), 3 * 5)
        self.assertIn("Pick a word", self.text("#help"))
        self.assertRegex(self.text("#sentence"), r"Layer 2, mean of its heads: river looks most at \S+ ≈")
        self.assertIn("made-up", self.value("document.title"))
        self.assertIn("rows sum to 1 within 2.0e-7", self.text("#facts"))
        self.shot("first_look")

    def test_click_word_and_second_word(self):
        self.show(texts=[BANK], exact=True)
        self.browser.click(WORD % quoted("bank"))
        self.browser.click(WORD % quoted("muddy"), SHIFT)
        first = {label: self.header["offsets"].index(next(o for o in self.header["offsets"] if BANK[o[0]:].startswith(label) and o[1]))
                 for label in ("bank", "muddy")}
        captions = self.value("[...document.querySelectorAll('.cell')].map(c => [c.dataset.key, c.querySelector('.top-word').textContent])")
        self.assertEqual(len(captions), 15)
        for key, caption in captions:
            weight = self.expected(key)[first["bank"], first["muddy"]]
            self.assertEqual(caption, f"{weight:.4f}", key)
        weight = self.expected("2:mean")[first["bank"], first["muddy"]]
        self.assertEqual(self.text("#pair-weight"), f"{weight:.4f}")
        self.value("(() => { const s = document.getElementById('sort'); s.value = 'pair'; s.dispatchEvent(new Event('change')); })()")
        self.browser.settle()
        order = [float(c) for c in self.value("[...document.querySelectorAll('.cell .top-word')].map(c => c.textContent)")]
        self.assertEqual(order, sorted(order, reverse=True))
        self.assertEqual(len(order), 12)
        self.shot("second_word")

    def test_rounded_numbers_are_marked(self):
        self.show("word=2-2&view=table&head=1:2", texts=[BANK])
        cells = self.value("[...document.querySelectorAll('#panel td.weight')].map(c => c.textContent)")
        self.assertTrue(all(cell.startswith("≈") for cell in cells), cells)
        for token, weight in self.table().items():
            self.assertAlmostEqual(weight, self.expected("1:2")[2, token], delta=0.0051)
        self.show("word=2-2&view=table&head=1:2", texts=[BANK], exact=True)
        self.assertNotIn("≈", self.text("#panel"))

    def test_numbers_of_every_choice(self):
        """The table against the slow twin."""
        pair = ["unbelievable rivers flow", "muddy banks"]
        self.show("word=1-3&view=table", texts=pair, exact=True)
        rest = ["unit=pieces", "merge=first", "merge=max", "specials=hide", "specials=renormalise", "merge=max&specials=renormalise",
                "part=00", "part=01", "part=01&specials=renormalise"]
        keys = ["0:1", "1:mean", "2:max&summary=max", "2:rollout&summary=rollout"]
        for key in keys:
            for direction in ("from", "to"):
                for choice in [""] + (rest if key == "0:1" else rest[4:6]):
                    if direction == "to" and choice.startswith("part=01"):
                        continue
                    word = "1-1" if choice == "unit=pieces" else "1-3"
                    self.value(f"location.hash = '#word={word}&view=table&head={key}&direction={direction}&{choice}'")
                    self.browser.settle()
                    choices = dict(part.split("=") for part in choice.split("&") if part)
                    with self.subTest(key=key, direction=direction, **choices):
                        self.check_table(key.split("&")[0], 1, direction, **choices)

    def test_change_layer_and_pin(self):
        self.show("word=2-2", texts=[BANK])
        self.browser.click("document.querySelector('[data-key=\"1:3\"]')")
        self.assertEqual(self.text("#panel h3"), "Layer 1, head 3")
        self.browser.wait("location.hash.includes('head=1:3')")
        self.browser.press("p")
        self.browser.click("document.querySelector('[data-key=\"0:0\"]')")
        self.assertEqual(self.value("[...document.querySelectorAll('#panel h3')].map(h => h.textContent)"),
                         ["Layer 0, head 0", "Layer 1, head 3"])
        self.browser.press("2")
        self.shot("arcs_side_by_side")
        self.browser.press("3")
        self.assertEqual(len(self.table(0)), len(self.table(1)))

    def test_keyboard(self):
        self.show("word=1-1", texts=["one two three four five"])
        self.value("document.querySelector('.word.picked').focus()")
        for keys, sentence in [(["ArrowRight"], "two looks most"), (["ArrowRight", "ArrowLeft", "End", "ArrowLeft"], "five looks most"),
                               (["ArrowLeft"], "four looks most"), (["f"], "four is looked at most by"), (["f"], "four looks most")]:
            for key in keys:
                self.browser.press(key)
            self.assertIn(sentence, self.text("#sentence"))
        self.browser.press("ArrowLeft", SHIFT)
        self.browser.press("ArrowLeft", SHIFT)
        self.assertIn("two three four looks most", self.text("#sentence"))
        self.browser.press("]")
        self.assertIn("two three four looks at five with", self.text("#sentence"))
        self.browser.press("Escape")
        self.browser.press("Escape")
        self.assertIn("Pick a word", self.text("#sentence"))
        self.value("document.querySelector('.cell[tabindex=\"0\"]').focus()")
        self.browser.press("ArrowUp")
        self.assertEqual(self.text("#panel h3"), "Layer 1, mean of its heads")
        self.browser.press("ArrowLeft")
        self.assertEqual(self.text("#panel h3"), "Layer 1, head 3")
        self.assertEqual(self.value("document.querySelectorAll('#text [tabindex=\"0\"]').length"), 1)
        self.browser.press("4")
        self.assertEqual(self.value("document.querySelectorAll('#panel tbody tr').length"), 12)
        self.browser.press("?")
        self.assertTrue(self.value("document.getElementById('help').hidden"))

    def test_names_for_screen_readers(self):
        self.show(texts=[BANK])
        nodes = self.browser.send("Accessibility.getFullAXTree")["nodes"]
        silent = [node["role"]["value"] for node in nodes
                  if any(p["name"] == "focusable" and p["value"]["value"] for p in node.get("properties", []))
                  and node["role"]["value"] not in ("RootWebArea", "generic", "none") and not node.get("name", {}).get("value")]
        self.assertEqual(silent, [])
        names = [node.get("name", {}).get("value", "") for node in nodes if node.get("role", {}).get("value") == "button"]
        self.assertTrue(any(re.fullmatch(r"Layer 0, head 1: \S+", name) for name in names), names)
        self.assertEqual(self.value("document.getElementById('sentence').getAttribute('aria-live')"), "polite")

    def test_address_holds_the_state(self):
        self.show("word=2-3&second=5-5&head=0:2&pins=1:1&view=arcs&unit=pieces&scale=log&threshold=0.05&sort=entropy&theme=dark",
                  texts=[BANK])
        state = self.value("[document.documentElement.dataset.theme, document.querySelector('[data-state=scale]').value, "
                           "document.getElementById('threshold-value').textContent, document.getElementById('sort').value]")
        self.assertEqual(state, ["dark", "log", "0.0500", "entropy"])
        self.assertEqual(self.value("document.querySelectorAll('.word.picked').length"), 2)
        self.shot("dark")
        for bad in ("word=9999-1&head=<script>&pins=a,b", "__proto__=1&constructor=x&toString=1", "word=%E0%A4%A", "threshold=-1&sort=x&view="):
            self.value(f"location.hash = {quoted('#' + bad)}")
            self.browser.settle()
            self.assertEqual(self.text("#panel h3"), "Layer 2, mean of its heads")

    def saved(self, what):
        """The file that a choice of the Save menu gives."""
        folder = tempfile.mkdtemp(dir=self.folder.name)
        self.browser.send("Page.setDownloadBehavior", behavior="allow", downloadPath=folder)
        self.value(f"(() => {{ const s = document.getElementById('save'); s.value = {quoted(what)}; s.dispatchEvent(new Event('change')); }})()")
        end = time.monotonic() + 10
        while time.monotonic() < end:
            done = [path for path in pathlib.Path(folder).iterdir() if path.suffix in (".svg", ".png", ".csv")]
            if done and done[0].stat().st_size > 0:
                return done[0].read_bytes()
            time.sleep(0.02)
        self.fail(f"nothing was saved for {what}")

    def test_save(self):
        self.show("word=2-2&view=arcs&head=1:2&pins=0:1", texts=[BANK, "<b> & \"quotes\" =1+1"], exact=True)
        for what in ("panel-svg", "grid-svg"):
            data = self.saved(what)
            (screenshots / f"{what}.svg").write_bytes(data)
            labels = [e.text for e in xml.etree.ElementTree.fromstring(data).iter("{http://www.w3.org/2000/svg}text")]
            self.assertTrue({"bank", "<"} <= set(labels) if what == "panel-svg" else len(labels) == 15, labels)
        for view, most in (("matrix", 1), ("arcs", 0)):
            self.value(f"location.hash = '#word=2-2&view={view}&head=1:2'")
            self.browser.settle()
            xml.etree.ElementTree.fromstring(self.saved("panel-svg"))
        self.assertEqual(self.saved("grid-png")[:8], b"\x89PNG\r\n\x1a\n")
        rows = list(csv.DictReader(self.saved("csv").decode().splitlines()))
        self.assertEqual(len({(row["layer"], row["head"]) for row in rows}), 12)
        for row in rows:
            weight = self.expected(f"{row['layer']}:{row['head']}")[int(row["from"]), int(row["to"])]
            self.assertAlmostEqual(float(row["weight"]), weight, delta=1e-6)
        self.assertTrue(any(row["to_text"] == "'=" for row in rows))

    def test_hostile_text(self):
        self.show(texts=[HOSTILE, OVERRIDES], exact=True)
        shown = self.text("#text")
        for part in ("</script>", "<img src", "onerror", "{{7*7}}", "\\u003c &lt;b&gt;", "⟨U+202E⟩gnp", "⟨U+0000⟩", "⟨U+2028⟩"):
            self.assertIn(part.replace(" ", ""), shown.replace(" ", ""))
        self.assertEqual(self.value("[typeof window.x, document.images.length, document.querySelectorAll('b, i').length]"),
                         ["undefined", 0, self.value("document.querySelectorAll('#help b, #sentence b').length")])
        self.assertFalse(set("\u202e\u2066\u2028") & set(self.value("document.body.innerText")))
        self.value("location.hash = '#word=1-1&view=table'")
        self.browser.settle()
        self.shot("hostile")

    def test_small_texts(self):
        for texts, extra, sentence in (([""], {"no_tokens": True}, ""), ([""], {}, "Pick a word"), (["Hi"], {}, "Hi looks most")):
            for view in ("matrix", "arcs", "table", "heads"):
                self.show(f"view={view}" + ("&word=1-1" if texts[0] else ""), texts=texts, **extra)
                self.assertIn(sentence, self.text("#sentence"))
                self.assertEqual(self.browser.problems(), [])

    def test_causal_and_windowed(self):
        self.show("word=3-3&head=1:1", texts=["one two three four five"], causal=True)
        self.assertEqual(self.value("[...document.querySelectorAll('.word.masked')].map(w => w.textContent)"), ["four", "five", "[SEP]"])
        self.assertIn("Grey: not visible", self.text("#panel"))
        self.show("word=3-3&head=1:1", texts=["one two three four five"], window=1)
        self.assertEqual(self.value("[...document.querySelectorAll('.word.masked')].map(w => w.textContent)"), ["[CLS]", "one", "five", "[SEP]"])
        self.shot("window")

    def test_scripts(self):
        self.show(texts=["ذهبنا إلى ضفة النهر في شارع Main Street"])
        left, right = self.value("['ذهبنا', 'Main'].map(t => [...document.querySelectorAll('.word')].find(w => w.textContent === t).getBoundingClientRect().x)")
        self.assertGreater(left, right)
        self.value("document.querySelector('.word.picked').focus()")
        picked = self.value("Number(document.querySelector('.word.picked').dataset.index)")
        self.browser.press("ArrowLeft")
        self.assertEqual(self.value("Number(document.querySelector('.word.picked').dataset.index)"), picked + 1)
        self.shot("right_to_left")
        self.show(texts=["我们走到河岸,然后去银行。"], pieces=2, without_spaces=True)
        self.assertEqual(self.value("document.querySelectorAll('.word').length"), len(self.header["tokens"]))
        self.shot("chinese")

    def bars(self, key):
        """Heights of a cell's bars, from left to right, one an item; and which stand on the mark of what is picked."""
        columns = self.value("""(() => {
          const canvas = document.querySelector('.cell[data-key="%s"] canvas'), { width, height } = canvas;
          const pixels = canvas.getContext('2d').getImageData(0, 0, width, height).data;
          const at = (x, y) => pixels.slice((y * width + x) * 4, (y * width + x) * 4 + 4).join();
          const ratio = devicePixelRatio, ink = '27,35,48,255';
          const count = document.querySelectorAll('.word').length;
          return Array.from({ length: count }, (_, i) => {
            const x = Math.floor((i + 0.4) * width / count);
            let high = 0;
            while (high < 27 * ratio && !at(x, 27 * ratio - 1 - high).endsWith(',0')) ++high;
            return [high, at(x, height - 1) === ink];
          });
        })()""" % key)
        return [high for high, _ in columns], [i for i, (_, marked) in enumerate(columns) if marked]

    def test_bars_stand_in_the_order_of_the_line(self):
        """From the right in a right-to-left text, in a pair each text for itself; the weights are the same for all."""
        latin, hebrew, arabic = "abc def ghi jkl", "\u05d0\u05d1\u05d2 \u05d3\u05d4 \u05d6\u05d7\u05d8 \u05d9\u05db", "\u0627\u0628 \u062f\u0647 \u0632\u062d \u064a\u0643"
        reads = {latin: 1, hebrew: -1, arabic: -1}
        for texts in ([hebrew], [arabic], [hebrew, latin], [latin, arabic], [hebrew, arabic]):
            for choice in ("", "&specials=hide", "&direction=to"):
                found = []
                for shown in ([latin] * len(texts), texts):
                    self.show("word=2-2&theme=light" + choice, texts=shown)
                    found.append([self.bars(key) for key in ("0:0", "1:3", "2:mean")])
                counts = ([4, 4] if "hide" in choice else [6, 5])[:len(texts)]
                for (heights, marked), (other, other_marked) in zip(*found):
                    self.assertGreater(len(set(heights)), 2)
                    self.assertEqual(sum(counts), len(heights))
                    order, start = [], 0
                    for text, count in zip(texts, counts):
                        order += list(range(start, start + count))[::reads[text]]
                        start += count
                    self.assertEqual(other, [heights[i] for i in order], (texts, choice))
                    self.assertEqual(other_marked, [order.index(i) for i in marked], (texts, choice))
                    self.assertEqual(len(marked), 1)
        self.shot("right_to_left")

    def test_bytes_of_one_character(self):
        change = {"texts": ["a 👍b"], "tokens": ["[CLS]", "Ġa", "ĠðŁ", "ĳį", "b", "[SEP]"], "offsets": [[0, 0], [0, 1], [1, 3], [2, 3], [3, 4], [0, 0]],
                  "word": [-1, 0, 1, 1, 1, -1]}
        for unit, words in (("pieces", ["a", "👍", "ĳį", "b"]), ("words", ["a", "👍b"])):
            self.show(f"unit={unit}", change, texts=["a bcd"], pieces=1)
            shown = self.value("[...document.querySelectorAll('.word:not(.special)')].map(w => w.textContent)")
            self.assertEqual(shown, words)

    def test_diff(self):
        self.show("word=2-2&view=table&head=1:2", texts=[BANK], runs=2, exact=True)
        a, b = self.expected("1:2", run=0), self.expected("1:2", run=1)
        for token, weight in self.table().items():
            self.assertAlmostEqual(weight, b[2, token] - a[2, token], delta=6e-5)
        self.browser.press("4")
        shown = self.value("[...document.querySelectorAll('#panel thead th')].map(h => h.textContent)")
        self.assertIn("max |B-A|", shown)
        rows = self.value("[...document.querySelectorAll('#panel tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
        row = next(row for row in rows if row[0] == "1:2")
        matrices = [twin.matrix_of(self.header, self.weights, run, "1:2", lambda w: pages.decoded(w, True)) for run in (0, 1)]
        most = max(abs(x - y) for p, q in zip(*matrices) for x, y in zip(p, q))
        self.assertAlmostEqual(float(row[shown.index("max |B-A|")]), most, delta=6e-5)
        self.shot("diff")

    def test_positions(self):
        self.show(texts=[BANK])
        self.browser.click("document.querySelector('#positions summary')")
        self.assertIn("sines and cosines", self.text("#positions"))
        self.assertEqual(self.value("document.querySelectorAll('#positions canvas').length"), 2)
        x, y = self.browser.middle("document.querySelectorAll('#positions canvas')[1]")
        self.browser.mouse("mouseMoved", x, y)
        self.assertRegex(self.text("#tip"), r"positions 32 and 32: ≈ 1.00")
        self.shot("positions")

    def test_served(self):
        self.header, self.weights = pages.make(texts=[BANK], exact=True)
        self.header["source"] = "served"
        asked = []
        with Server(self.header, self.weights, asked) as address:
            self.browser.open(address)
            self.value("location.hash = '#word=2-2&view=table&head=1:2'")
            self.browser.wait("document.querySelectorAll('#panel td.weight').length > 3")
            self.check_table("1:2", 2)
            self.browser.press("f")
            self.browser.wait("document.querySelector('#sentence').textContent.includes('is looked at most by')")
            self.check_table("1:2", 2, "to")
            self.browser.press("1")
            self.browser.wait("!document.querySelector('#panel canvas').hidden")
            self.assertNotIn("/layer/0/head/0", asked)
            self.assertLessEqual(len(asked), 10, asked)
        self.browser.events = [e for e in self.browser.events if address not in str(e)]

    def busy(self):
        """CPU seconds of the page's thread so far."""
        metrics = self.browser.send("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    def test_times(self):
        """512 tokens, 6 layers x 12 heads: reported only."""
        size, layers, heads = 512, 6, 12
        header, _ = pages.make(texts=[" ".join(["word"] * (size - 2))], layers=layers, heads=heads, no_tokens=True)
        columns = pages.tokens_of(header["texts"], 5, False)
        header.update({**columns, "segments": [0] * size, "byte_offsets": columns["offsets"]})
        skewed = bytes(min(255, 4 + int((i / 255) ** 6 * 60)) for i in range(256))
        raw = random.Random(1).randbytes(heads * size * size).translate(skewed)
        block = pages.base64.b64encode(zlib.compress(raw, 6)).decode()
        parts = [f'<script type="application/json" id="pozor-data">{pages.ascii_json(header)}</script>']
        parts += [f'<script type="text/plain" id="pozor-run-0-layer-{layer}">{block}</script>' for layer in range(layers)]
        path = pathlib.Path(self.folder.name) / "long.html"
        path.write_text(pages.bundle().replace("<!-- pozor:data -->", "\n".join(parts)), encoding="utf-8")
        self.browser.open(path.as_uri())
        paint = self.value("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        self.browser.send("Performance.enable", timeDomain="threadTicks")
        busy = self.busy()
        clicks = [self.value(CLICK % place) for place in (100, 200, 300, 400, 50)]
        busy = (self.busy() - busy) / len(clicks)
        print(f"512 tokens x 72 heads, {path.stat().st_size / 2**20:.1f} MiB: first paint {paint:.0f} ms, "
              f"click to shown {sorted(clicks)[2]:.0f} ms (median of 5; {min(clicks):.0f} to {max(clicks):.0f}), "
              f"of which the page computed {1e3 * busy:.0f} ms")
        self.shot("long")


@unittest.skipUnless(command, "no command was named")
class CommandTest(PageTest):
    """Pages that the command writes, against its dumps."""

    TEXT = "the old ferry"

    def run_command(self, *arguments):
        done = subprocess.run([command, "attention", *map(str, arguments), "--quiet"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def view(self, fragment, *texts, exact=True):
        path = pathlib.Path(self.folder.name) / "command.html"
        words = ["--pair", *texts] if len(texts) > 1 else texts
        self.run_command("view", MODEL, *words, *(["--exact"] if exact else []), "-o", path)
        self.browser.open(path.as_uri() + "#" + fragment)
        self.browser.settle()
        return path.read_text(encoding="utf-8")

    def dump(self, *options, model=MODEL):
        """The numbers of a dump, as lists in lists."""
        path = pathlib.Path(self.folder.name) / "dump.npy"
        self.run_command("dump", model, self.TEXT, "-o", path, *options)
        data = path.read_bytes()
        start = 10 + int.from_bytes(data[8:10], "little")
        shape = [int(n) for n in re.search(rb"'shape': \(([\d, ]+)\)", data[:start])[1].decode().split(",") if n.strip()]
        values = pages.struct.unpack(f"<{(len(data) - start) // 4}f", data[start:])
        for size in reversed(shape[1:]):
            values = [values[at:at + size] for at in range(0, len(values), size)]
        return values

    def test_size(self):
        page = self.view("", self.TEXT)
        code = re.sub(r'(?s)<script type="application/json" id="pozor-data">.*(?=<script type="module">)', "", page)
        print(f"the command's page without data: {len(code.encode())} bytes")
        self.assertLess(len(code.encode()), MOST_BYTES)
        self.shot("command")

    def test_numbers_equal_the_dump(self):
        """Every row of the table view, under the choices that dump has too."""
        cases = [("", [], lambda dump, layer, head: dump[layer][head]), ("unit=words", ["--words", "mean"], None),
                 ("unit=words&merge=max", ["--words", "max"], None), ("unit=words&merge=first", ["--words", "first"], None),
                 ("specials=hide", ["--no-special"], None), ("specials=renormalise", ["--no-special", "--renormalise"], None),
                 ("unit=words&specials=renormalise", ["--words", "mean", "--no-special", "--renormalise"], None),
                 ("head=1:mean", ["--reduce", "mean-heads"], lambda dump, layer, _: dump[layer]),
                 ("head=1:max&summary=max", ["--reduce", "max-heads"], lambda dump, layer, _: dump[layer]),
                 ("head=1:rollout&summary=rollout", ["--reduce", "rollout"], lambda dump, *_: dump)]
        self.view("", self.TEXT)
        words = self.value("JSON.parse(document.getElementById('pozor-data').textContent).words")
        picked = words[2]["tokens"][0]
        for choice, options, place in cases:
            fragment = f"view=table&head=1:2&unit=pieces&{choice}&word={picked}-{words[2]['tokens'][1] - 1 if 'words' in choice else picked}"
            with self.subTest(choice):
                self.value(f"location.hash = {quoted('#' + fragment)}")
                self.browser.settle()
                shown = self.table()
                matrix = (place or cases[0][2])(self.dump(*options), 1, 2)
                starts = sorted(shown)
                self.assertEqual(len(matrix), len(starts))
                for token, weight in zip(starts, matrix[starts.index(picked)]):
                    self.assertAlmostEqual(shown[token], weight, delta=6e-4)

    def test_hostile_text(self):
        """U+0000 cannot be an argument; the rest can."""
        self.view("", HOSTILE, OVERRIDES.replace("\0", ""), exact=False)
        self.assertIn("</script>", self.text("#text"))
        self.assertEqual(self.value("[typeof window.x, document.images.length]"), ["undefined", 0])
        self.shot("command_hostile")

    def test_serve(self):
        """The page over HTTP asks for what is looked at, and shows what the dump has."""
        server = subprocess.Popen([command, "attention", "serve", MODEL, self.TEXT, "--exact", "--quiet"],
                                  stdout=subprocess.PIPE, text=True)
        try:
            address = server.stdout.readline().strip()
            self.browser.open(address)
            matrix = self.dump()[1][2]
            for direction in ("from", "to"):
                self.value(f"location.hash = '#word=2-2&view=table&unit=pieces&head=1:2&direction={direction}'")
                self.browser.wait("document.querySelectorAll('#panel td.weight').length > 3")
                self.browser.wait(f"document.querySelector('#sentence').textContent.includes('{'looks' if direction == 'from' else 'looked'}')")
                for token, weight in self.table().items():
                    self.assertAlmostEqual(weight, matrix[2][token] if direction == "from" else matrix[token][2], delta=6e-4)
            self.value("location.hash = '#word=2-2&view=matrix&unit=pieces&head=1:2'")
            self.browser.wait("!document.querySelector('#panel canvas').hidden")
            self.browser.events = [e for e in self.browser.events if address not in str(e)]
        finally:
            server.terminate()
            server.wait()
            server.stdout.close()

    def test_diff(self):
        other = pathlib.Path(self.folder.name) / "halved"
        halve_queries(MODEL, other)
        path = pathlib.Path(self.folder.name) / "diff.html"
        self.run_command("diff", MODEL, other, self.TEXT, "--exact", "-o", path)
        self.browser.open(path.as_uri() + "#word=2-2&view=table&unit=pieces&head=1:2")
        self.browser.settle()
        a, b = self.dump()[1][2], self.dump(model=other)[1][2]
        shown = self.table()
        self.assertEqual(len(shown), len(a))
        for token, weight in shown.items():
            self.assertAlmostEqual(weight, b[2][token] - a[2][token], delta=1e-3)
        self.shot("command_diff")

    def test_empty_text(self):
        self.view("", "")
        self.assertIn("[CLS]", self.text("#text"))

    def golden_page(self, name, exact=True):
        """The page of an architecture over the longest text whose attentions its reference library gave; these."""
        model = ARCHITECTURES / name
        texts = pages.json.loads((model / "golden.json").read_text())["texts"]
        tensors = golden_tensors(model)
        item = max((t for t in texts if any(n.startswith(f"text.{t['index']}.attn") for n in tensors)), key=lambda t: len(t["ids"]))
        path = pathlib.Path(self.folder.name) / f"{name}.html"
        self.run_command("view", model, item["text"], "--max-length", len(item["ids"]), *(["--exact"] if exact else []), "-o", path)
        self.browser.open(path.as_uri())
        self.browser.settle()
        self.header = self.value("JSON.parse(document.getElementById('pozor-data').textContent)")
        self.assertEqual(self.header["ids"], item["ids"])
        return f"text.{item['index']}", tensors

    def check_heads(self, weight_of, hidden_count):
        """Some rows of every head against weight_of(layer, head, query, key); what a query must not see is grey."""
        size = len(self.header["ids"])
        for layer in self.header["layers"]:
            for head in self.header["heads"][layer]:
                for query in (1, size // 2, size - 2):
                    self.value(f"location.hash = '#word={query}-{query}&unit=pieces&view=table&head={layer}:{head}'")
                    self.browser.settle()
                    shown = self.table()
                    self.assertEqual(len(shown), size)
                    for key, weight in shown.items():
                        self.assertAlmostEqual(weight, weight_of(layer, head, query, key), delta=6e-4, msg=(layer, head, query, key))
                    masked = self.value("document.querySelectorAll('.word.masked').length")
                    self.assertEqual(masked, hidden_count(layer, query), (layer, query))

    def check_grey(self, key, grey):
        """The matrix is drawn with as many grey cells as the mask hides."""
        self.value(f"location.hash = '#unit=pieces&view=matrix&head={key}'")
        self.browser.settle()
        self.assertEqual("Grey: not visible" in self.text("#panel"), grey)
        self.value(f"location.hash = '#unit=pieces&view=arcs&head={key}&word=5-5'")
        self.browser.settle()
        self.assertFalse(self.value("document.querySelector('#panel canvas').hidden"))

    def test_causal_model(self):
        stem, tensors = self.golden_page("gpt2")
        attn = tensors[stem + ".attn"]
        size = len(self.header["ids"])
        self.assertIn("causal model", self.text("#note"))
        self.check_heads(attn, lambda _, query: size - 1 - query)
        self.check_grey("1:1", True)
        self.value("location.hash = '#unit=pieces&view=matrix&head=1:1&word=9-9'")
        self.browser.settle()
        self.shot("model_causal")

    def test_windowed_models(self):
        stem, tensors = self.golden_page("modernbert")
        attn, size = tensors[stem + ".attn"], len(self.header["ids"])
        windows = [rule["window"] for rule in self.header["attention"]]
        self.assertEqual([window is None for window in windows], [True, False, False, True])
        unseen = lambda layer, query: 0 if windows[layer] is None else sum(abs(query - key) > windows[layer] for key in range(size))
        self.assertIn("In 2 of 4 layers words see at most 8 tokens", self.text("#note"))
        self.check_heads(attn, unseen)
        self.check_grey("0:0", False)
        self.check_grey("1:1", True)
        self.value("location.hash = '#unit=pieces&view=matrix&head=1:1&word=20-20'")
        self.browser.settle()
        self.shot("model_windowed")

        stem, tensors = self.golden_page("longformer")
        size, windows = len(self.header["ids"]), [rule["window"] for rule in self.header["attention"]]
        self.assertIn(f"at most {min(windows)} to {max(windows)} tokens", self.text("#note"))

        def weight(layer, head, query, key):
            place = key - query + windows[layer]
            return tensors[f"{stem}.attn.{layer}"](head, query, place) if 0 <= place <= 2 * windows[layer] else 0
        self.check_heads(weight, lambda layer, query: sum(abs(query - key) > windows[layer] for key in range(size)))
        self.value("location.hash = '#unit=pieces&view=matrix&head=1:1&word=20-20'")
        self.browser.settle()
        self.shot("model_longformer")

    def test_models_of_relative_positions(self):
        for name, words in (("mpnet", ["a vector of its own", "learned number for each distance"]),
                            ("t5-encoder", ["learned number for each distance"])):
            stem, tensors = self.golden_page(name)
            self.assertNotRegex(self.text("#note"), "see")
            self.check_heads(tensors[stem + ".attn"], lambda *_: 0)
            self.check_grey("1:1", False)
            self.browser.click("document.querySelector('#positions summary')")
            for part in words:
                self.assertIn(part, self.text("#positions"))
            self.assertEqual(self.value("document.querySelectorAll('#positions canvas').length"), 2 if name == "mpnet" else 0)
            self.shot(f"model_{name}")


def golden_tensors(folder):
    """{name: a function from indices to a number} of a folder's golden.safetensors."""
    data = (folder / "golden.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")

    def reader(shape, offset):
        def at(*indices):
            place = 0
            for size, index in zip(shape, indices):
                place = place * size + index
            return pages.struct.unpack_from("<f", data, start + offset + 4 * place)[0]
        return at
    header = pages.json.loads(data[8:start])
    return {name: reader(tensor["shape"], tensor["data_offsets"][0]) for name, tensor in header.items() if name != "__metadata__"}


def halve_queries(model, copy):
    """A copy of a model whose query weights are half as large."""
    shutil.copytree(model, copy)
    path = copy / "model.safetensors"
    data = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    for name, tensor in pages.json.loads(data[8:start]).items():
        if "query.weight" in name:
            begin, end = (start + offset for offset in tensor["data_offsets"])
            halves = (x / 2 for (x,) in pages.struct.iter_unpack("<f", data[begin:end]))
            data[begin:end] = b"".join(pages.struct.pack("<f", x) for x in halves)
    path.write_bytes(data)


# From a press on a word until the frame that shows its heads has been drawn.
CLICK = """new Promise((done) => {
  const start = performance.now();
  document.querySelectorAll('.word')[%d].dispatchEvent(new PointerEvent('pointerdown', { bubbles: true, button: 0 }));
  requestAnimationFrame(() => { const channel = new MessageChannel();
    channel.port1.onmessage = () => done(performance.now() - start); channel.port2.postMessage(0); });
})"""


def number(shown):
    return float(shown.replace("≈", "").replace("\u2009", "").replace("\u2212", "-").replace("+", ""))


class Server:
    """What `pozor attention serve` answers, from made-up weights."""

    def __init__(self, header, weights, asked):
        page = pages.page_of(header, []).encode()
        every = [head for layer in weights[0] for head in layer]
        pack = lambda rows: b"".join(pages.struct.pack("<e", w) for row in rows for w in row)

        def answer(path):
            part = urllib.parse.urlparse(path).path.strip("/").split("/")
            if part == [""]:
                return "text/html", page
            asked.append(path)
            if part[0] == "layer":
                place = header["layers"].index(int(part[1]))
                return "application/octet-stream", pack(weights[0][place][header["heads"][place].index(int(part[3]))])
            token = int(part[1])
            rows = [head[token] if part[2] == "from" else [row[token] for row in head] for head in every]
            return "application/octet-stream", pack(rows)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if "favicon" in self.path:
                    self.send_response(204)
                    self.end_headers()
                    return
                kind, body = answer(self.path)
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return f"http://127.0.0.1:{self.server.server_address[1]}/"

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


if __name__ == "__main__":
    if find_chromium() is None:
        print("skipped: no Chromium")
        sys.exit(77)
    screenshots.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
