"""Office files, books, web pages and pictures are read, each with what a person calls its parts."""

from __future__ import annotations

import io
from pathlib import Path

import pptx
import pytest
from PIL import Image, ImageDraw

from tarsd.extract import Extracted, Kind, extract, missing, needs
from tests.support.office_files import docx, epub, opened, paragraph, row, xlsx


def read(tmp_path: Path, data: bytes, kind: Kind = "office") -> Extracted:
    path = tmp_path / "file"
    path.write_bytes(data)
    return extract(path, kind)


def texts(found: Extracted) -> list[tuple[str, str]]:
    assert found.problem == ""
    return [(page.label, page.text) for page in found.pages]


def test_word(tmp_path: Path) -> None:
    table = f"<w:tbl><w:tr><w:tc>{paragraph('lid')}</w:tc><w:tc>{paragraph('tin')}</w:tc></w:tr></w:tbl>"
    found = read(tmp_path, docx(paragraph("The kettle", "Heading1") + paragraph("Of copper.") + table))
    assert texts(found) == [("", "The kettle\n\nOf copper.\nlid | tin")]
    assert found.pages[0].headings == ((0, "The kettle"),)
    assert (found.title, found.properties) == ("On kettles", (("author", "Ada Lovelace"), ("created", "2024-05-17")))


def test_powerpoint(tmp_path: Path) -> None:
    show = pptx.Presentation()
    for at, head in enumerate(("Kettles", "Lids")):
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = head
        slide.placeholders[1].text = f"copper\ntin {at}"
    slide.notes_slide.notes_text_frame.text = "say hello"
    out = io.BytesIO()
    show.save(out)
    found = read(tmp_path, out.getvalue())
    assert texts(found) == [("1", "Kettles\n\ncopper\ntin 0"), ("2", "Lids\n\ncopper\ntin 1\n\nsay hello")]
    assert found.pages[1].headings == ((0, "Lids"),)


def test_excel(tmp_path: Path) -> None:
    found = read(tmp_path, xlsx({"Budget": row(1, "Kettle", 12) + row(2, "Tin", 2.5), "Nothing": "", "B": row(1, "x")}))
    assert texts(found) == [("Budget", "Kettle | 12\nTin | 2.5"), ("B", "x")]


def test_opendocument(tmp_path: Path) -> None:
    body = "<text:h>Kettles</text:h><text:p>Of<text:s/>copper<text:line-break/>and tin.</text:p>"
    items = "<text:list><text:list-item><text:p>lid</text:p></text:list-item></text:list>"
    found = read(tmp_path, opened(body + items))
    assert texts(found) == [("", "Kettles\n\nOf copper\nand tin.\n\n- lid")]
    assert found.pages[0].headings == ((0, "Kettles"),)
    slide = "<draw:page><draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame></draw:page>"
    slides = read(tmp_path, opened(slide.format("one") + slide.format("two"), "presentation"))
    assert texts(slides) == [("1", "one"), ("2", "two")]
    cell = '<table:table-cell office:value-type="string"><text:p>Kettle</text:p></table:table-cell>'
    sheet = f'<table:table table:name="Budget"><table:table-row>{cell}</table:table-row></table:table>'
    assert texts(read(tmp_path, opened(sheet, "spreadsheet"))) == [("Budget", "Kettle")]


def test_rtf(tmp_path: Path) -> None:
    rtf = (
        rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}} Of \b copper\b0 .\par With a lid, gr\'fc\'dfe \u8211? x.\par}"
    )
    assert texts(read(tmp_path, rtf)) == [("", "Of copper.\n\nWith a lid, grüße – x.")]


def test_a_book(tmp_path: Path) -> None:
    chapters = {
        "z.xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><h1>Amber</h1><p>It is.</p></html>',
        "a b.xhtml": "<html><body><p>No heading &#233; here.</p></body></html>",
    }
    found = read(tmp_path, epub({name.replace(" ", "%20"): text for name, text in chapters.items()}, {
        f"OEBPS/{name}": text for name, text in chapters.items()
    }), "book")  # fmt: skip
    assert texts(found) == [("Amber", "Amber\n\nIt is."), ("2", "No heading é here.")]
    assert (found.title, found.properties) == ("The Herbal", (("author", "Ada Lovelace"),))


def test_a_web_page(tmp_path: Path) -> None:
    page = (
        "<!doctype html><title>On kettles</title><meta name=author content='Ada'>"
        "<meta property=article:published_time content=2024-05-17T09:30><nav>Home</nav>"
        f"<div>Buy now!</div><main><h1>Kettles</h1><p>Of <b>cop</b>per. {'More. ' * 40}<ul><li>lid<li>tin</ul></main>"
        "<footer>2024</footer><script>var x</script>"
    )
    found = read(tmp_path, page.encode(), "web")
    assert found.pages[0].text == f"Kettles\n\nOf copper. {('More. ' * 40).strip()}\n- lid\n- tin"
    assert (found.title, found.properties) == ("On kettles", (("author", "Ada"), ("created", "2024-05-17")))
    short = read(tmp_path, b"<nav>Home</nav><main><h2>Kettles</h2></main><p>and more", "web")
    assert texts(short) == [("", "Kettles\n\nand more")]
    assert texts(read(tmp_path, b"<meta charset=cp1252><p>gr\xfc\xdfe", "web")) == [("", "grüße")]


def test_a_picture_with_its_day_and_without_its_place(tmp_path: Path) -> None:
    picture = Image.new("RGB", (700, 120), "white")
    ImageDraw.Draw(picture).text((20, 30), "KETTLE 2024", fill="black", font_size=60)
    exif = picture.getexif()
    exif.get_ifd(0x8769)[0x9003] = "2024:05:17 09:30:00"
    exif.get_ifd(0x8825).update({1: "N", 2: (52.0, 31.0, 0.0), 3: "E", 4: (13.0, 24.0, 0.0)})
    out = io.BytesIO()
    picture.save(out, "JPEG", exif=exif)
    found = read(tmp_path, out.getvalue(), "picture")
    assert found.properties == (("created", "2024-05-17"),)
    assert "KETTLE" in found.pages[0].text and "2024" in found.pages[0].text


def test_without_an_extra_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [missing(kind) for kind in ("pdf", "office", "book", "web", "picture")] == [""] * 5
    monkeypatch.setattr(needs, "EXTRAS", {name: ("no_such_module",) for name in needs.EXTRAS})
    assert [missing(kind) for kind in ("pdf", "office", "book", "web", "picture")] == ["", *["files"] * 3, "ocr"]
    found = read(tmp_path, docx(paragraph("copper")))
    assert (found.pages, found.problem) == ((), "Reading such files needs tarsd[files].")
    assert "tarsd[files]" in found.hint
