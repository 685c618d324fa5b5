"""How names of files compare: in rules, which err towards more, and in links, which do not. Pure.

The language of rules is one for `vault.exclude` and `privacy.local_only`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

CORRECT = "Correct or remove it in config.toml."

_TOKEN = re.compile(r"\[([!^]?)([^\[\]]+)\]|(.)", re.DOTALL)
_ALL_BELOW = re.compile(r"(?:/+\*\*)+/*\Z")
_ENDS_HERE = r"(?:/|\Z)"


def folded(text: str) -> str:
    """A path or rule as it is compared: in any case and Unicode form. What a rule must cover errs towards more."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


def fold_name(text: str) -> str:
    """A name as links compare it: composed and without case, letter by letter, so that no two letters become one.

    ß is not ss, ﬁ not fi, ı and İ not i, ſ not s, µ not μ.
    """
    if text.isascii():
        return text.lower()
    # two forms of sigma are one letter; what has no small form of one letter stays
    small = (low if len(low := char.lower()) == 1 else char for char in unicodedata.normalize("NFC", text))
    return unicodedata.normalize("NFC", "".join(small)).replace("ς", "σ")


@lru_cache(maxsize=1024)
def path_rule(rule: str, *, anchored: bool = False, end: str = _ENDS_HERE) -> re.Pattern[str] | None:
    """A rule as an expression over a `folded` path, a folder's with "/" at its end; None if the rule says nothing.

    Whole names match, never parts of one. Without a slash before its end a rule fits at any depth, otherwise from the
    vault's root. A backslash is a slash. A name that holds `*`, `?` or `[…]` is meant literally as well.
    """
    text = folded(rule.strip())
    forms = {_source(text.replace("\\", "/"), _glob, anchored, end), _source(text, re.escape, anchored, end)} - {""}
    for source in ("|".join(sorted(forms)), _source(text, re.escape, anchored, end)):
        try:
            # python's own table of cases knows a few letters that folding keeps apart
            return re.compile(source, re.IGNORECASE) if source else None
        except (re.error, OverflowError, RecursionError):
            continue  # such as [z-a]: the name alone
    return None


def _source(text: str, as_expression: Callable[[str], str], anchored: bool, end: str) -> str:
    below = _ALL_BELOW.search(text)
    names = [name for name in text[: below.start() if below else None].split("/") if name not in ("", ".")]
    if not names:
        return ""
    anchored = anchored or bool(below) or len(names) > 1 or text.startswith("/")
    # what has an ending may be a note, whatever stands behind it
    only_folders = bool(below) or (text.endswith("/") and "." not in names[-1])
    above = "".join("(?:[^/]+/)*" if name == "**" else as_expression(name) + "/" for name in names[:-1])
    return (r"\A" if anchored else r"(?:\A|/)") + above + as_expression(names[-1]) + ("/" if only_folders else end)


def _glob(name: str) -> str:
    """A name with `*`, `?` and `[…]` as a regular expression."""
    out = ""
    for negated, members, char in _TOKEN.findall(name):
        if members:
            out += "[" + ("^/" if negated else "") + re.escape(members).replace(r"\-", "-") + "]"
        else:
            out += {"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char))
    return out


def is_sound(rule: str) -> bool:
    """Whether a rule can match anything: it names something, relative to the vault."""
    names = rule.replace("\\", "/").split("/")
    return path_rule(rule) is not None and not rule.strip().startswith(("/", "~")) and ".." not in names


def idle_rules(
    exclude: Sequence[str], local_only: Sequence[str], paths: Iterable[str], has_tag: Callable[[str], bool]
) -> list[str]:
    """A sentence for each rule that matches nothing. `paths` are all there are, a folder's with "/" at its end.

    `has_tag` says whether any note has this tag, which is `folded`, or one below it.
    """
    every = [folded(path) for path in paths]

    def matches(rule: str) -> bool:
        expression = path_rule(rule)
        return expression is not None and any(map(expression.search, every))

    found = [f'vault.exclude: the rule "{rule}" matches nothing in the vault.' for rule in exclude if not matches(rule)]
    for rule in local_only:
        tag = tag_of(rule)
        if not matches(rule) and not (tag and has_tag(tag)):
            found.append(f'privacy.local_only: the rule "{rule}" matches nothing in the vault, so it protects nothing.')
    return found


def tag_of(rule: str) -> str:
    """The tag that a rule of `privacy.local_only` names, `folded`; "" if it names none."""
    rule = folded(rule.strip())
    return rule.strip("#/ ") if rule.startswith("#") else ""


def is_at_or_below(tag: str, top: str) -> bool:
    """Whether a tag as it stands in a note is `top`, which is `folded`, or one below it."""
    return f"{folded(tag)}/".startswith(f"{top}/")
