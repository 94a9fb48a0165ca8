"""Converts a BERT-style model folder into what the peers read.

    FOLDER/convert/bin/python bench/peers/convert.py MODEL OUT [--calibration TEXTS]

Writes OUT/onnx/model.onnx (f32) and model.int8.onnx (dynamic, weights per channel),
OUT/openvino/f32.xml and int8.xml (weights and activations, calibrated on the texts), and
OUT/ctranslate2/f32 and int8. Steps whose library is not installed are skipped with a word.
"""
import argparse
import os
import pathlib

os.environ.setdefault("HF_HUB_OFFLINE", "1")


def export_onnx(model, out):
    """Exports hidden states over (input_ids, attention_mask, token_type_ids), both axes free."""
    import torch
    from transformers import AutoModel

    encoder = AutoModel.from_pretrained(model, attn_implementation="eager").eval()

    class HiddenStates(torch.nn.Module):
        def __init__(self, encoder):
            super().__init__()
            self.encoder = encoder

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.encoder(input_ids=input_ids, attention_mask=attention_mask,
                                token_type_ids=token_type_ids).last_hidden_state

    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    example = torch.arange(1000, 1016).reshape(2, 8)
    free = {0: "texts", 1: "tokens"}
    out.mkdir(parents=True, exist_ok=True)
    path = out / "model.onnx"
    with torch.no_grad():
        torch.onnx.export(HiddenStates(encoder), (example, torch.ones_like(example), torch.zeros_like(example)),
                          str(path), input_names=inputs, output_names=["hidden"], opset_version=17,
                          dynamic_axes={name: free for name in inputs + ["hidden"]}, dynamo=False)
    return path


def quantize_onnx(path):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(str(path), str(path.with_name("model.int8.onnx")), weight_type=QuantType.QInt8, per_channel=True)


def convert_openvino(onnx_path, model, out, calibration):
    import openvino
    out.mkdir(parents=True, exist_ok=True)
    plain = openvino.convert_model(str(onnx_path))
    openvino.save_model(plain, str(out / "f32.xml"), compress_to_fp16=False)
    if calibration is None:
        return
    import nncf
    import numpy as np
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(512)
    names = {port.get_any_name() for port in plain.inputs}

    def as_inputs(text):
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        every = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        return {name: value for name, value in every.items() if name in names}

    texts = calibration.read_text(encoding="utf-8").splitlines()[:300]
    quantized = nncf.quantize(plain, nncf.Dataset(texts, as_inputs), subset_size=len(texts),
                              model_type=nncf.ModelType.TRANSFORMER, preset=nncf.QuantizationPreset.MIXED)
    openvino.save_model(quantized, str(out / "int8.xml"), compress_to_fp16=False)


def convert_ctranslate2(model, out):
    from ctranslate2.converters import TransformersConverter
    for name, quantization in (("f32", None), ("int8", "int8")):
        TransformersConverter(str(model)).convert(str(out / name), quantization=quantization, force=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--calibration", type=pathlib.Path, help="file of texts for OpenVINO's int8")
    arguments = parser.parse_args()
    onnx_path = export_onnx(arguments.model, arguments.out / "onnx")
    steps = {"onnx int8": lambda: quantize_onnx(onnx_path),
             "openvino": lambda: convert_openvino(onnx_path, arguments.model, arguments.out / "openvino", arguments.calibration),
             "ctranslate2": lambda: convert_ctranslate2(arguments.model, arguments.out / "ctranslate2")}
    for name, step in steps.items():
        try:
            step()
            print(f"{name}: done", flush=True)
        except ImportError as error:
            print(f"{name}: skipped, {error}", flush=True)


if __name__ == "__main__":
    main()
