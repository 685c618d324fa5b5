"""Office files, books and web pages as scripts make them, from their parts."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
CORE = (
    '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"'
    ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">'
    "<dc:title>On kettles</dc:title><dc:creator>Ada Lovelace</dc:creator>"
    "<dcterms:created>2024-05-17T09:30:00Z</dcterms:created></cp:coreProperties>"
)


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def docx(body: str, more: Mapping[str, str | bytes] | None = None, before: str = "") -> bytes:
    """A Word file with this body; `before` stands in front of its XML."""
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    return zipped(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            f'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{RELS}"><Relationship Id="r1" Type="{DOCUMENT}"'
            ' Target="word/document.xml"/></Relationships>',
            "word/styles.xml": f'<w:styles {W}><w:style w:type="paragraph" w:styleId="Heading1">'
            '<w:name w:val="heading 1"/></w:style></w:styles>',
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{RELS}"><Relationship Id="r1" '
            f'Type="{DOCUMENT.replace("officeDocument", "styles")}" Target="styles.xml"/></Relationships>',
            "word/document.xml": f"{before}<w:document {W}><w:body>{body}</w:body></w:document>",
            "docProps/core.xml": CORE,
            **(more or {}),
        }
    )


def paragraph(text: str, style: str = "") -> str:
    head = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{head}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def xlsx(sheets: Mapping[str, str], more: Mapping[str, str | bytes] | None = None) -> bytes:
    """An Excel file with the XML of the rows of each sheet."""
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    office = DOCUMENT.rpartition("/")[0]
    names = "".join(f'<sheet name="{name}" sheetId="{at}" r:id="r{at}"/>' for at, name in enumerate(sheets, 1))
    links = "".join(
        f'<Relationship Id="r{at}" Type="{office}/worksheet" Target="worksheets/sheet{at}.xml"/>'
        for at in range(1, len(sheets) + 1)
    )
    return zipped(
        {
            "_rels/.rels": f'<Relationships xmlns="{RELS}"><Relationship Id="r1" Type="{DOCUMENT}"'
            ' Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook {space} xmlns:r="{office}"><sheets>{names}</sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{RELS}">{links}</Relationships>',
            **{
                f"xl/worksheets/sheet{at}.xml": f"<worksheet {space}><sheetData>{rows}</sheetData></worksheet>"
                for at, rows in enumerate(sheets.values(), 1)
            },
            **(more or {}),
        }
    )


def row(number: int, *cells: str | float) -> str:
    return (
        f'<row r="{number}">'
        + "".join(
            f'<c r="{chr(65 + at)}{number}"><v>{cell}</v></c>'
            if not isinstance(cell, str)
            else f'<c r="{chr(65 + at)}{number}" t="inlineStr"><is><t>{cell}</t></is></c>'
            for at, cell in enumerate(cells)
        )
        + "</row>"
    )


def opened(body: str, mime: str = "text", more: Mapping[str, str | bytes] | None = None) -> bytes:
    """An OpenDocument file: `text`, `presentation` or `spreadsheet`."""
    base = "urn:oasis:names:tc:opendocument:xmlns"
    spaces = " ".join(f'xmlns:{one}="{base}:{name}:1.0"' for one, name in (
        ("office", "office"), ("text", "text"), ("draw", "drawing"), ("table", "table"),
    ))  # fmt: skip
    return zipped(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{mime}",
            "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="{base}:manifest:1.0"/>',
            "content.xml": f"<office:document-content {spaces}><office:body><office:{mime}>{body}"
            f"</office:{mime}></office:body></office:document-content>",
            **(more or {}),
        }
    )


def epub(chapters: Mapping[str, str], more: Mapping[str, str | bytes] | None = None) -> bytes:
    """A book with these XHTML files as chapters, in their order."""
    items = "".join(f'<item id="c{at}" href="{name}" media-type="a/b"/>' for at, name in enumerate(chapters))
    spine = "".join(f'<itemref idref="c{at}"/>' for at in range(len(chapters)))
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
            "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
            "<metadata><dc:title>The Herbal</dc:title><dc:creator>Ada Lovelace</dc:creator></metadata>"
            f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
            **{f"OEBPS/{name}": text for name, text in chapters.items()},
            **(more or {}),
        }
    )
