"""Zip files that office programs and books are: opened only when what they unpack to is within bounds."""

from __future__ import annotations

import zipfile
from pathlib import Path

from lxml import etree

from tarsd.extract.pages import NotReadable

MEMBERS, UNPACKED, MEMBER = 20_000, 200_000_000, 100_000_000
"""The most files in one, and the most bytes that all and each of those read may unpack to."""
PROTECTED = "Save a copy without the password."
_PROPERTIES = {"creator": "author", "created": "created", "date": "created", "subject": "subject"}
_HAS_NO_PROPERTIES = etree.fromstring("<none/>")


class Archive:
    """A zip file whose sizes were looked at. Raises NotReadable for a damaged, protected or oversized one."""

    def __init__(self, path: Path) -> None:
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise NotReadable(
                "The file is damaged: its end is missing or wrong.", "Get it again, or save it anew with its program."
            ) from error
        members = self._zip.infolist()
        if len(members) > MEMBERS or sum(one.file_size for one in members) > UNPACKED:
            raise NotReadable("The file unpacks to far more than it may.", "Leave it out, or split it.")
        if any(one.flag_bits & 1 for one in members):
            raise NotReadable("The file is protected by a password.", PROTECTED)
        self.names = frozenset(one.filename for one in members)

    def read(self, name: str) -> bytes:
        """One file in it; KeyError when there is none of that name."""
        with self._zip.open(name) as file:
            data = file.read(MEMBER + 1)
        if len(data) > MEMBER:
            raise NotReadable("The file unpacks to far more than it may.", "Leave it out, or split it.")
        return data

    def xml(self, name: str) -> etree._Element:
        """One of its XML files, without what that names outside of itself."""
        return parsed(self.read(name))


def parsed(data: bytes) -> etree._Element:
    """XML, of which no entity is put in and nothing is loaded; what is wrong in it is passed over."""
    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, recover=True, huge_tree=False)
    root = etree.fromstring(data, parser)
    return _HAS_NO_PROPERTIES if root is None else root


def about(archive: Archive, name: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The title and properties of the Dublin Core elements in one of its files."""
    if name not in archive.names:
        return "", ()
    title, found = "", []
    for element in archive.xml(name).iter(etree.Element):
        key, value = etree.QName(element).localname, " ".join((element.text or "").split())
        key = {"creation-date": "created"}.get(key, key)
        if value and key == "title" and not title:
            title = value
        elif value and key in _PROPERTIES:
            name = _PROPERTIES[key]
            found.append((name, value[:10] if name == "created" else value))
    return title, tuple(dict.fromkeys(found))
