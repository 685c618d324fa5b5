"""Pictures, and pages that are pictures: text recognition on this machine, with models that rapidocr's wheel holds."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

from tarsd.extract.pages import Extracted, NotReadable, Page

_LONGEST, _PIXELS = 2_000, 100_000_000
_SURE = 0.6
"""Lines that were read with less confidence are left out."""
_TAKEN, _SUB = 0x9003, 0x8769
"""EXIF: when the picture was taken, and where in it that stands. Where it was taken is never asked for."""


def read(path: Path) -> Extracted:
    """The text in a picture, line by line."""
    Image.MAX_IMAGE_PIXELS = _PIXELS
    try:
        with Image.open(path) as picture:
            if picture.width * picture.height > _PIXELS:
                raise NotReadable("The picture is too large.", "Save it smaller: text is read up to 100 megapixels.")
            exif = picture.getexif()
            taken = str(exif.get_ifd(_SUB).get(_TAKEN, ""))[:10].replace(":", "-")
            picture.draft("RGB", (_LONGEST, _LONGEST))
            upright = ImageOps.exif_transpose(picture)
            upright.thumbnail((_LONGEST, _LONGEST))
            lines = recognized(upright.convert("RGB"))
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise NotReadable("The picture is damaged or too large.", "Open it and save it anew.") from error
    properties = (("created", taken),) if taken.strip("- 0\0") else ()
    if not lines:
        return Extracted((), "", properties)
    return Extracted((Page("\n".join(lines)),), "", properties)


@functools.cache
def _engine() -> Any:
    import rapidocr

    one = {f"EngineConfig.onnxruntime.{name}_op_num_threads": 1 for name in ("intra", "inter")}
    return rapidocr.RapidOCR(params={**one, "Global.log_level": "critical"})


def recognized(picture: Image.Image) -> list[str]:
    """The lines of text in a picture, from top to bottom."""
    import numpy

    found = _engine()(numpy.asarray(picture)[:, :, ::-1])
    if found.txts is None:
        return []
    return [
        text.strip() for text, score in zip(found.txts, found.scores, strict=True) if score >= _SURE and text.strip()
    ]
