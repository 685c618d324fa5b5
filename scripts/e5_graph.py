"""The encoder of multilingual-e5-small as an ONNX graph whose weights are in a file beside it (`tarsd.embed.e5_files`).

Input "words": float32 [texts, tokens, 384], the rows of the word table; output "pooled": float32 [texts, 384], their
mean after the last layer. All texts of a run have the same number of tokens. Matrix products are in integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tarsd.embed.e5_files import Published

OURS = "com.microsoft"
FILE = "weights.bin"


class Graph:
    """Nodes in the order in which they are added."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self._quantised: set[str] = set()

    def add(self, kind: str, inputs: Sequence[str], *outputs: str, domain: str = "", **attributes: object) -> str:
        """A node; the name of its first output."""
        node = helper.make_node(kind, inputs, outputs, name=outputs[0], domain=domain, **attributes)
        self.nodes.append(node)
        return outputs[0]

    def product(self, data: str, weights: str) -> str:
        """`data` times the weights of this name, `data` quantised over the whole run, once."""
        if data not in self._quantised:
            self._quantised.add(data)
            self.add("DynamicQuantizeLinear", [data], f"{data}.u8", f"{data}.scale", f"{data}.zero")
        self.add("MatMulInteger", [f"{data}.u8", f"{weights}_w", f"{data}.zero"], f"{weights}.i")
        self.add("Cast", [f"{weights}.i"], f"{weights}.f", to=TensorProto.FLOAT)
        self.add("Mul", [f"{data}.scale", f"{weights}_s"], f"{weights}.scale")
        return self.add("Mul", [f"{weights}.f", f"{weights}.scale"], f"{weights}.product")


def write(published: Published, target: Path) -> None:
    """Write the graph without any weight."""
    graph = Graph()
    graph.add("Shape", ["words"], "shape")
    graph.add("Gather", ["shape", "one"], "length", axis=0)
    graph.add("Slice", ["positions", "zero", "length", "zero"], "placed")
    graph.add("Add", ["words", "placed"], "embedded")
    data = graph.add("LayerNormalization", ["embedded", "norm_w", "norm_b"], "x0", axis=-1, epsilon=published.epsilon)
    for layer in range(published.layers):
        of = f"l{layer}."
        joint = graph.add("Add", [graph.product(data, f"{of}qkv"), f"{of}qkv_b"], f"{of}joint")
        parts = [f"{of}{part}" for part in ("query", "key", "value")]
        graph.add("Split", [joint], *parts, axis=-1, num_outputs=3)
        heads = published.heads
        seen = graph.add("MultiHeadAttention", parts, f"{of}seen", domain=OURS, num_heads=heads)
        for source, product, norm in ((seen, "ao", "aln"), ("", "fo", "oln")):
            if not source:
                wide = [graph.product(data, f"{of}fi"), f"{of}fi_b"]
                source = graph.add("BiasGelu", wide, f"{of}wide", domain=OURS)
            inputs = [data, graph.product(source, of + product)]
            inputs += [f"{of}{norm}_w", f"{of}{norm}_b", f"{of}{product}_b"]
            data = graph.add("SkipLayerNormalization", inputs, f"{of}{norm}", domain=OURS, epsilon=published.epsilon)
    graph.add("ReduceMean", [data, "one"], "pooled", keepdims=0)
    constants = [
        numpy_helper.from_array(np.array([value], np.int64), name) for name, value in (("zero", 0), ("one", 1))
    ]
    constants += [_outside(name, array, offset) for name, array, offset in published.placed()]
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "e5",
            [helper.make_tensor_value_info("words", TensorProto.FLOAT, ["texts", "tokens", published.width])],
            [helper.make_tensor_value_info("pooled", TensorProto.FLOAT, ["texts", published.width])],
            constants,
        ),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(OURS, 1)],
        producer_name="tarsd",
    )
    model.ir_version = 9
    target.write_bytes(model.SerializeToString(deterministic=True))


def _outside(name: str, array: np.ndarray, offset: int) -> onnx.TensorProto:
    """A weight that is in the file beside the graph."""
    tensor = onnx.TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", FILE), ("offset", offset), ("length", array.nbytes)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor
