"""A picture that goes to a model holds the picture, and nothing else that its file says."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd.extract.bare import bare
from tarsd.extract.pages import NotReadable

pil = pytest.importorskip("PIL.Image", reason="pictures are made with Pillow, of tarsd[ocr]")

SECRET = b"Lighthouse Lane 7"


def picture(kind: str, *, turned: int = 1, **options: object) -> bytes:
    """A small picture with a camera, an author, a place and a comment beside it."""
    from PIL import Image, PngImagePlugin

    made = Image.new("RGB", (24, 16), "white")
    for x in range(24):
        for y in range(16):
            made.putpixel((x, y), (x * 10, y * 15, 90))
    exif = made.getexif()
    exif[0x010F] = SECRET.decode()
    exif[0x0112] = turned
    exif.get_ifd(0x8825)[1] = "N"
    exif.get_ifd(0x8825)[2] = (51.0, 28.0, 40.1)
    out = io.BytesIO()
    if kind == "PNG":
        told = PngImagePlugin.PngInfo()
        told.add_text("Author", SECRET.decode())
        told.add_itxt("Comment", SECRET.decode())
        told.add_text("zipped", SECRET.decode() * 9, zip=True)
        options["pnginfo"] = told
    elif kind == "JPEG":
        options |= {"comment": SECRET, "xmp": b"<x>" + SECRET + b"</x>"}
    else:
        options["xmp"] = b"<x>" + SECRET + b"</x>"
    made.save(out, kind, exif=exif, **options)
    return out.getvalue()


def seen(data: bytes) -> list[object]:
    """The points of a picture as a person sees it."""
    from PIL import Image, ImageOps

    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
    return [upright.size, *(upright.getpixel((x, y)) for x in range(upright.width) for y in range(upright.height))]


MADE: dict[str, Callable[[], bytes]] = {
    "jpeg": lambda: picture("JPEG"),
    "progressive": lambda: picture("JPEG", progressive=True),
    "turned": lambda: picture("JPEG", turned=6),
    "png": lambda: picture("PNG"),
    "webp": lambda: picture("WEBP"),
    "webp without loss": lambda: picture("WEBP", lossless=True),
}


@pytest.mark.parametrize("name", MADE)
def test_only_the_picture_is_left(name: str) -> None:
    from PIL import Image

    data = MADE[name]()
    assert SECRET in data
    kind, left = bare(data)
    assert kind == f"image/{name.split()[0] if name in ('png', 'webp', 'webp without loss') else 'jpeg'}"
    assert SECRET not in left
    exif = Image.open(io.BytesIO(left)).getexif()
    assert not exif.get_ifd(0x8825)
    assert set(exif) <= {0x0112}
    if name != "webp":  # its decoder may round otherwise
        assert seen(left) == seen(data)
    else:
        assert seen(left)[0] == seen(data)[0]
    assert bare(left).data == left


def test_what_hangs_on_behind_is_left_out() -> None:
    plain = picture("JPEG")
    assert bare(plain + b"\0\0\0\x18ftypmp42" + SECRET).data == bare(plain).data
    assert bare(picture("PNG") + SECRET).data == bare(picture("PNG")).data


def test_a_chunk_that_nobody_knows_is_left_out() -> None:
    body = b"prVt" + SECRET
    chunk = struct.pack(">I", len(SECRET)) + body + struct.pack(">I", zlib.crc32(body))
    plain = bare(picture("PNG")).data
    assert bare(plain[:33] + chunk + plain[33:]).data == plain


@pytest.mark.parametrize(
    "data", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF\x10\0\0\0WEBPVP8 \xff\0\0\0"]
)
def test_what_is_no_whole_picture_is_refused(data: bytes) -> None:
    with pytest.raises(NotReadable):
        bare(data)


@given(st.data())
def test_damage_is_refused_or_hides_nothing(data: st.DataObject) -> None:
    whole = bytearray(picture(data.draw(st.sampled_from(["JPEG", "PNG", "WEBP"]))))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    try:
        bare(bytes(whole[:cut]))
    except NotReadable as error:
        assert error.message
