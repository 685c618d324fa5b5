"""The built-in models without the program around them, for comparison."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.resources import files as package_files
from pathlib import Path

import numpy as np


def bare_loop(model: str) -> Callable[[list[str]], None]:
    """MiniLM or e5 and nothing else: onnxruntime with its defaults, one text after the other."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    return _e5() if model == "e5" else _minilm()


def _minilm() -> Callable[[list[str]], None]:
    import onnxruntime
    from tokenizers import Tokenizer

    data = Path(str(package_files("tarsd"))) / "data" / "minilm"
    tokenizer = Tokenizer.from_file(str(data / "tokenizer.json"))
    session = onnxruntime.InferenceSession(str(data / "model.onnx"), providers=["CPUExecutionProvider"])

    def loop(texts: list[str]) -> None:
        for text in texts:
            ids = np.array([tokenizer.encode(text).ids[:256]], dtype=np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            session.run(["last_hidden_state"], inputs)[0].mean(axis=1)

    return loop


def _e5() -> Callable[[list[str]], None]:
    """Its words are looked up before the graph; that and its tokenizer are our own, for there are no others."""
    import onnxruntime

    from tarsd.embed import e5_files
    from tarsd.embed.unigram import Unigram

    folder = e5_files.made()
    tokenizer, words = Unigram(folder), np.load(folder / "words.npy", mmap_mode="r")
    session = onnxruntime.InferenceSession(str(folder / e5_files.GRAPH), providers=["CPUExecutionProvider"])

    def loop(texts: list[str]) -> None:
        for text in texts:
            ids = [0, *tokenizer.ids(f"passage: {text}", 510), 2]
            session.run(["pooled"], {"words": e5_files.widened(words[ids])[None]})

    return loop
