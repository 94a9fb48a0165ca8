"""A peer in a process of its own, driven by `pozor bench --peer`: lines of tab-separated fields in,
one JSON object a line out (tools/bench/worker.h describes the protocol).

    run/bin/python bench/peers/worker.py --engine onnxruntime --model MODEL --converted OUT --threads 2

Every engine gets texts and gives unit vectors in their order: tokenising, sorting by length, batching,
padding, mean pooling and normalising are inside the clock, as they are for Pozor.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import pathlib
import sys
import time

import numpy as np


class Tokenized:
    """Texts as padded batches, longest first, so that padding is as small as it can be."""

    def __init__(self, model, max_length):
        from tokenizers import Tokenizer
        self.tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(max_length)

    def ids(self, texts):
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(texts)]

    @staticmethod
    def batches(ids, size):
        order = np.argsort([-len(row) for row in ids], kind="stable")
        for start in range(0, len(order), size):
            yield order[start:start + size]


def padded(rows):
    width = max(map(len, rows))
    ids = np.zeros((len(rows), width), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(rows):
        ids[row, :len(tokens)] = tokens
        mask[row, :len(tokens)] = 1
    return ids, mask


def pooled(hidden, mask):
    weights = mask[:, :, None].astype(np.float32)
    vectors = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Engine:
    """Takes batches of token ids; `streams` batches run side by side, each on its share of the threads."""

    def __init__(self, options):
        self.tokenized = Tokenized(options.model, options.max_length)
        self.streams = min(options.streams, options.threads)
        self.threads = max(1, options.threads // self.streams)
        self.pool = concurrent.futures.ThreadPoolExecutor(self.streams) if self.streams > 1 else None
        self.load(options)

    def encode(self, texts, batch):
        ids = self.tokenized.ids(texts)
        parts = list(self.tokenized.batches(ids, batch))
        run = self.pool.map if self.pool else map
        results = list(run(lambda part: self.run([ids[i] for i in part]), parts))
        vectors = np.empty((len(texts), results[0].shape[1]), dtype=np.float32)
        for part, result in zip(parts, results):
            vectors[part] = result
        return vectors


class OnnxRuntime(Engine):
    def load(self, options):
        import onnxruntime
        self.version = onnxruntime.__version__
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = self.threads
        settings.inter_op_num_threads = 1
        name = {"f32": "model.onnx", "int8": "model.int8.onnx"}[options.precision]
        self.session = onnxruntime.InferenceSession(str(options.converted / "onnx" / name), settings,
                                                    providers=["CPUExecutionProvider"])
        self.inputs = [value.name for value in self.session.get_inputs()]

    def run(self, rows):
        ids, mask = padded(rows)
        every = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return pooled(self.session.run(None, {name: every[name] for name in self.inputs})[0], mask)


class OpenVino(Engine):
    def load(self, options):
        import openvino
        self.version = openvino.__version__
        name = "int8" if options.precision == "int8" else "f32"
        hint = "bf16" if options.precision == "bf16" else "f32"
        self.compiled = openvino.Core().compile_model(
            str(options.converted / "openvino" / f"{name}.xml"), "CPU",
            {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": options.threads, "NUM_STREAMS": self.streams})
        self.inputs = [port.get_any_name() for port in self.compiled.inputs]
        self.free = [self.compiled.create_infer_request() for _ in range(self.streams)]

    def run(self, rows):
        ids, mask = padded(rows)
        every = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        request = self.free.pop()
        try:
            hidden = request.infer({name: every[name] for name in self.inputs}, share_inputs=True, share_outputs=True)[0]
            return pooled(hidden, mask)
        finally:
            self.free.append(request)


class CTranslate2(Engine):
    def load(self, options):
        import ctranslate2
        self.version = ctranslate2.__version__
        self.encoder = ctranslate2.Encoder(str(options.converted / "ctranslate2" / options.precision), device="cpu",
                                           compute_type={"f32": "float32"}.get(options.precision, options.precision),
                                           inter_threads=self.streams, intra_threads=self.threads)

    def run(self, rows):
        hidden = np.array(self.encoder.forward_batch(rows).last_hidden_state)
        mask = np.arange(hidden.shape[1])[None, :] < np.array([len(row) for row in rows])[:, None]
        return pooled(hidden, mask)


class SentenceTransformers:
    """As people call it; it tokenises, sorts and pools by itself."""

    def __init__(self, options):
        import sentence_transformers
        import torch
        self.version = sentence_transformers.__version__
        torch.set_num_threads(options.threads)
        self.model = sentence_transformers.SentenceTransformer(str(options.model), device="cpu")
        self.model.max_seq_length = options.max_length
        if options.precision == "bf16":
            self.model = self.model.bfloat16()

    def encode(self, texts, batch):
        vectors = self.model.encode(texts, batch_size=batch, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)


ENGINES = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "ctranslate2": CTranslate2,
           "sentence-transformers": SentenceTransformers}


def waited():
    """Seconds that this process's threads have waited for a CPU that something else held."""
    nanoseconds = 0
    for path in glob.glob("/proc/self/task/*/schedstat"):
        try:
            with open(path, encoding="ascii") as file:
                nanoseconds += int(file.read().split()[1])
        except OSError:
            pass  # the thread has ended
    return 1e-9 * nanoseconds


def other_threads_time():
    """CPU seconds of the other threads."""
    return time.process_time() - time.thread_time()


class Commands:
    COLUMNS = ("seconds", "cpu_seconds", "waited_seconds")

    def __init__(self, engine):
        self.engine = engine
        self.texts = []
        self.files = {}
        self.others = other_threads_time()

    def answer(self, name, *fields):
        return getattr(self, f"do_{name}")(*fields)

    def do_texts(self, path, stride):
        if (path, stride) not in self.files:
            self.files[path, stride] = pathlib.Path(path).read_text(encoding="utf-8").splitlines()[::int(stride)]
        self.texts = self.files[path, stride]
        return {"texts": len(self.texts)}

    def timed(self, texts, batch):
        """Wall, CPU and waiting seconds. What other threads have used is known once they sleep: it is counted from
        call to call, while this thread's own is that of the call alone."""
        wait, own, start = waited(), time.thread_time(), time.perf_counter()
        self.engine.encode(texts, batch)
        seconds, own = time.perf_counter() - start, time.thread_time() - own
        wait = waited() - wait
        before, self.others = self.others, other_threads_time()
        return seconds, own + self.others - before, wait

    def do_round(self, batch):
        self.others = other_threads_time()
        return dict(zip(self.COLUMNS, self.timed(self.texts, int(batch))))

    def do_latency(self, count, text, pause=0):
        self.others = other_threads_time()
        calls = []
        for _ in range(int(count)):
            time.sleep(1e-3 * float(pause))
            calls.append(self.timed([text], 1))
        return dict(zip(self.COLUMNS, map(list, zip(*calls))))

    def do_save(self, path, batch):
        vectors = self.engine.encode(self.texts, int(batch))
        vectors.tofile(path)
        return {"saved": int(vectors.size)}

    def do_rss(self):
        status = pathlib.Path("/proc/self/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return {"peak_rss_mib": int(peak.split()[1]) / 1024}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="the model's own folder")
    parser.add_argument("--converted", type=pathlib.Path, help="what convert.py wrote")
    parser.add_argument("--precision", choices=("f32", "bf16", "int8"), default="f32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--streams", type=int, default=1, help="batches side by side, never more than threads")
    parser.add_argument("--max-length", type=int, default=512)
    options = parser.parse_args()
    start = time.perf_counter()
    engine = ENGINES[options.engine](options)
    loaded = time.perf_counter()
    engine.encode(["A dog runs."], 1)
    print(json.dumps({"ready": True, "version": engine.version, "load_seconds": loaded - start,
                      "first_vector_seconds": time.perf_counter() - loaded}), flush=True)
    commands = Commands(engine)
    for line in sys.stdin:
        fields = line.rstrip("\n").split("\t")
        if fields[0] == "quit":
            break
        try:
            reply = commands.answer(*fields)
        except Exception as error:  # the driver reports it and goes on or stops
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)
    os._exit(0)  # libraries' threads may not end by themselves


if __name__ == "__main__":
    main()
