"""The vault: whether it is there and can be read, what is in it, and what lies below it. Nothing is written."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tarsd.doctor.finding import Check, Finding, fault, number, ok, skipped, warning
from tarsd.doctor.subject import DoctorContext, quoted

if TYPE_CHECKING:
    from tarsd.config import Config
    from tarsd.vault import Skipped, Vault

PLACES: Final = 3
SCAN_S: Final = 15.0
ACCESS: Final = "System Settings > Privacy & Security > Full Disk Access"


def folder(subject: DoctorContext) -> Finding:
    """Whether the folder can be listed; on macOS, which program has to be allowed to."""
    from tarsd.errors import VaultUnavailable
    from tarsd.vault import Vault

    root = subject.config.vault
    try:
        Vault(root).check()
    except VaultUnavailable as error:
        hint = error.hint
        if "Full Disk Access" in hint:
            hint = f"On macOS, allow {_program(subject)} in {ACCESS}; then: tarsd doctor"
        return fault(error.message, hint, public=error.message.replace(str(root), "the vault"))
    for collection in subject.config.collections:
        Vault(collection.root, collection.name).check()
    subject.readable = True
    more = number(len(subject.config.collections), "further folder")
    return ok(f"{root} can be read{f', and {more}' if subject.config.collections else ''}.", public="It can be read.")


def _program(subject: DoctorContext) -> str:
    """What macOS asks to allow: the program of the service, where there is one."""
    import sys

    from tarsd import services

    arguments = services.service(subject.config.vault_id).arguments()
    return services.allowed_program(arguments[0] if arguments else sys.executable)


def obsidian(subject: DoctorContext) -> Finding:
    """Whether Obsidian has opened the folder before."""
    if os.path.isdir(subject.root / ".obsidian"):
        return ok("It was opened in Obsidian.")
    return ok("It was never opened in Obsidian; any folder of Markdown notes works.")


def notes(subject: DoctorContext) -> Finding:
    """All notes, and what is passed over."""
    from tarsd.vault import Vault
    from tarsd.vault.scan import KEPT

    config = subject.config
    scan = subject.scan = Vault(subject.root, "", config.exclude).scan()
    states = Counter[str](skip.state for skip in scan.skipped)
    left = {"excluded": "excluded by rules", "outside": "links out of the vault", "too_large": "too large"}
    told = [f"{states[state]:,} {what}" for state, what in left.items() if states[state]]
    unreadable = [skip.path for skip in scan.skipped if skip.state in KEPT and not _is_away(skip)]
    if unreadable:
        names = ", ".join(unreadable[:PLACES])
        text = f"{number(len(scan.files), 'note')}; {len(unreadable)} cannot be read"
        return warning(f"{text}: {names}.", "tarsd status shows why.", public=f"{text}.")
    if not scan.files:
        return warning("There are no notes in it.", f"Is {quoted(config.vault)} the right folder?", public="No notes.")
    return ok(f"{', '.join([number(len(scan.files), 'note'), *told])}.")


def rules(subject: DoctorContext) -> Iterator[Finding]:
    """Whether every rule of the settings matches something: one that does not leaves out, or protects, nothing."""
    from tarsd.config.rules import CORRECT

    config = subject.config
    count = len(config.exclude) + len(config.privacy.local_only)
    found = idle_sentences(config) if subject.root and count else []
    for sentence in found:
        yield warning(sentence, CORRECT, public="A rule matches nothing in the vault.")
    if not found:
        yield ok(f"{number(count, 'rule')}, each matches something." if count else "There are none.")


def idle_sentences(config: Config) -> list[str]:
    """A sentence for each rule of the settings that matches nothing. Raises VaultUnavailable."""
    from tarsd.config.rules import idle_rules
    from tarsd.vault import Vault

    vaults = [Vault(config.vault), *(Vault(one.root, one.name) for one in config.collections)]
    paths = [path for vault in vaults for path in vault.names()]
    return idle_rules(config.exclude, config.privacy.local_only, paths, lambda tag: _has_tag(vaults, tag))


def _has_tag(vaults: Sequence[Vault], tag: str) -> bool:
    """Whether any note that can be read has the tag, which is `folded`, or one below it."""
    from tarsd.config.rules import folded, is_at_or_below
    from tarsd.errors import TarsdError
    from tarsd.parse import parse
    from tarsd.vault import decode

    for vault in vaults:
        for info in vault.scan().files.values():
            with contextlib.suppress(TarsdError):
                text = decode(vault.read(info)).text
                if tag in folded(text) and any(is_at_or_below(own, tag) for own in parse(text, info.path).tags):
                    return True
    return False


def languages(subject: DoctorContext) -> Finding:
    """Whether the model that finds notes by meaning reads the languages that they are in, as the daemon sees it."""
    from tarsd.doctor.embedding import languages as looked_at
    from tarsd.doctor.embedding import said_of_languages
    from tarsd.vault import Vault

    config = subject.config
    if subject.hello is not None:
        embedding = subject.status.get("embedding") or {}
        if advice := subject.status.get("advice"):
            return warning(" ".join(advice), public="Many notes are not in English.")
        return ok(f"Notes are found by meaning with {embedding.get('model')}. {embedding.get('auto') or ''}".rstrip())
    share, told = looked_at(Vault(subject.root, "", config.exclude))
    if not told:
        return ok("No note says enough to tell its language.")
    model, helps = said_of_languages(config.embedding.model, share, told)
    if helps:
        return warning(helps[0], public="Many notes are not in English.")
    chosen = "by itself" if config.embedding.model == "auto" else "by the settings"
    return ok(f"{share:.0%} of the passages are not in English; {model} finds them by meaning, chosen {chosen}.")


def downloads(subject: DoctorContext) -> Finding:
    """Notes whose text is in a cloud only."""
    from tarsd.vault.files import DOWNLOAD

    away = [skip for skip in subject.scan.skipped if _is_away(skip)]
    if not away:
        return ok("All notes are on this machine.")
    stubs = sum("iCloud" in skip.reason for skip in away)
    told = f"{stubs} in iCloud, {len(away) - stubs} without their bytes"
    return warning(f"{number(len(away), 'note is', 'notes are')} not downloaded: {told}.", DOWNLOAD)


def _is_away(skip: Skipped) -> bool:
    """Whether a note can be downloaded; a pipe is not here either, and nothing will bring it."""
    from tarsd.vault.files import DOWNLOAD

    return skip.state == "not_downloaded" and skip.hint == DOWNLOAD


def conflicts(subject: DoctorContext) -> Finding:
    """Second versions that a sync tool kept."""
    paths = sorted(skip.path for skip in subject.scan.skipped if skip.state == "conflict")
    if not paths:
        return ok("There are no second versions from sync tools.")
    text = f"{number(len(paths), 'second version')} from a sync tool"
    return warning(f"{text}: {', '.join(paths[:PLACES])}.", "Compare them, then delete them.", public=f"{text}.")


def memory(subject: DoctorContext) -> Finding:
    """Whether tars may write into its own folder; nothing is tried."""
    config = subject.config
    place = subject.root / config.memory_folder
    existing = next(folder for folder in (place, *place.parents) if folder.exists())
    if os.access(existing, os.W_OK | os.X_OK):
        what = "can be written to" if existing == place else "does not exist yet and can be created"
        return ok(f"{config.memory_folder}/ {what}.", public=f"It {what}.")
    if not (config.memory.enabled or config.memory.session_notes):
        return skipped("Nothing is to be written, by the settings.")
    text = "cannot be written to: nothing is remembered, and no conversation is kept as a note."
    return warning(f"{config.memory_folder}/ {text}", f"chmod u+rwx {quoted(existing)}", public=f"It {text}")


def filesystem(subject: DoctorContext) -> Finding:
    """The vault's file system: whether it reports changes, and whether names are case-sensitive."""
    from tarsd.watch.filesystem import filesystem_of, is_silent

    root = subject.root
    kind = filesystem_of(root) or "an unknown file system"
    told = f"On {kind}"
    if (case := _tells_case(root)) is not None:
        told += f", where A and a are {'two names' if case else 'one name'}"
    if is_silent(kind):
        mode = subject.config.watch.mode
        hint = 'Set mode = "polling" under [watch].' if mode == "events" else "It is checked every few seconds."
        return warning(f"{told}; changes from other machines are not reported.", hint)
    return ok(f"{told}.")


def _tells_case(root: Path) -> bool | None:
    """Whether a name in another case is another name; None where nothing is there to try it with."""
    with os.scandir(root) as entries:
        names = {entry.name for entry in entries}
    for name in sorted(names):
        swapped = name.swapcase()
        if swapped != name and swapped not in names:
            return not os.path.lexists(root / swapped)
    return None


CHECKS: Final = (
    Check("Vault", "folder", folder),
    Check("Vault", "Obsidian", obsidian),
    Check("Vault", "notes", notes, SCAN_S),
    Check("Vault", "rules", rules, SCAN_S),
    Check("Vault", "downloads", downloads),
    Check("Vault", "conflicts", conflicts),
    Check("Vault", "own folder", memory),
    Check("Vault", "file system", filesystem, 8.0),
)
