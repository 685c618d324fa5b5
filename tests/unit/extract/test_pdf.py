"""PDFs are read page by page, as a person would copy their text."""

from __future__ import annotations

from pathlib import Path

from tarsd.extract import Extracted, extract
from tests.support.pdfs import pdf, shown, write

PROSE = ["The kettle of the north house was made of copper, and its lid", "of tin. It boiled.", "Nobody drank tea."]


def read(tmp_path: Path, data: bytes) -> Extracted:
    return extract(write(tmp_path / "a.pdf", data), "pdf")


def test_pages_have_text_label_and_place(tmp_path: Path) -> None:
    labels = b"/PageLabels<</Nums[0<</S/r>>2<</S/D>>]>>"
    found = read(tmp_path, pdf([["Preface"], ["More of it"], PROSE], catalog=labels))
    assert [(page.label, page.place) for page in found.pages] == [("i", "page=1"), ("ii", "page=2"), ("1", "page=3")]
    assert found.pages[2].text == (
        "The kettle of the north house was made of copper, and its lid\nof tin. It boiled.\n\nNobody drank tea."
    )
    assert (found.problem, found.hint) == ("", "")
    plain = read(tmp_path, pdf([["one"], ["two"]]))
    assert [page.label for page in plain.pages] == ["1", "2"]


def test_the_outline_becomes_headings_where_they_stand(tmp_path: Path) -> None:
    outline = {
        20: b"<</Type/Outlines/First 21 0 R/Last 22 0 R>>",
        21: b"<</Title(The kettle)/Parent 20 0 R/Next 22 0 R/Dest[4 0 R/Fit]>>",
        22: b"<</Title<FEFF004E006F0062006F00640079>/Parent 20 0 R/Prev 21 0 R/Dest[4 0 R/Fit]>>",
    }
    page = read(tmp_path, pdf([PROSE], catalog=b"/Outlines 20 0 R", more=outline)).pages[0]
    assert page.headings == ((0, "The kettle"), (page.text.index("Nobody"), "Nobody"))


def test_an_outline_that_bites_its_tail_ends(tmp_path: Path) -> None:
    ring = {
        20: b"<</Type/Outlines/First 21 0 R/Last 22 0 R>>",
        21: b"<</Title(A)/Parent 20 0 R/Next 22 0 R/Dest[4 0 R/Fit]>>",
        22: b"<</Title(B)/Parent 20 0 R/Next 21 0 R/First 21 0 R/Dest[4 0 R/Fit]>>",
    }
    page = read(tmp_path, pdf([PROSE], catalog=b"/Outlines 20 0 R", more=ring)).pages[0]
    assert {title for _, title in page.headings} == {"A", "B"}


def test_what_the_file_says_of_itself_becomes_properties(tmp_path: Path) -> None:
    info = b"/Title(On kettles)/Author(Ada Lovelace)/CreationDate(D:20240517093000Z)/Producer(x)"
    found = read(tmp_path, pdf([PROSE], info=info))
    assert found.title == "On kettles"
    assert found.properties == (("author", "Ada Lovelace"), ("created", "2024-05-17"))


def test_form_fields_and_remarks_are_read(tmp_path: Path) -> None:
    more = {
        20: b"<</Type/Annot/Subtype/Widget/FT/Tx/T(Name)/V(Ada)/Rect[10 10 90 30]/P 4 0 R>>",
        21: b"<</Type/Annot/Subtype/Text/Contents(Ask her about tin)/Rect[10 40 90 60]/P 4 0 R>>",
    }
    data = pdf([b""], catalog=b"/AcroForm<</Fields[20 0 R]>>", page=b"/Annots[20 0 R 21 0 R]", more=more)
    found = read(tmp_path, data)
    assert found.pages[0].text.splitlines() == ["Name: Ada", "Ask her about tin"]
    assert found.problem == ""


def test_headers_footers_and_page_numbers_are_left_out(tmp_path: Path) -> None:
    words = ["amber", "basil", "cedar", "dahlia", "elder", "fennel", "ginger", "hazel", "iris", "jasmine"]
    pages = [
        ["The Herbal" if at % 2 else "Part One", f"About {word}.", f"A {word} grows.", f"Page {at + 9} of 40"]
        for at, word in enumerate(words)
    ]
    texts = [page.text for page in read(tmp_path, pdf(pages)).pages]
    assert [text.split() for text in texts[2:]] == [f"About {word}. A {word} grows.".split() for word in words[2:]]
    assert texts[0].startswith("Part One") and texts[1].startswith("The Herbal")


def test_words_divided_at_the_end_of_a_line_are_whole(tmp_path: Path) -> None:
    lines = ["It was a remark-", "able well-", "known house in the Austria-", "Hungary of then.", "A well-known fact."]
    text = read(tmp_path, pdf([lines])).pages[0].text
    assert "a remarkable well-known house in the Austria-Hungary of then." in text


def test_text_outside_of_the_page_is_not_read(tmp_path: Path) -> None:
    drawn = shown(PROSE) + b"\n" + shown(["printer's mark"], at=(60, 2000))
    assert "mark" not in read(tmp_path, pdf([drawn])).pages[0].text
