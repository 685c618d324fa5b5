"""The commands against a stub that plays the daemon: what they ask, print, and end with."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import tarsd
from tarsd import cli, files
from tarsd.cli import common
from tarsd.cli.progress import bar, tenths
from tarsd.cli.status import glance
from tarsd.cli.terminal import Terminal
from tarsd.embed.minilm import MODEL_SHA256
from tarsd.embed.table import VECTORS_SHA256
from tarsd.errors import EXIT_CONFIG, EXIT_NO_DAEMON, EXIT_NOTHING, EXIT_OK, EXIT_REFUSED, EXIT_USAGE
from tests.support.stub import HIT, Run, Stub

# Finding


def test_search_prints_places_passages_and_reasons(run: Run, stub: Stub, vault: Path) -> None:
    stub.replies["POST /v1/search"] = {"hits": [HIT], "behind": 0, "took_ms": 3}
    code, out, err = run("search", "gauge", "pressure")
    assert (code, err) == (EXIT_OK, "")
    assert out.splitlines()[0] == f"{vault}/House/Boiler.md:12", "the line that matched, not the start of the passage"
    assert re.search(r"^  Boiler › Pressure +relevant 0\.83$", out, re.M)
    assert "The gauge should read 1.2 bar when cold." in out
    assert "heading; words: gauge" in out
    assert ("POST /v1/search", {"query": "gauge pressure", "mode": "hybrid", "limit": 10}) in stub.asked


@pytest.mark.parametrize(("command", "mode"), [("search", "hybrid"), ("sgrep", "fts"), ("svec", "vec")])
def test_options_reach_the_daemon(run: Run, stub: Stub, command: str, mode: str) -> None:
    stub.replies["POST /v1/search"] = {"hits": [HIT]}
    assert run(command, "tea", "--limit", "3", "--min-score", "0.5")[0] == EXIT_OK
    assert stub.asked[0][1] == {"query": "tea", "mode": mode, "limit": 3, "min_score": 0.5}


def test_a_query_may_begin_with_a_minus_after_two_of_them(run: Run, stub: Stub) -> None:
    stub.replies["POST /v1/search"] = {"hits": [HIT]}
    assert run("search", "--mode", "fts", "--", "-coffee", "tea")[0] == EXIT_OK
    assert stub.asked[0][1]["query"] == "-coffee tea"


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "-coffee"], ["search", "tea", "-new"], ["sgrep", "--coffee"], ["svec", "-x"], ["ask", "-und"],
        ["why", "Tea.md", "-milk"], ["memory", "remember", "-tee-"], ["memory", "forget", "-ä"],
    ],
)  # fmt: skip
def test_words_that_begin_with_a_minus_are_told_how_to_be_words(run: Run, stub: Stub, arguments: list[str]) -> None:
    code, _, err = run(*arguments)
    assert code == EXIT_USAGE
    command = err.strip().rpartition("put -- before the words: tarsd ")[2]
    assert [one for one in shlex.split(command) if one != "--"] == arguments
    assert run(*shlex.split(command))[0] != EXIT_USAGE


@pytest.mark.parametrize(
    "arguments",
    [["status", "-coffee"], ["search", "tea", "--limit", "x"], ["search", "-n"], ["ask", "--", "x", "--note"]],
)
def test_what_is_no_word_is_no_reason_for_that(run: Run, stub: Stub, arguments: list[str]) -> None:
    assert "before the words" not in run(*arguments)[2]


def test_json_is_the_reply_unchanged(run: Run, stub: Stub) -> None:
    reply = {"hits": [HIT], "behind": 2, "degraded": "x", "took_ms": 3, "new": {"a": None}}
    stub.replies["POST /v1/search"] = reply
    code, out, err = run("search", "tea", "--json")
    assert (code, json.loads(out), err) == (EXIT_OK, reply, "")


def test_nothing_found_is_said_and_ends_with_1(run: Run, stub: Stub) -> None:
    stub.replies["POST /v1/search"] = {"hits": [], "behind": 1, "degraded": "The model is down."}
    code, out, err = run("search", "tea")
    assert (code, out) == (EXIT_NOTHING, "Nothing found for 'tea'.\n")
    assert "The index is behind: 1 changed note not indexed yet." in err
    assert "The model is down." in err
    code, out, _ = run("search", "tea", "--json")
    assert (code, json.loads(out)["hits"]) == (EXIT_NOTHING, [])


def test_weak_hits_are_called_the_closest(run: Run, stub: Stub) -> None:
    stub.replies["POST /v1/search"] = {"hits": [{**HIT, "relevance": 0.2}] * 2}
    code, out, _ = run("search", "gauge")
    assert (code, out.splitlines()[0]) == (EXIT_OK, "No good match. Closest:")
    assert "silver key" not in out, "one line of each is enough"


def test_places_are_relative_below_the_current_folder(
    run: Run, stub: Stub, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.replies["POST /v1/search"] = {"hits": [HIT]}
    monkeypatch.chdir(vault)
    assert run("search", "key")[1].startswith("House/Boiler.md:13\n")


def test_related_takes_a_file_of_this_machine(run: Run, stub: Stub, vault: Path) -> None:
    (vault / "Note.md").write_text("x")
    stub.replies["POST /v1/related"] = {"hits": [HIT]}
    assert run("related", str(vault / "Note.md"))[0] == EXIT_OK
    assert run("related", "Other.md", "-n", "2")[0] == EXIT_OK
    asked = [body for route, body in stub.asked if route == "POST /v1/related"]
    assert asked == [{"path": "Note.md", "limit": 10}, {"path": "Other.md", "limit": 2}]


def test_why_tells_the_steps(run: Run, stub: Stub) -> None:
    steps = [{"step": "disk", "ok": True, "detail": "It is there."}, {"step": "x", "ok": False, "detail": "No\x1b."}]
    stub.replies["POST /v1/why"] = {"steps": steps, "verdict": "Not found."}
    assert run("why", "a.md", "tea", "pot")[:2] == (EXIT_OK, "✓ It is there.\n✗ No␛.\nNot found.\n")
    assert stub.asked[-1] == ("POST /v1/why", {"path": "a.md", "query": "tea pot"})


# What could go wrong


def test_no_daemon_ends_with_3_and_how_to_start_it(run: Run) -> None:
    code, out, err = run("search", "tea")
    assert (code, out) == (EXIT_NO_DAEMON, "")
    assert "No daemon is running." in err
    assert "tarsd run" in err
    code, out, _ = run("status", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (EXIT_NO_DAEMON, "no_daemon")


def test_the_daemons_errors_are_told_in_its_words(run: Run, stub: Stub) -> None:
    error = {"error": {"code": "bad_request", "message": "Unbalanced \x1b]0;quote.", "hint": "Close it."}}
    stub.replies["POST /v1/search"] = (422, error)
    code, out, err = run("search", '"tea')
    assert (code, out, err) == (EXIT_USAGE, "", "Unbalanced ␛]0;quote.\nClose it.\n")


@pytest.mark.parametrize(
    "arguments",
    [["search"], ["search", "a", "--limit", "0"], ["search", "a", "--mode", "x"], ["nonsense"], ["why", "a.md"]],
)
def test_wrong_usage_ends_with_2(run: Run, arguments: list[str]) -> None:
    code, _, err = run(*arguments)
    assert code == EXIT_USAGE
    assert "Usage:" in err


def test_a_bad_config_ends_with_78_and_all_faults(run: Run, home: Path) -> None:
    (home / "config.toml").write_text('[vault]\npath = "~/N"\n[chunk]\ntokens = 1\n[watch]\nmode = "x"\n')
    code, out, err = run("config", "check")
    assert (code, out) == (EXIT_CONFIG, "")
    assert "2 errors" in err
    assert f"{home}/config.toml:4: chunk.tokens" in err
    assert f"{home}/config.toml:6: watch.mode" in err
    assert run("run")[0] == EXIT_CONFIG
    code, out, _ = run("config", "check", "--json")
    assert (code, len(json.loads(out)["error"]["problems"])) == (EXIT_CONFIG, 2)


def test_the_reader_of_a_pipe_may_go_away(stub: Stub) -> None:
    stub.replies["POST /v1/search"] = {"hits": [HIT] * 200}
    code = "from tarsd.cli import main; main(['search', 'tea'])"
    script = f'"{sys.executable}" -c "{code}" | head -n 1; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def test_a_terminal_without_unicode_gets_question_marks(stub: Stub) -> None:
    stub.replies["POST /v1/search"] = {"hits": [{**HIT, "text": "Tee mit Zitrone 茶"}]}
    done = subprocess.run(
        [sys.executable, "-c", "from tarsd.cli import main; main(['search', 'Tee'])"],
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )
    assert (done.returncode, done.stderr) == (EXIT_OK, b"")
    assert b"Tee mit Zitrone ?" in done.stdout


def test_a_query_of_any_bytes_is_sent_as_text(stub: Stub) -> None:
    stub.replies["POST /v1/search"] = {"hits": [HIT]}
    command: list[str | bytes] = [sys.executable, "-c", "from tarsd.cli import main; main()", "search", b"a\xff\xfeb"]
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == EXIT_OK
    assert stub.asked[0][1]["query"] == "a\ufffd\ufffdb"


# Looking after the index

STATUS: dict[str, Any] = {
    "vault": {"id": "x", "name": "Notes", "path": "/V"},
    "watch": {"state": "events"},
    "counts": {"notes": 6571, "chunks": 24103, "pending": 0, "skipped": 0, "failed": 0, "excluded": 12},
    "behind": 0,
    "embedding": {"model": "minilm", "state": "embedding", "done": 6000, "remaining": 18103},
    "chat": {"model": "extractive", "state": "ready"},
    "problems": [{"path": "a.md", "line": 3, "reason": "Not a date.", "hint": "Write 2026-01-31."}],
    "process": {"pid": 7, "version": "0.1.0", "uptime_s": 11520, "rss_mb": 143.2},
}


def test_status_is_read_at_a_glance(run: Run, stub: Stub) -> None:
    stub.replies["GET /v1/status"] = STATUS
    code, out, _ = run("status")
    assert code == EXIT_OK
    assert out.splitlines()[0] == "● Up to date · 6,571 notes · 24,103 passages · 1 problem"
    assert "24 % (6,000 of 24,103 passages; words and the instant table cover the rest)" in out
    assert "12 excluded" in out
    assert "pid 7, up 3 h 12 min, 143 MB" in out
    assert "  Not a date.\n    Write 2026-01-31.\n    a.md:3\n" in out


@pytest.mark.parametrize(
    ("http", "shown"),
    [
        ({"enabled": False, "url": "", "state": "off", "reason": ""}, None),
        (
            {"enabled": True, "url": "http://127.0.0.1:8428", "state": "listening", "reason": ""},
            "http://127.0.0.1:8428",
        ),
        ({"enabled": True, "url": "", "state": "failed", "reason": "Port 80 is taken."}, "failed · Port 80 is taken."),
    ],
)
def test_status_says_where_other_machines_reach_it(
    run: Run, stub: Stub, http: dict[str, Any], shown: str | None
) -> None:
    stub.replies["GET /v1/status"] = {**STATUS, "http": http}
    _, out, _ = run("status")
    rows = [line.split(None, 1)[1] for line in out.splitlines() if line.startswith("  Network")]
    assert rows == ([shown] if shown else [])


@pytest.mark.parametrize(
    ("change", "headline"),
    [
        ({"behind": 12}, "● Indexing, 12 to go ·"),
        (
            {"watch": {"state": "waiting", "reason": "not mounted", "hint": "Mount it."}, "behind": 1},
            "● Vault not available ·",
        ),
        ({"counts": {"notes": 1, "chunks": 1}}, "● Up to date · 1 note · 1 passage"),
        ({"counts": {}, "embedding": {}, "chat": {}, "process": {}}, "● Up to date · 0 notes"),
    ],
)
def test_headlines(run: Run, stub: Stub, change: dict[str, Any], headline: str) -> None:
    stub.replies["GET /v1/status"] = {**STATUS, **change}
    code, out, _ = run("status")
    assert code == EXIT_OK
    assert out.startswith(headline)


def test_many_problems_are_cut_unless_all_are_asked_for(run: Run, stub: Stub) -> None:
    problems = [{**STATUS["problems"][0], "path": f"{number}.md"} for number in range(25)]
    stub.replies["GET /v1/status"] = {**STATUS, "problems": problems}
    out = run("status")[1]
    assert "25 problems\n  Not a date." in out
    assert "… and 20 more: tarsd status --all" in out
    assert run("status", "--all")[1].count(".md:3") == 25


def test_the_same_problem_of_a_note_is_told_once(run: Run, stub: Stub) -> None:
    problems = [{**STATUS["problems"][0], "line": number} for number in (3, 7, 9)]
    stub.replies["GET /v1/status"] = {**STATUS, "problems": problems}
    out = run("status")[1]
    assert "1 problem\n" in out
    assert "    a.md:3, 7, 9\n" in out


def test_the_same_list_of_notes_is_told_once_then_counted(run: Run, stub: Stub) -> None:
    kinds = [{"reason": "Not a date."}, {"reason": "Not a number."}, {"reason": "Twice."}]
    paths = [f"{number}.md" for number in range(7)]
    problems = [
        {**kind, "path": path} for kind in kinds for path in (paths if kind["reason"] != "Twice." else paths[:2])
    ]
    stub.replies["GET /v1/status"] = {**STATUS, "problems": problems}
    out = run("status")[1]
    assert "16 problems" in out
    assert out.count("    0.md\n") == 2 and out.count("    4.md\n") == 1
    assert "  Not a number.\n    the same 7 as above\n" in out
    assert run("status", "--all")[1].count("    6.md\n") == 2


def test_a_reason_that_is_among_the_problems_is_told_there_alone(run: Run, stub: Stub) -> None:
    away, embedding = "The vault is not there.", "Ollama does not answer."
    stub.replies["GET /v1/status"] = {
        **STATUS,
        "watch": {"state": "waiting", "reason": away, "hint": "Connect it."},
        "embedding": {"model": "ollama:x", "state": "unreachable", "reason": embedding, "hint": "Start it."},
        "problems": [
            {"path": "", "reason": away, "hint": "Connect it."},
            {"path": "", "reason": embedding, "hint": "Start it."},
        ],
    }
    out = run("status")[1]
    assert out.startswith("● Vault not available")
    for text in (away, embedding, "Connect it.", "Start it."):
        assert out.count(text) == 1, out
    stub.replies["GET /v1/status"] |= {"problems": []}
    assert run("status")[1].count(away) == run("status")[1].count(embedding) == 1


def test_advice_stands_below_what_it_is_about(run: Run, stub: Stub) -> None:
    stub.replies["GET /v1/status"] = {**STATUS, "advice": ["Most notes are not in English."]}
    rows = run("status")[1].splitlines()
    at = next(number for number, row in enumerate(rows) if row.startswith("  Meaning"))
    assert rows[at + 1].strip() == "Most notes are not in English."


def test_the_table_is_complete_whatever_it_cannot_read(run: Run, stub: Stub) -> None:
    table = {"model": "table", "state": "ready", "done": 5, "remaining": 0, "not_read": 2}
    stub.replies["GET /v1/status"] = {**STATUS, "embedding": table}
    code, out, err = run("status", "--wait")
    assert (code, err) == (EXIT_OK, "")
    assert "table, complete · 2 passages in other scripts: word search only\n" in out
    assert "serve the rest" not in out


def test_waiting_ends_when_all_is_done(run: Run, stub: Stub) -> None:
    embedded = {"model": "minilm", "state": "ready", "done": 9, "remaining": 0}
    steps: Iterator[dict[str, Any]] = iter([{"behind": 5}, {"behind": 2}, {"behind": 0}, {"embedding": embedded}])
    stub.replies["GET /v1/status"] = lambda: {**STATUS, **next(steps)}
    code, out, err = run("status", "--wait")
    assert (code, out.splitlines()[0][:12]) == (EXIT_OK, "● Up to date")
    assert "Indexing" in err
    assert "Embedding" in err


def test_reindex_shows_progress_and_a_report(run: Run, stub: Stub, vault: Path) -> None:
    stub.replies["POST /v1/reindex"] = [
        {"type": "progress", "done": 1, "total": 20, "path": "a.md"},
        {"type": "progress", "done": 2, "total": 20, "path": "b.md"},
        {"type": "progress", "done": 20, "total": 20, "path": "c.md"},
        {"type": "report", "added": 3, "changed": 0, "seconds": 1.25},
    ]
    (vault / "Sub").mkdir()
    (vault / "Sub" / "x.md").write_text("x")
    code, out, err = run("reindex", "--full", str(vault), "Sub/x.md")
    assert (code, out) == (EXIT_OK, "3 added in 1.2 s.\n")
    assert err.splitlines() == ["Indexing: 1 of 20", "Indexing: 2 of 20", "Indexing: 20 of 20"]
    assert stub.asked[-1][1] == {"full": True, "paths": [".", "Sub/x.md"]}
    code, out, err = run("reindex", "--json")
    assert (json.loads(out)["added"], err) == (3, "")


def test_a_bar_needs_no_total(capsys: pytest.CaptureFixture[str]) -> None:
    with bar("Indexing") as step:
        step(0, 0, "[red]a.md")
        step(1, 2, "b.md")
    with tenths("Indexing") as step:
        step(0, 0, "")
        step(1, 2, "b.md")
    assert capsys.readouterr().err.endswith("Indexing: 0 of 0\n")


def test_stop_waits_until_nobody_listens(run: Run, stub: Stub) -> None:
    def end() -> dict[str, bool]:
        threading.Thread(target=close).start()
        return {"stopping": True}

    def close() -> None:
        stub.shutdown()
        stub.socket.close()

    stub.replies["POST /v1/shutdown"] = end
    assert run("stop")[:2] == (EXIT_OK, "Stopped.\n")


# Asking

SOURCE = {"n": 1, "path": "House/Boiler.md", "title": "Boiler", "heading": "", "start_line": 12, "relevance": 0.8}
TURN = [
    {"seq": 1, "type": "retrieved", "sources": [SOURCE], "relevance": 0.8, "behind": 0},
    {"seq": 2, "type": "token", "text": "Read the "},
    {"seq": 3, "type": "token", "text": "gauge\x1b [1]."},
    {"seq": 4, "type": "done", "text": "Read the gauge [1].", "citations": [SOURCE], "notices": ["The model is down."]},
]


def answer(stub: Stub, events: list[dict[str, Any]]) -> None:
    stub.replies["POST /v1/turns"] = (202, {"turn": "t1"})
    stub.replies["GET /v1/turns/t1/events?after=0"] = events


def test_an_answer_comes_with_its_sources(run: Run, stub: Stub, vault: Path) -> None:
    answer(stub, TURN)
    code, out, err = run("ask", "how", "much", "pressure?", "--note", "a.md", "-c", "mine")
    assert code == EXIT_OK
    assert out.startswith("Read the gauge␛ [1].\n\nSources\n  [1] Boiler")
    assert f"{vault}/House/Boiler.md:12" in out
    assert "The model is down." in err
    body = stub.asked[0][1]
    assert (body["message"], body["conversation"], body["notes"]) == ("how much pressure?", "mine", ["a.md"])


@pytest.mark.parametrize("program", ["tarsd", "tars"])
def test_a_question_may_come_through_a_pipe(run: Run, stub: Stub, program: str) -> None:
    answer(stub, TURN)
    arguments = ["ask"] if program == "tarsd" else []
    assert run(*arguments, program=program, stdin="how much?\n")[0] == EXIT_OK
    assert stub.asked[0][1]["message"] == "how much?"
    assert run(*arguments, program=program, stdin=" \n")[0] == EXIT_USAGE


def test_ask_as_json(run: Run, stub: Stub) -> None:
    answer(stub, TURN)
    code, out, _ = run("how much?", "--json", program="tars")
    reply = json.loads(out)
    assert (code, reply["text"], reply["citations"], reply["turn"]) == (EXIT_OK, "Read the gauge [1].", [SOURCE], "t1")


def test_no_source_ends_with_1_and_a_failure_with_4(run: Run, stub: Stub) -> None:
    answer(stub, [{"seq": 1, "type": "retrieved", "sources": []}, {"seq": 2, "type": "done", "text": "Nothing."}])
    assert run("ask", "x")[0] == EXIT_NOTHING
    failed = {"seq": 1, "type": "failed", "error": {"code": "c", "message": "The model is gone.", "hint": "Wait."}}
    answer(stub, [failed])
    code, _, err = run("ask", "x")
    assert (code, err) == (EXIT_REFUSED, "The model is gone.\nWait.\n")


def test_an_answer_that_is_cut_goes_on_where_it_was(run: Run, stub: Stub) -> None:
    answer(stub, TURN[:2])
    stub.replies["GET /v1/turns/t1/events?after=2"] = TURN[2:]
    code, out, _ = run("ask", "x")
    assert (code, out.count("Read the gauge")) == (EXIT_OK, 1)


def test_an_approval_that_nobody_can_give_is_refused(run: Run, stub: Stub) -> None:
    answer(stub, [{"seq": 1, "type": "approval", "call": "c1", "name": "write"}, *TURN[1:]])
    stub.replies["POST /v1/turns/t1/approvals/c1"] = {}
    run("ask", "x")
    assert ("POST /v1/turns/t1/approvals/c1", {"allow": False}) in stub.asked


# Settings


def test_init_writes_a_config_that_holds(run: Run, home: Path, tmp_path: Path) -> None:
    vault = tmp_path / 'My "best" notes \\ é'
    vault.mkdir()
    code, out, _ = run("init", "--vault", str(vault))
    assert code == EXIT_OK
    assert out.startswith("Wrote ") and "tarsd run" in out
    code, out, _ = run("config", "check", "--json")
    assert (code, json.loads(out)["settings"]["vault"]["path"]) == (EXIT_OK, str(vault))
    assert run("config", "path")[:2] == (EXIT_OK, f"{home}/config.toml\n")


def test_every_line_of_the_template_is_a_setting(run: Run, home: Path, vault: Path) -> None:
    run("init", "--vault", str(vault))
    file = home / "config.toml"
    text = re.sub(r"(?m)^# (?=\[\[|\w+ = )", "", file.read_text()).replace("~/Work", str(vault.parent / "work"))
    file.write_text(text)
    (vault.parent / "work" / "notes").mkdir(parents=True)
    code, out, err = run("config", "check")
    assert (code, err) == (EXIT_OK, "")
    assert 'name = "work"' in out
    assert '# privacy.local_only: the rule "Private/" matches nothing in the vault' in out
    assert len(json.loads(run("config", "check", "--json")[1])["warnings"]) == out.count("matches nothing") == 4


def test_a_file_of_certificates_that_cannot_be_used_is_named(run: Run, home: Path, vault: Path) -> None:
    odd = home / "odd.pem"
    odd.write_text("no certificate")
    (home / "config.toml").write_text(
        f'[vault]\npath = "{vault}"\n[openai]\nca_file = "{odd}"\n[ollama]\nca_file = "/nowhere.pem"\n'
    )
    code, out, _ = run("config", "check")
    assert (code, out.count("ca_file: ")) == (EXIT_OK, 2)
    assert f"# openai.ca_file: {odd} contains no readable certificate (PEM)." in out
    assert "# ollama.ca_file: /nowhere.pem cannot be read (No such file or directory)." in out
    assert len(json.loads(run("config", "check", "--json")[1])["warnings"]) == 2


def test_init_never_overwrites_unless_forced(run: Run, home: Path, vault: Path) -> None:
    (home / "config.toml").write_text("# mine\n")
    code, _, err = run("init", "--vault", str(vault))
    assert code == EXIT_REFUSED
    assert "--force" in err
    assert (home / "config.toml").read_text() == "# mine\n"
    assert run("init", "--vault", str(vault), "--force")[0] == EXIT_OK
    assert [one.name for one in home.iterdir()] == ["config.toml"]


def test_init_succeeds_where_the_config_names_the_vault_already(
    run: Run, home: Path, vault: Path, tmp_path: Path
) -> None:
    run("init", "--vault", str(vault))
    file = home / "config.toml"
    file.write_text(file.read_text() + "# mine\n")
    (tmp_path / "link").symlink_to(vault)
    for same in (vault, f"{vault}/", tmp_path / "link", vault / ".." / vault.name):
        code, out, err = run("init", "--vault", str(same))
        assert (code, err) == (EXIT_OK, "")
        assert out.splitlines() == [f"{file} already has this vault.", "Next: tarsd run"]
    assert json.loads(run("init", "--vault", str(vault), "--json")[1])["written"] is False
    assert file.read_text().endswith("# mine\n")
    other = tmp_path / "other"
    other.mkdir()
    code, _, err = run("init", "--vault", str(other))
    assert (code, f"Its vault is {vault}." in err, "--force" in err) == (EXIT_REFUSED, True, True)
    assert run("init", "--vault", str(other), "--force")[1].startswith("Wrote ")


def test_init_needs_a_folder(run: Run, home: Path) -> None:
    assert run("init", "--vault", "/nowhere")[0] == EXIT_USAGE
    assert not list(home.iterdir())


def test_effective_settings_are_valid_toml(run: Run, home: Path, vault: Path) -> None:
    run("init", "--vault", str(vault))
    _, out, _ = run("config", "check")
    (home / "config.toml").write_text(out)
    assert run("config", "check")[1] == out


def test_version_names_what_matters(run: Run) -> None:
    code, out, _ = run("--version")
    assert code == EXIT_OK
    parts = r"Python 3\.\d+\.\d+, SQLite 3\.\d+\.\d+, sqlite-vec [\d.]+, onnxruntime [\d.]+, \w+ \w+"
    assert re.fullmatch(rf"tarsd [\d.]+ \({parts}\)\nmodels: minilm [0-9a-f]{{8}}, table [0-9a-f]{{8}}\n", out)
    assert MODEL_SHA256[:8] in out and VECTORS_SHA256[:8] in out


def test_version_names_a_daemon_of_another_one(run: Run, stub: Stub) -> None:
    stub.replies["GET /v1/hello"]["version"] = tarsd.__version__
    assert "daemon" not in run("--version")[1]
    stub.replies["GET /v1/hello"]["version"] = "0.0.1"
    assert "The daemon that runs is version 0.0.1." in run("--version")[1]
    stub.replies["GET /v1/hello"] = (500, {})
    assert run("--version")[0] == EXIT_OK


def test_every_command_has_help_and_speaks_json() -> None:
    context = click.Context(cli.cli)
    for name in cli.COMMANDS:
        command = cli.cli.get_command(context, name)
        assert isinstance(command, common.Command | common.Group), name
        assert command.help
        if not isinstance(command, click.Group) and name not in ("run", "chat", "mcp", "completion", "help"):
            assert "as_json" in {parameter.name for parameter in command.params}, name


# What a breaker found


LONG = "a" * 5000


def test_overlong_names_are_told_in_a_sentence(
    run: Run, stub: Stub, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("run", "--vault", LONG)[0] == EXIT_CONFIG
    code, _, err = run("init", "--vault", LONG)
    assert (code, "There is no folder" in err, len(err) < 400) == (EXIT_USAGE, True, True)
    stub.replies["POST /v1/related"] = {"hits": [HIT]}
    assert run("related", LONG)[0] == EXIT_OK
    monkeypatch.setenv("TARSD_VAULT", LONG)
    assert run("config", "check")[0] == EXIT_CONFIG
    assert run("search", "x")[0] == EXIT_NO_DAEMON


@pytest.mark.parametrize("command", [["config", "check"], ["run"], ["status"], ["search", "x"]])
def test_a_nul_in_the_vaults_path_is_a_fault(run: Run, home: Path, command: list[str]) -> None:
    (home / "config.toml").write_text('[vault]\npath = "~/nope\\u0000x"\n')
    code, _, err = run(*command)
    assert code == EXIT_CONFIG
    assert "vault.path: contains a NUL character" in err


def test_init_where_nothing_may_be_written(run: Run, home: Path, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: Path, mode: int | None) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(files, "created", refuse)
        code, out, err = run("init", "--vault", str(vault))
    assert (code, out) == (EXIT_REFUSED, "")
    assert err.splitlines()[0] == f"{home}/config.toml cannot be written: Permission denied."
    (home / "file").write_text("")
    monkeypatch.setenv("TARSD_HOME", str(home / "file"))
    assert run("init", "--vault", str(vault))[0] == EXIT_REFUSED


@pytest.mark.parametrize("command", [["run"], ["init"], ["config", "check"], ["search", "x"], ["ask", "x"], ["stop"]])
def test_an_empty_vault_is_not_the_current_folder(run: Run, stub: Stub, command: list[str]) -> None:
    code, _, err = run(*command, "--vault", "")
    assert code == EXIT_USAGE
    assert "The path is empty." in err


def test_json_holds_nothing_that_commands_a_terminal(run: Run, stub: Stub) -> None:
    reply = {"hits": [{**HIT, "text": "a\x1b\x7f\x9b31m\u202eb\u2066c\u2069 é 茶"}]}
    stub.replies["POST /v1/search"] = reply
    code, out, _ = run("search", "tea", "--json")
    assert (code, json.loads(out)) == (EXIT_OK, reply)
    assert "a\\u001b\\u007f\\u009b31m\\u202eb\\u2066c\\u2069 é 茶" in out


@pytest.mark.parametrize("score", ["nan", "inf", "-inf", "-1"])
def test_a_least_score_is_a_number(run: Run, stub: Stub, score: str) -> None:
    code, _, err = run("search", "x", f"--min-score={score}")
    assert (code, "--min-score" in err) == (EXIT_USAGE, True)
    assert stub.asked == []


@pytest.mark.parametrize("command", ["search", "sgrep", "svec"])
def test_an_empty_query_is_wrong_usage(run: Run, stub: Stub, command: str) -> None:
    code, _, err = run(command, " ")
    assert (code, err) == (EXIT_USAGE, "The query is empty.\nGive something to search for.\n")


EMBEDDING_TROUBLE = {"path": "", "reason": "Ollama does not answer.", "hint": "Start it."}


@pytest.mark.parametrize(
    ("problems", "headline"),
    [
        ([{"path": "", "reason": "900 of 1000 notes are missing.", "hint": "x"}], "\x1b[33m● Needs attention\x1b[0m"),
        ([EMBEDDING_TROUBLE], "\x1b[33m● Up to date\x1b[0m"),
        ([{"path": "", "reason": "Embedding failed (x); it starts again."}], "\x1b[33m● Up to date\x1b[0m"),
    ],
)
def test_a_headline_is_not_brighter_than_things_are(problems: list[dict[str, Any]], headline: str) -> None:
    out = Terminal(sys.stdout)
    out.colour = True
    embedding = {"model": "ollama:x", "state": "unreachable", "reason": EMBEDDING_TROUBLE["reason"]}
    first = glance({**STATUS, "problems": problems, "embedding": embedding}, out)[0]
    assert first.startswith(headline)
    assert "1 problem" in first
