"""Files that are broken, hostile or not what their names say: each made here, with what is to come of it."""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from PIL import Image

from tarsd.extract import Kind
from tests.support.office_files import W, docx, epub, opened, paragraph, row, xlsx, zipped
from tests.support.pdfs import assembled, pdf, shown, stream

WORDS = ["The kettle was made of copper."]
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
SECRET = '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY y SYSTEM "http://127.0.0.1:9/y">]>'
LAUGHS = (
    "<!DOCTYPE d [<!ENTITY a0 'haha'>"
    + "".join(f"<!ENTITY a{at} '{f'&a{at - 1};' * 10}'>" for at in range(1, 10))
    + "]>"
)


class Bad(NamedTuple):
    """`name` tells the kind; `says` is in the text, or in the problem where that has to be (`fails`).

    Where neither is sure, `says` is "" and anything will do that is one of both.
    """

    name: str
    kind: Kind
    make: Callable[[], bytes]
    says: str = "copper"
    fails: bool = False


def rc4(key: bytes, data: bytes) -> bytes:
    box, at, out = list(range(256)), 0, bytearray()
    for one in range(256):
        at = (at + box[one] + key[one % len(key)]) % 256
        box[one], box[at] = box[at], box[one]
    one = at = 0
    for byte in data:
        one = (one + 1) % 256
        at = (at + box[one]) % 256
        box[one], box[at] = box[at], box[one]
        out.append(byte ^ box[(box[one] + box[at]) % 256])
    return bytes(out)


PAD = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def locked(password: bytes) -> bytes:
    """A PDF under 40-bit RC4 that opens with this password."""
    owner = rc4(hashlib.md5(PAD).digest()[:5], (password + PAD)[:32])
    key = hashlib.md5((password + PAD)[:32] + owner + struct.pack("<i", -4) + b"id").digest()[:5]
    drawn = rc4(hashlib.md5(key + struct.pack("<I", 5)[:3] + b"\0\0").digest()[:10], shown(WORDS))
    about = b"<</Filter/Standard/V 1/R 2/O<%s>/U<%s>/P -4>>" % (owner.hex().encode(), rc4(key, PAD).hex().encode())
    return pdf([WORDS], more={5: stream(drawn), 9: about}, trailer=b"/Encrypt 9 0 R/ID[<6964><6964>]")


def picture(form: str = "PNG", **options: object) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (40, 30), "white").save(out, form, **options)
    return out.getvalue()


def scanned() -> bytes:
    image = b"/Type/XObject/Subtype/Image/Width 40/Height 30/ColorSpace/DeviceGray/BitsPerComponent 8"
    page = b"/Resources<</XObject<</I 9 0 R>>>>"
    return pdf([b"q 500 0 0 700 40 40 cm /I Do Q"], page=page, more={9: stream(b"\xff" * 1200, image)})


def hebrew() -> bytes:
    """Four letters drawn from right to left, each at a place of its own."""
    table = b"1 beginbfrange <41> <44> <05E9> endbfrange 1 beginbfchar <44> <05DD> endbfchar"
    cmap = b"begincmap 1 begincodespacerange <00> <FF> endcodespacerange %s endcmap" % table
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 9 0 R>>"
    drawn = b"".join(b"BT /F 20 Tf %d 700 Td (%c) Tj ET\n" % (200 - 14 * at, 65 + at) for at in range(4))
    return pdf([drawn], font=font, more={9: stream(cmap)})


def without_unicode() -> bytes:
    """Glyphs named so that nobody knows their letters, with codes that are none."""
    glyph = stream(b"500 0 d0 0 0 400 400 re f")
    font = (
        b"<</Type/Font/Subtype/Type3/FontBBox[0 0 500 500]/FontMatrix[.001 0 0 .001 0 0]/FirstChar 1/LastChar 3"
        b"/Widths[500 500 500]/Encoding<</Differences[1/g1/g2/g3]>>/CharProcs<</g1 9 0 R/g2 9 0 R/g3 9 0 R>>>>"
    )
    return pdf([b"BT /F 20 Tf 60 700 Td <010203020103> Tj ET"], font=font, more={9: glyph})


def form() -> bytes:
    field = b"<</Type/Annot/Subtype/Widget/FT/Tx/T(Made of)/V(copper)/Rect[10 10 90 30]/P 4 0 R>>"
    return pdf([b""], catalog=b"/AcroForm<</Fields[9 0 R]>>", page=b"/Annots[9 0 R]", more={9: field})


def inflating(megabytes: int) -> bytes:
    """A drawing that unpacks to so much."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(b" " * 1_000_000) for _ in range(megabytes)) + packer.flush()
    return pdf([WORDS], more={5: stream(packed, b"/Filter/FlateDecode")})


def bomb(megabytes: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        with archive.open("word/document.xml", "w") as file:
            for _ in range(megabytes):
                file.write(bytes(1_000_000))
    return out.getvalue()


def lying_zip() -> bytes:
    """Its list says that each file is of ten bytes."""
    data = bytearray(docx(paragraph("copper " * 100_000)))
    at = 0
    while (at := data.find(b"PK\x01\x02", at)) >= 0:
        data[at + 24 : at + 28] = struct.pack("<I", 10)
        at += 4
    return bytes(data)


def huge_picture() -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    )


def pdfs() -> Iterator[Bad]:
    for name, make, *rest in (
        ("password", lambda: locked(b"secret"), "password", True),
        ("owner's password", lambda: locked(b"")),
        ("half of it", lambda: pdf([WORDS] * 40)[:3_000], "damaged", True),
        ("its first bytes", lambda: pdf([WORDS])[:20], "damaged", True),
        ("no table", lambda: pdf([WORDS]).partition(b"xref")[0] + b"trailer<</Root 1 0 R>>"),
        ("a table that lies", lambda: pdf([WORDS]).replace(b"0000000", b"9999999")),
        ("a drawing of 400 MB", lambda: inflating(400), ""),
        ("5,000 pages", lambda: pdf([[f"copper {at}"] for at in range(5_000)]), "copper 4999"),
        ("scan", scanned, "no text", True),
        ("turned pages", lambda: pdf([WORDS], page=b"/Rotate 90")),
        ("turned text", lambda: pdf([shown(WORDS).replace(b"60 780 Td", b"0 1 -1 0 300 200 Tm")])),
        ("right to left", hebrew, "ש"),
        ("form alone", form, "Made of: copper"),
        ("no Unicode", without_unicode, "no text", True),
        ("scripts", lambda: pdf([WORDS], catalog=b"/OpenAction<</S/JavaScript/JS(while\\(1\\){})>>")),
        ("launches", lambda: pdf([WORDS], catalog=b"/OpenAction<</S/Launch/F(/bin/sh)>>")),
        ("sends itself", lambda: pdf([WORDS], catalog=b"/OpenAction<</S/URI/URI(http://127.0.0.1:9/)>>")),
        ("XFA", lambda: pdf([WORDS], catalog=b"/AcroForm<</XFA 9 0 R>>", more={9: stream(SECRET.encode())})),
        ("pages in a circle", lambda: pdf([WORDS], more={2: b"<</Type/Pages/Count 2/Kids[4 0 R 2 0 R]>>"})),
        ("page without drawing", lambda: pdf([WORDS, WORDS], more={5: b"null"})),
        ("nested arrays", lambda: pdf([WORDS], more={9: b"[" * 100_000}), ""),
        ("endless page", lambda: pdf([WORDS]).replace(b"0 0 595 842", b"0 0 9e9 9e9")),
        ("a billion pages", lambda: pdf([WORDS]).replace(b"/Count 1", b"/Count 1000000000"), ""),
        ("no catalog", lambda: assembled({2: b"<<>>"}), "damaged", True),
        ("page forms that draw each other", lambda: pdf(
            [b"/X Do"], page=b"/Resources<</XObject<</X 9 0 R>>>>",
            more={9: stream(b"/X Do", b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 9 0 R>>>>")},
        ), ""),
    ):  # fmt: skip
        yield Bad(f"pdf: {name}", "pdf", make, *rest)


def others() -> Iterator[Bad]:
    good, part = paragraph(WORDS[0]), "http://schemas.openxmlformats.org/package/2006/relationships"
    chapter = f"<html><body><p>{WORDS[0]}</p></body></html>"
    for name, kind, make, *rest in (
        ("Word named PDF", "pdf", lambda: docx(good)),
        ("text named PDF", "pdf", lambda: WORDS[0].encode()),
        ("program named PDF", "pdf", lambda: b"\x7fELF" + bytes(range(256)) * 9, "not what its name says", True),
        ("PDF named picture", "picture", lambda: pdf([WORDS])),
        ("nothing", "office", bytes, "empty", True),
        ("archive named Word", "office", lambda: zipped({"a.txt": "copper"}), "archive", True),
        ("Word with a password", "office", lambda: OLE + "EncryptedPackage".encode("utf-16-le"), "password", True),
        ("old Word", "office", lambda: OLE + "WordDocument".encode("utf-16-le"), "old form", True),
        ("broken old Excel", "office", lambda: OLE + "Workbook".encode("utf-16-le"), "damaged", True),
        ("half of a Word file", "office", lambda: docx(good)[:700], "damaged", True),
        ("zip bomb", "office", lambda: bomb(300), "unpacks", True),
        ("zip that lies", "office", lying_zip, "", True),
        ("external entity in Word", "office", lambda: docx(good + paragraph("&amp;"), before=SECRET)),
        ("entities that multiply", "office", lambda: docx(paragraph("&a9;"), before=LAUGHS), "", True),
        ("macros", "office", lambda: docx(good, {"word/vbaProject.bin": OLE})),
        ("template elsewhere", "office", lambda: docx(good, {
            "word/_rels/settings.xml.rels": f'<Relationships xmlns="{part}"><Relationship Id="r1" Type="x"'
            ' TargetMode="External" Target="http://127.0.0.1:9/x.dotm"/></Relationships>',
        })),
        ("elements in elements", "office", lambda: docx("<w:p>" * 50_000 + good), ""),
        ("Word without its text", "office", lambda: zipped({"word/styles.xml": f"<w:styles {W}/>"}), "damaged", True),
        ("a cell far away", "office", lambda: xlsx({
            "A": row(1, "copper") + '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
        }), ""),
        ("a formula that runs something", "office", lambda: xlsx({
            "A": '<row r="1"><c r="A1" t="str"><f>cmd|\'/c calc\'!A1</f><v>copper</v></c></row>',
        })),
        ("slides without parts", "office", lambda: zipped({"ppt/presentation.xml": "<p/>"}), "damaged", True),
        ("OpenDocument with a password", "office", lambda: opened("", more={
            "META-INF/manifest.xml": "<m><encryption-data/></m>"}), "password", True),
        ("external entity in OpenDocument", "office", lambda: zipped({
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"{SECRET}<d><p>copper &x; &y;</p></d>",
        })),
        ("RTF of braces", "office", lambda: b"{\\rtf1 " + b"{" * 200_000 + b"copper"),
        ("RTF with an object", "office", lambda: b"{\\rtf1 {\\object{\\*\\objdata " + b"4d5a" * 9_999 + b"}} copper}"),
        ("locked book", "book", lambda: epub({"a.xhtml": chapter}, {"META-INF/rights.xml": "<r/>"}), "locked", True),
        ("book that leaves its folder", "book", lambda: epub({"a.xhtml": chapter}, {
            "OEBPS/book.opf": "<p><item id='a' href='../../../../etc/passwd'/><item id='b' href='a.xhtml'/>"
            "<itemref idref='a'/><itemref idref='b'/></p>",
        })),
        ("external entity in a book", "book", lambda: epub({"a.xhtml": SECRET + chapter.replace("<p>", "<p>&x;")})),
        ("book without a list", "book", lambda: zipped({"mimetype": "application/epub+zip", "a.xhtml": chapter})),
        ("page of nested boxes", "web", lambda: b"<p>copper</p>" + b"<div>" * 100_000),
        ("page that loads", "web", lambda: b"<img src=http://127.0.0.1:9/i><script src=//127.0.0.1:9></script>copper"),
        ("page of comments", "web", lambda: b"<p>copper</p>" + b"<!--" * 500_000),
        ("page in UTF-16", "web", lambda: "<p>copper ✓</p>".encode("utf-16"), "copper ✓"),
        ("page of a script", "web", lambda: b"<html><script>copper</script></html>", "no text", True),
        ("picture of ten billion dots", "picture", huge_picture, "too large", True),
        ("half of a picture", "picture", lambda: picture("JPEG")[:300], "damaged", True),
    ):  # fmt: skip
        yield Bad(name, kind, make, *rest)  # type: ignore[arg-type]


ALL = [*pdfs(), *others()]
