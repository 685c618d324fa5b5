"""The language of rules: `vault.exclude` and `privacy.local_only` read every rule alike, and err towards more."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsd.app import status
from tarsd.config import PrivacySettings, load
from tarsd.config.rules import idle_rules, is_sound
from tarsd.doctor.vault import idle_sentences
from tarsd.errors import ConfigError
from tarsd.parse import parse
from tarsd.parse.access import is_local_only
from tarsd.vault import Vault
from tarsd.vault.names import Rules
from tests.support.engine import Engine, until, write


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def both(rule: str, path: str) -> set[bool]:
    """Whether each of the two settings covers a note."""
    return {Rules([rule]).hit(path) is not None, is_local_only(path, parse("", path), (rule,))}


@pytest.mark.parametrize(
    ("rule", "covered", "free"),
    [
        ("Private/", ["Private/a.md", "private/b/a.md", "Public/Private/a.md"], ["Private.md", "Privately/a.md"]),
        ("Glob/**", ["Glob/a.md", "glob/b/c/a.md"], ["Globe/a.md", "x/Glob/a.md"]),
        ("Glob/**/", ["Glob/a.md", "Glob/b/a.md"], ["a.md"]),
        ("Glob/*", ["Glob/a.md", "Glob/b/a.md"], ["a/Glob/a.md"]),
        ("Glob/**/*.md", ["Glob/a.md", "Glob/b/c/a.md"], ["Glob/a.canvas"]),
        ("**/Deep/**", ["Deep/a.md", "x/y/Deep/z/a.md"], ["Deeper/a.md"]),
        ("./Dot/", ["Dot/a.md", "x/Dot/a.md"], ["a.md"]),
        ("././Dot/./Sub//", ["Dot/Sub/a.md"], ["Dot/a.md"]),
        (".\\Back\\Slash\\", ["Back/Slash/a.md"], ["Back/a.md"]),
        ("Back\\Slash", ["Back/Slash/a.md", "Back\\Slash/a.md"], ["BackSlash/a.md"]),
        (nfd("Privé/"), ["Privé/a.md", nfd("Privé/a.md"), "PRIVÉ/a.md"], ["Prive/a.md"]),
        ("Übung", [nfd("übung/a.md"), "x/ÜBUNG/a.md"], ["Ubung/a.md"]),
        ("STRASSE/", ["Straße/a.md"], ["Stra/a.md"]),
        ("[2024] Diary/", ["[2024] Diary/a.md"], ["Diary/a.md"]),
        ("What? Why*/", ["What? Why*/a.md", "Whats Whys/a.md"], ["What/a.md"]),
        ("[z-a]/", ["[z-a]/a.md"], ["z/a.md"]),
        ("Journal 202[34]/", ["Journal 2023/a.md"], ["Journal 2025/a.md"]),
        ("Note.md/", ["Note.md", "x/note.md"], ["Note.md.md"]),
        ("Work/Plan.md", ["Work/Plan.md", "work/plan.md/a.md"], ["x/Work/Plan.md"]),
        ("*.secret.md", ["a.secret.md", "x/b.Secret.md"], ["secret.md"]),
        ("#inbox/", ["#inbox/a.md"], ["inbox/a.md"]),
        ("  Spaced /", ["Spaced /a.md"], ["Spaced/a.md"]),
        ("*/", ["a/b.md"], ["b.md"]),
    ],
)
def test_both_settings_read_a_rule_alike(rule: str, covered: list[str], free: list[str]) -> None:
    assert {path for path in covered if both(rule, path) != {True}} == set()
    assert {path for path in free if both(rule, path) != {False}} == set()


NAMES = st.text("aAbß.*?[]-! \\éİ", min_size=1, max_size=4).map(lambda name: name.strip() or "a")


@given(st.lists(NAMES, min_size=1, max_size=3), st.sampled_from(["", "/"]), st.lists(NAMES, max_size=2))
def test_what_a_rule_covered_as_the_beginning_of_paths_it_covers(names: list[str], end: str, rest: list[str]) -> None:
    """Whatever else a rule means, a note at or below the very place that it spells is covered, in any form."""
    if any(name in (".", "..") for name in names):
        return
    path = "/".join([*names, *rest]) + (".md" if rest else "")
    for spelled in (path, path.upper(), unicodedata.normalize("NFD", path)):
        assert is_local_only(spelled, parse("", "a.md"), ("/".join(names) + end,)) or (end and not rest)


@pytest.mark.parametrize("tag", ["#privé", nfd("#privé"), "#PRIVÉ/"])
@pytest.mark.parametrize("text", ["---\ntags: [privé]\n---\n", nfd("---\ntags: [privé/x]\n---\n"), nfd("#privé\n")])
def test_a_tag_is_known_in_any_form(tag: str, text: str) -> None:
    assert is_local_only("a.md", parse(text, "a.md"), (tag,), text)


@pytest.mark.parametrize("rule", ["", " ", "/", "./", "/etc", "~/x", "..", "..\\x", "a/../b", "/**"])
def test_a_rule_that_can_match_nothing_is_a_fault(rule: str, tmp_path: Path) -> None:
    assert not is_sound(rule)
    (tmp_path / "v").mkdir()
    for key in ("[vault]\nexclude", "[privacy]\nlocal_only"):
        (tmp_path / "config.toml").write_text(f"{key} = ['{rule}']\n")
        with pytest.raises(ConfigError, match="cannot match anything"):
            load(vault=tmp_path / "v", env={"TARSD_HOME": str(tmp_path)})


IDLE = ["Privat/", "Glob/**", "{a,b}/", "#privat"]


def test_a_rule_that_matches_nothing_is_said(tmp_path: Path) -> None:
    """One for a folder without notes, or for what another rule leaves out, matches."""
    root = tmp_path / "v"
    write(root, "Private/Deep/a.md", "#secret/deep")
    write(root, "attachments/x.png", "")
    write(root, "Scans/x.pdf", "")
    rules = ["Private/", "Deep/", "attachments/", "Scans/*.pdf", *IDLE]
    write(tmp_path, "config.toml", f"[vault]\nexclude = {rules}\n[privacy]\nlocal_only = {[*rules, '#secret']}\n")
    said = idle_sentences(load(vault=root, env={"TARSD_HOME": str(tmp_path)}))
    assert [sentence.split('"')[1] for sentence in said] == 2 * IDLE


def test_the_status_names_rules_that_match_nothing(tmp_path: Path) -> None:
    privacy = PrivacySettings(local_only=("Private/", "Privat/", "#secret", "#secrets"))
    with Engine(tmp_path, exclude=("Templates/",), privacy=privacy) as engine:
        write(engine.vault, "Private/a.md", "of mine")
        write(engine.vault, "b.md", "#secret of mine")
        engine.watch()
        said = [entry["reason"] for entry in engine.app.status()["problems"]]
        assert [sentence.split('"')[1] for sentence in said] == ["Templates/", "Privat/", "#secrets"]


def test_the_first_pass_is_over_when_what_it_leaves_out_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A status with nothing behind has all counts: none stands between the pass and the look at what is left out."""
    seen: list[int] = []
    real = status._notes_in

    def looked_into(folder: Path) -> int:
        seen.append(engine.app.status()["behind"])
        return real(folder)

    monkeypatch.setattr(status, "_notes_in", looked_into)
    with Engine(tmp_path, exclude=("Templates/",)) as engine:
        for name in ("a", "b", "c"):
            write(engine.vault, f"Templates/{name}.md", "left out")
        engine.watch()
        until(lambda: engine.app.status()["behind"] == 0)
        assert seen[0] == 1 and engine.app.status()["counts"]["excluded"] == 3


def test_no_rule_is_called_idle_that_matches_anything() -> None:
    assert idle_rules(["a/", "b"], ["#t", "#u", "a/"], ["A/", "x/b"], lambda tag: tag == "t") == [
        'privacy.local_only: the rule "#u" matches nothing in the vault, so it protects nothing.'
    ]


def test_names_are_all_there_is(tmp_path: Path) -> None:
    for path in ("a/b.md", "c.png", ".hidden/d.md"):
        write(tmp_path, path, "")
    assert sorted(Vault(tmp_path, exclude=["a/"]).names()) == [".hidden/", "a/", "a/b.md", "c.png"]
