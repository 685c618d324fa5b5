"""A question in one language about notes in another, with the multilingual model and without a chat model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tarsd.errors import EXIT_OK
from tests.conftest import Daemon
from tests.support.multilingual import needed
from tests.support.stub import Run

pytestmark = needed

NOTES = {
    "Sourdough.md": "Feed the starter with rye flour every morning, and bake when it has doubled.",
    "Bicycle.md": "The rear brake squeals when it rains. Sand the pads and clean the rim with alcohol.",
    "Boiler.md": "The gauge of the boiler should read 1.2 bar when it is cold. Refill it with the grey hose.",
    "Bees.md": "The hive by the wall swarmed in May. The new queen is marked with a blue dot.",
    "Taxes.md": "The declaration is due at the end of July. Receipts lie in the green folder.",
    "Guitar.md": "Change the strings before the concert, and tune the lowest one down to D.",
    "Ferry.md": "The ferry to the island leaves at half past six from pier nine.",
    "Tomatoes.md": "Pinch out the side shoots and water the tomatoes only at the root.",
    "Backup.md": "The disk in the drawer is copied every Sunday night with rsync.",
    "Sleep.md": "After a night shift I sleep best with dark curtains and without coffee after four.",
    "Passport.md": "The passport of Ida expires next autumn; the office needs two photographs.",
    "Knitting.md": "The blue jumper takes nine balls of merino on needles of four millimetres.",
    "Piano.md": "The piano tuner comes twice a year and tunes it to 442 hertz.",
}
ASKED = {
    "Welchen Druck soll der Heizkessel im kalten Zustand haben?": "Boiler.md",
    "Wie sollte ich die Tomaten gießen?": "Tomatoes.md",
    "Во сколько отправляется паром на остров?": "Ferry.md",
    "夜班之后怎样才能睡得好？": "Sleep.md",
    "¿Cuándo caduca el pasaporte de Ida?": "Passport.md",
    "自転車の後ろブレーキが鳴くときはどうする？": "Bicycle.md",
}
UNKNOWN = (
    "Wie viele Einwohner hatte Karthago im dritten Jahrhundert?",
    "Какой командой руководил тренер в финале чемпионата?",
    "哪位物理学家发现了中子？",
)


def test_an_answer_without_a_model_quotes_the_note_in_another_language(
    run: Run, daemon: Callable[..., Daemon], vault: Path, e5_folder: Path
) -> None:
    for name, text in NOTES.items():
        (vault / name).write_text(f"{text}\n")
    one = daemon(TARSD_EMBEDDING="e5")
    one.wait(lambda status: status["embedding"]["state"] == "complete" and not status["behind"])
    for question, path in ASKED.items():
        code, out, _ = run("ask", question)
        assert code == EXIT_OK
        assert out.startswith(f"> {NOTES[path]}\n"), (question, out)
    for question in UNKNOWN:
        reply = json.loads(run("search", question, "--json")[1])
        assert all(hit["relevance"] < 0.5 for hit in reply["hits"]), question
