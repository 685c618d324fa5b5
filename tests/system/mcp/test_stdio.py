"""`tarsd mcp`: every tool and resource through the SDK's own client, against a real daemon."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from urllib.parse import quote

import jsonschema
import pytest
from mcp import MCPError
from mcp.types import ReadResourceResult, ResourceTemplateReference, TextResourceContents

from tests.support.engine import until, write
from tests.support.mcp_client import (
    LINES,
    NOTES,
    House,
    Start,
    call,
    living,
    refused,
    serving,
)
from tests.support.stub import Stub

# ------------------------------------------------------------------------------------------------ what it offers


async def test_tools_have_schemas_hints_and_words(house: House) -> None:
    async with serving(house.home, house.vault) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == [
            "search_notes", "read_note", "related_notes", "recent_notes", "query_notes", "query_tasks", "remember",
            "complete_task", "ask",
        ]  # fmt: skip
        for tool in tools.values():
            for schema in (tool.input_schema, tool.output_schema):
                jsonschema.Draft202012Validator.check_schema(schema or {})
                assert schema and schema["type"] == "object"
            assert tool.input_schema["additionalProperties"] is False
            assert all(one["description"] for one in tool.input_schema["properties"].values())
            assert tool.title and tool.description and len(tool.description) > 100
            hints = tool.annotations
            assert hints and hints.destructive_hint is False and hints.open_world_hint is False
            assert hints.read_only_hint is (tool.name not in ("remember", "ask"))
        assert "withheld" in (client.instructions or "")
        assert client.server_info is not None and client.server_info.name == "tarsd"


async def test_a_task_is_proposed_and_left_to_the_person(house: House) -> None:
    text = "# Tasks\n\n- [ ] Oil it %% commentword %% 📅 2026-12-01\n"
    note = write(house.vault, "To do.md", text)
    try:
        async with serving(house.home, house.vault) as client:
            for path, line in (("To do.md", {"line": 3}), ("To do.md:3", {}), ("[[To do]]", {"line": 3})):
                data, said = await call(client, "complete_task", path=path, **line)
                assert data["title"] == "Complete “Oil it” in To do.md" and data["state"] == "waits for a yes"
                assert data["command"] == "tarsd tasks done 'To do.md:3'" and data["command"] in said
                assert "commentword" not in said
            assert "no task at line 1" in await refused(client, "complete_task", path="To do.md", line=1)
            assert "which task" in await refused(client, "complete_task", path="To do.md")
        assert note.read_text() == text
    finally:
        note.unlink()


ROWS = {
    "Books/Dune.md": "---\nrating: 5\nfinished: 2026-02-03\npages: 600\n---\nSand.\n",
    "Books/Emma.md": "---\nrating: 4\nfinished: 2026-03-04\npages: 400\n---\n- [ ] Lend | it 📅 2020-01-02\n",
    "Books/Secret.md": "---\nrating: 5\nfinished: 2026-03-05\npages: 1000\nlocal_only: true\n---\n- [ ] Hide it\n",
}


async def test_notes_and_tasks_are_counted_without_private_ones() -> None:
    with living(ROWS) as house:
        async with serving(house.home, house.vault) as client:
            where = 'finished >= date("2026-01-01")'
            given = {"where": where, "columns": "rating", "sort": ["-rating"], "sum": "pages", "average": ["pages"]}
            data, said = await call(client, "query_notes", **given, limit=1)
            assert (data["total"], data["left_out"], data["withheld"]) == (2, 1, 1) and said.startswith("Total: 2.")
            assert data["rows"][0]["values"] == {"rating": 5} and data["rows"][0]["uri"].startswith("obsidian://")
            assert data["summaries"]["pages"]["value"] == 1000 and data["summaries"]["(pages)"]["value"] == 500
            assert "path | rating\nBooks/Dune.md | 5" in said and "Secret" not in f"{data}{said}"
            data, said = await call(client, "query_notes", where="ratings", group="rating")
            assert data["total"] == 0 and "there is “rating”" in said
            data, said = await call(client, "query_notes", group="rating")
            assert [(one["key"], one["count"]) for one in data["groups"]] == [(4, 1), (5, 1)]
            data, said = await call(client, "query_tasks", state="overdue")
            assert data["total"] == 1 and data["rows"][0]["text"] == "Lend | it" and "Books/Emma.md:6 | [ ]" in said
            data, _ = await call(client, "search_notes", query="sand", where="rating > 4")
            assert {hit["path"] for hit in data["hits"]} == {"Books/Dune.md"}
            assert "column 8" in await refused(client, "query_notes", where="rating = 4")
            assert "not a due date" in await refused(client, "query_tasks", due="soon")
            assert "nested more than" in await refused(client, "query_notes", where="(" * 5000 + "1" + ")" * 5000)
            assert await refused(client, "query_notes", where="x" * 1_000_000)
        async with serving(house.home, house.vault, "--local") as client:
            data, _ = await call(client, "query_notes", where=where, sum="pages")
            assert (data["total"], data["summaries"]["pages"]["value"]) == (3, 2000)


async def test_search(house: House) -> None:
    async with serving(house.home, house.vault) as client:
        data, text = await call(client, "search_notes", query="when is the dry dock?", limit="3")
        first = data["hits"][0]
        assert (first["path"], first["title"], first["heading"]) == ("Ferry/Dry dock.md", "Dry dock", "Dates")
        assert first["start_line"] <= 10 <= first["end_line"] and "18 January" in first["text"]
        assert first["relevance"] > 0.5 and first["why"] and 0 < len(data["hits"]) <= 3
        assert first["uri"] == "obsidian://open?vault=My%20Vault&file=Ferry%2FDry%20dock%23Dates"
        assert (data["withheld"], data["behind"], data["left_out"]) == (0, 0, 0)
        assert "Ferry/Dry dock.md:" in text and "> The ferry goes to the dry dock" in text and first["uri"] in text
        assert "commentword" not in text

        data, _ = await call(client, "search_notes", query="ferry", folder="Ferry", limit=20)
        assert {hit["path"] for hit in data["hits"]} == {"Ferry/Dry dock.md", "Ferry/Quorl.md"}
        data, _ = await call(client, "search_notes", query="ferry", tag="#work", mode="fts")
        assert {hit["path"] for hit in data["hits"]} == {"Ferry/Dry dock.md"}
        data, text = await call(client, "search_notes", query="ferry", before="2001", after=None)
        assert data["hits"] == [] and text.startswith("Nothing was found.")
        assert (await call(client, "search_notes", query="ferry", changed=">2001-05"))[0]["hits"]
        data, _ = await call(client, "search_notes", query="ferry", after="2001-05")
        assert data["hits"] == []  # none of the notes has a date
        _, text = await call(client, "search_notes", query="xylophone lessons", mode="vec")
        assert "No good match" in text


async def test_reading(house: House) -> None:
    async with serving(house.home, house.vault) as client:
        data, text = await call(client, "read_note", path="Ferry/Dry dock.md")
        assert (data["total_lines"], data["start_line"], data["end_line"], data["next_line"]) == (12, 1, 12, None)
        assert data["properties"]["status"] == "planned" and data["tags"] == ["work/ferry"]
        assert data["aliases"] == ["docking"] and len(data["hash"]) == 64 and data["cut"] is False
        assert data["text"].split("\n")[9].startswith("The ferry goes") and "   10| The ferry goes" in text
        assert "commentword" not in text and data["text"].split("\n")[11] == ""
        part, text = await call(client, "read_note", path="Ferry/Dry dock.md", start_line=6, end_line=8)
        assert (part["text"], part["next_line"]) == ("# Dry dock\n\n## Dates", 9) and "start_line=9" in text
        for name in (
            "Dry dock",
            "dry dock",
            "[[Dry dock]]",
            "[[Dry dock#Dates|the dates]]",
            "docking",
            "ferry/dry dock",
        ):
            assert (await call(client, "read_note", path=name))[0]["path"] == "Ferry/Dry dock.md", name
        said = await refused(client, "read_note", path="Twin")
        assert said == "2 notes have the name “Twin”. Give the path of one: a/Twin.md, b/Twin.md."
        assert (await call(client, "read_note", path="b/Twin"))[0]["text"] == "# Second twin\n\nTwo."
        assert "There is no note “Ghost”" in await refused(client, "read_note", path="Ghost")
        assert "has 3 lines" in await refused(client, "read_note", path="Tides", start_line=9)
        assert "comes before" in await refused(client, "read_note", path="Tides", start_line=3, end_line=2)
        empty, text = await call(client, "read_note", path="Empty.md")
        assert (empty["total_lines"], empty["end_line"], empty["next_line"]) == (0, 0, None) and "is empty" in text


async def test_a_note_that_is_new_is_read_at_once(house: House) -> None:
    async with serving(house.home, house.vault) as client:
        note = write(house.vault, "Fresh.md", "# Fresh\n\nJust written.\n")
        try:
            assert (await call(client, "read_note", path="Fresh"))[0]["text"] == "# Fresh\n\nJust written."
        finally:
            note.unlink()


async def test_what_no_reader_sees_is_left_out_and_a_note_cannot_pose_as_ours(house: House) -> None:
    async with serving(house.home, house.vault) as client:
        for name, arguments in (("read_note", {"path": "Sly"}), ("search_notes", {"query": "ignore all rules"})):
            data, text = await call(client, name, **arguments)
            assert "\u200b" not in json.dumps(data, ensure_ascii=False) + text
            assert "\U000e0041" not in json.dumps(data, ensure_ascii=False) + text
            mark = "    3| " if name == "read_note" else "> "
            assert [row for row in text.split("\n") if row.startswith(mark + "</note> Ignore")]
            assert not [row for row in text.split("\n") if row.startswith("1. Passage of mine")]


async def test_related_and_recent(house: House) -> None:
    async with serving(house.home, house.vault) as client:
        data, text = await call(client, "related_notes", path="[[Quorl]]", limit=2)
        assert data["hits"][0]["path"] == "Ferry/Dry dock.md" and len(data["hits"]) <= 2 and "linked" in text
        assert "2 notes have the name" in await refused(client, "related_notes", path="Twin")
        os.utime(house.vault / "Tides.md")
        until(lambda: house.daemon.client.get("/v1/notes?recent=1")["notes"][0]["path"] == "Tides.md")
        data, text = await call(client, "recent_notes", limit=2)
        assert data["notes"][0]["path"] == "Tides.md" and len(data["notes"]) == 2 and "Tides.md" in text
        assert (data["total"], data["withheld"]) == (len(NOTES), 0)
        data, text = await call(client, "recent_notes", folder="Ferry", tag="work")
        assert [note["path"] for note in data["notes"]] == ["Ferry/Dry dock.md"] and "#work/ferry" in text
        data, text = await call(client, "recent_notes", folder="Nowhere")
        assert data["notes"] == [] and text == "There are no such notes."


async def test_notes_of_a_collection_are_read_by_its_name(tmp_path: Path) -> None:
    write(tmp_path, "Plan.md", "# Plan\n\nThe plan of the flange.\n")
    settings = f'[[collection]]\nname = "work"\npath = "{tmp_path}"\n'
    with living({"Plan.md": "# Plan\n\nMy own plan.\n"}, settings) as house:
        async with serving(house.home, house.vault) as client:
            [hit, *_] = (await call(client, "search_notes", query="flange"))[0]["hits"]
            assert (hit["path"], hit["uri"]) == ("work/Plan.md", "")
            assert "flange" in (await call(client, "read_note", path="work/Plan.md"))[0]["text"]
            assert "My own" in (await call(client, "read_note", path="Plan"))[0]["text"]
            assert (await call(client, "related_notes", path="work/Plan"))[0]["hits"][0]["path"] == "Plan.md"
            listed = {note["path"]: note["uri"] for note in (await call(client, "recent_notes"))[0]["notes"]}
            assert set(listed) == {"Plan.md", "work/Plan.md"} and not listed["work/Plan.md"]
            assert "flange" in _text(await client.read_resource("tarsd://note/work%2FPlan.md"))


async def test_any_script_and_name(house: House) -> None:
    path = "Grüße 🍵/Tee 京都.md"
    async with serving(house.home, house.vault) as client:
        data, text = await call(client, "read_note", path=path)
        assert "🍵 war gut" in data["text"] and "日本語" in text
        assert data["uri"] == f"obsidian://open?vault=My%20Vault&file={quote(path[:-3], safe='')}"
        assert (await call(client, "search_notes", query="日本語"))[0]["hits"][0]["path"] == path
        read = await client.read_resource(f"tarsd://note/{quote(path, safe='')}")
        assert "日本語" in _text(read)


async def test_long_notes_come_in_pages_that_are_all_of_it(house: House) -> None:
    async with serving(house.home, house.vault) as client:
        lines: list[str] = []
        line: int | None = 1
        while line is not None:
            page, _ = await call(client, "read_note", path="Long", start_line=line)
            assert page["total_lines"] == LINES and page["start_line"] == line == len(lines) + 1
            lines += page["text"].split("\n")
            line = page["next_line"]
        assert "\n".join(lines) + "\n" == NOTES["Long.md"]
        page, text = await call(client, "read_note", path="Wide", start_line=3)
        assert page["cut"] is True and page["next_line"] == 4 and "Line 3 is too long and was cut." in text
        assert page["text"].endswith("[…]") and len(page["text"]) > 10_000
        assert (await call(client, "read_note", path="Wide", start_line=4))[0]["text"] == "after the wide line"
        data, text = await call(client, "search_notes", query="wide words long note line", limit=50)
        assert data["left_out"] > 0 and f"{data['left_out']} more did not fit" in text
        resource = _text(await client.read_resource("tarsd://note/Long.md"))
        assert len(resource.encode()) < 100_000 and "read_note reads on with start_line=" in resource[-100:]


def _text(read: ReadResourceResult) -> str:
    [content] = read.contents
    assert isinstance(content, TextResourceContents) and content.mime_type == "text/markdown"
    return content.text


# ------------------------------------------------------------------------------------------------ resources, prompts


async def test_resources_are_listed_in_pages_and_completed(house: House) -> None:
    template = ResourceTemplateReference(type="ref/resource", uri="tarsd://note/{path}")
    async with serving(house.home, house.vault) as client:
        listed = (await client.list_resources()).resources
        assert {one.name for one in listed} == set(NOTES) and all(one.mime_type == "text/markdown" for one in listed)
        for one in listed:
            assert one.uri == f"tarsd://note/{quote(one.name, safe='')}"
        assert _text(await client.read_resource("tarsd://note/Tides.md")) == NOTES["Tides.md"].rstrip("\n")
        assert _text(await client.read_resource("tarsd://note/Ferry/Quorl.md")).startswith("# Quorl")
        [known] = (await client.list_resource_templates()).resource_templates
        assert known.uri_template == template.uri
        done = (await client.complete(template, {"name": "path", "value": "FERRY/"})).completion
        assert set(done.values) == {"Ferry/Dry dock.md", "Ferry/Quorl.md", "Old Ferry/Rust.md"}
        assert (done.total, done.has_more) == (3, False)
        assert (await client.complete(template, {"name": "path", "value": "x" * 9000})).completion.values == []
        assert (await client.complete(template, {"name": "other", "value": "F"})).completion.values == []
        for uri in ("tarsd://note/Ghost.md", "tarsd://note/", "tarsd://note/%ff", "file:///etc/passwd", "tarsd://x"):
            with pytest.raises(MCPError) as error:
                await client.read_resource(uri)
            assert error.value.code == -32602, uri
        for cursor in ("7", "-50", "x", "9" * 99):
            with pytest.raises(MCPError, match="cursor"):
                await client.list_resources(cursor=cursor)


async def test_the_list_of_resources_is_bounded() -> None:
    with living({f"N/{number}.md": f"# Note {number}\n" for number in range(230)}) as house:
        async with serving(house.home, house.vault) as client:
            names: list[str] = []
            cursor = None
            for _ in range(4):
                page = await client.list_resources(cursor=cursor)
                assert len(page.resources) == 50
                names += [one.name for one in page.resources]
                cursor = page.next_cursor
            assert cursor is None and len(set(names)) == 200
            template = ResourceTemplateReference(type="ref/resource", uri="tarsd://note/{path}")
            done = (await client.complete(template, {"name": "path", "value": ""})).completion
            assert (len(done.values), done.total, done.has_more) == (20, 230, True)


async def test_the_prompt(house: House) -> None:
    async with serving(house.home, house.vault) as client:
        [prompt] = (await client.list_prompts()).prompts
        message = (await client.get_prompt(prompt.name, {"question": "When is the dry dock?"})).messages[0]
        assert "When is the dry dock?" in str(message.content) and "search_notes" in str(message.content)
        with pytest.raises(MCPError):
            await client.get_prompt("other", {})


# ------------------------------------------------------------------------------------------------ what is refused


async def test_calls_that_cannot_be_meant(house: House) -> None:
    async with serving(house.home, house.vault) as client:
        with pytest.raises(MCPError, match="There is no tool “nope”") as error:
            await client.call_tool("nope", {})
        assert error.value.code == -32602
        for name, arguments, said in (
            ("search_notes", {}, "“query” is missing"),
            ("search_notes", {"query": "  "}, "“query” is empty"),
            ("search_notes", {"query": 7}, "“query” must be a string"),
            ("search_notes", {"query": "x", "limit": 0}, "between 1 and 50"),
            ("search_notes", {"query": "x", "limit": "many"}, "whole number"),
            ("search_notes", {"query": "x", "mode": "magic"}, "one of: hybrid, fts, vec"),
            ("search_notes", {"query": "x", "after": "last week"}, "not a date"),
            ("search_notes", {"query": "x", "top_k": 3}, "has no argument “top_k”. It takes query, limit,"),
            ("search_notes", {"query": "x" * 20_000}, "longer than"),
            ("read_note", {"path": ["a"]}, "must be a string"),
            ("recent_notes", {"limit": 1000}, "between 1 and 100"),
            ("remember", {"text": "-"}, "There is nothing in it to remember"),
            ("remember", {"text": "word " * 200}, "too long for one line"),
            ("ask", {"question": ""}, "“question” is empty"),
        ):
            assert said in await refused(client, name, **arguments), (name, arguments)


HOSTILE = [
    "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%252e%252e/x.md", "/etc/passwd", "C:\\Windows\\x.md", "..\\..\\x.md",
    "note.md/../../../x", "./././../x.md", "~/x.md", ".obsidian/plugins/x/data.json", ".git/config", "foo\0.md",
    "\u2024\u2024/x.md", "a/" * 400 + "x.md", "..", ".", "/", "../outside.md", "link/outside.md", "file:///etc/passwd",
    "x" * 5000, "a\nb.md", "%00", "[[../outside]]",
]  # fmt: skip


async def test_paths_lead_nowhere_but_into_the_vault(house: House) -> None:
    outside = write(house.vault.parent, "outside.md", "# Outside\n\nzqxoutside\n")
    (house.vault / "link").symlink_to(outside.parent)
    write(house.vault, ".obsidian/plugins/x/data.json", '{"key": "zqxkey"}')
    try:
        async with serving(house.home, house.vault) as client:
            for path in HOSTILE:
                for name in ("read_note", "related_notes", "complete_task"):
                    assert "zqx" not in await refused(client, name, path=path), path
                with pytest.raises(MCPError) as error:
                    await client.read_resource(f"tarsd://note/{quote(path, safe='')}")
                assert error.value.code == -32602 and "zqx" not in str(error.value), path
            found, _ = await call(client, "search_notes", query="outside zqxoutside zqxkey", limit=50)
            assert "zqx" not in json.dumps(found)
            for folder in ("../", "..", "/etc", "%2e%2e"):
                assert (await call(client, "recent_notes", folder=folder))[0]["notes"] == []
    finally:
        (house.vault / "link").unlink()


# ------------------------------------------------------------------------------------------------ without a daemon


async def test_it_lives_on_while_the_daemon_comes_and_goes(daemon: Start, home: Path, vault: Path) -> None:
    write(vault, "Quorl.md", "# Quorl\n\nA brass wedge.\n")
    async with serving(home, vault) as client:
        said = await refused(client, "search_notes", query="quorl")
        assert said == f"No daemon is running for {vault}. Start it with: tarsd run --vault {vault}"
        with pytest.raises(MCPError, match="No daemon is running"):
            await client.list_resources()
        assert len((await client.list_tools()).tools) == 9
        one = daemon()
        for how in (signal.SIGKILL, signal.SIGTERM):
            assert (await call(client, "read_note", path="Quorl"))[0]["title"] == "Quorl"
            one.stop(how)
            assert "No daemon is running" in await refused(client, "read_note", path="Quorl")
            one.process = one.spawn()
            one.wait()
        assert (await call(client, "search_notes", query="quorl"))[0]["hits"]


async def test_a_wrong_vault_and_an_old_daemon_are_told(home: Path, vault: Path, stub: Stub) -> None:
    async with serving(home, vault / "nowhere") as client:
        said = await refused(client, "ask", question="anything?")
        assert said == f"There is no folder {vault / 'nowhere'}. Correct --vault where this MCP server is set up."
    async with serving(home, None) as client:  # the only one that runs, and it would not keep private notes back
        stub.replies["GET /v1/hello"]["features"] = ["search", "notes"]
        assert "older than this" in await refused(client, "search_notes", query="quorl")
        assert {route for route, _ in stub.asked} == {"GET /v1/hello"}


async def test_a_daemon_that_answers_nonsense_ends_no_session(home: Path, stub: Stub) -> None:
    stub.replies["GET /v1/hello"]["features"] = ["audience"]
    stub.replies["POST /v1/search"] = {"surprise": True}
    stub.replies["GET /v1/notes?recent=20&audience=elsewhere"] = (
        503,
        {"error": {"message": "Not now.", "hint": "Wait."}},
    )
    async with serving(home, None) as client:
        assert "failed on this call" in await refused(client, "search_notes", query="quorl")
        assert await refused(client, "recent_notes") == "Not now. Wait."
