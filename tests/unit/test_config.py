"""Settings: what is read, every fault at once with its line, and where things lie on disk."""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
from pathlib import Path

import pytest

from tarsd import config
from tarsd.errors import EXIT_CONFIG, ConfigError

Env = dict[str, str]


@pytest.fixture
def env(tmp_path: Path) -> Env:
    return {"TARSD_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}


def write(env: Env, text: str) -> Path:
    file = Path(env["TARSD_HOME"]) / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def faults(env: Env, text: str, vault: str = "~/Notes") -> list[str]:
    """The faults of a config, without the file's name: "3: vault.path: …"."""
    file = write(env, text)
    with pytest.raises(ConfigError) as caught:
        config.load(vault=Path(vault) if vault else None, env=env)
    assert caught.value.exit_code == EXIT_CONFIG
    return [one.removeprefix(str(file)).removeprefix(":") for one in caught.value.problems]


THE_DOCUMENTED_FILE = """\
[vault]
path = "~/Notes"
exclude = ["Templates/", "*.excalidraw.md"]
memory_folder = "tars"
[[collection]]
name = "work"
path = "~/Work/notes"
[embedding]
model = "ollama:qwen3-embedding:0.6b"
[chunk]
tokens = 300
scores = { h1 = 90 }
[ollama]
host = "localhost"
[openai]
base_url = "https://api.openai.com/v1/"
[chat]
model = "anthropic:claude"
[privacy]
local_only = ["Private/", "#private"]
[http]
enabled = true
port = 9000
allowed_hosts = ["pi.local"]
[[mcp]]
name = "fetch"
command = ["uvx", "mcp-server-fetch"]
"""


def test_every_documented_section_is_read(env: Env, tmp_path: Path) -> None:
    write(env, THE_DOCUMENTED_FILE)
    got = config.load(env=env)
    assert got.vault == tmp_path / "Notes"
    assert got.exclude == ("Templates/", "*.excalidraw.md")
    assert got.collections == (config.Collection("work", tmp_path / "Work" / "notes"),)
    assert got.embedding.model == "ollama:qwen3-embedding:0.6b"
    assert got.embedding.ollama_host == got.chat.ollama_host == "http://localhost:11434"
    assert got.chunk.tokens == 300
    assert got.chunk.scores == {**config.ChunkSettings().scores, "h1": 90}
    assert got.chat.model == "anthropic:claude"
    assert got.chat.openai_base_url == "https://api.openai.com/v1"
    assert got.privacy.local_only == ("Private/", "#private")
    assert (got.http.enabled, got.http.port, got.http.allowed_hosts) == (True, 9000, ("pi.local",))
    assert got.mcp == (config.McpServer("fetch", ("uvx", "mcp-server-fetch")),)


SERVERS = ("ollama", "openai", "anthropic", "tools")
MCP_FILE = '[vault]\npath = "~/Notes"\n[[mcp]]\nname = "x"\nurl = "https://x/"\nca_file = {}\n'


def test_each_server_has_a_file_of_certificates(env: Env, tmp_path: Path) -> None:
    text = "".join(f'[{name}]\nca_file = "~/{name}.pem"\n' for name in SERVERS)
    write(env, MCP_FILE.format('"/etc/own.pem"') + text)
    got = config.load(env=env)
    chat, embedding = got.chat, got.embedding
    assert [chat.ollama_ca_file, chat.openai_ca_file, chat.anthropic_ca_file, got.tools.ca_file] == [
        str(tmp_path / f"{name}.pem") for name in SERVERS
    ]
    assert (embedding.ollama_ca_file, embedding.openai_ca_file) == (chat.ollama_ca_file, chat.openai_ca_file)
    assert got.mcp[0].ca_file == "/etc/own.pem"
    tables = config.as_tables(got)
    assert [tables[name]["ca_file"] for name in SERVERS] == [str(tmp_path / f"{name}.pem") for name in SERVERS]
    assert tables["mcp"][0]["ca_file"] == "/etc/own.pem"
    assert config.load(vault=tmp_path, env={"TARSD_HOME": "/tmp/elsewhere"}).chat.openai_ca_file == ""


@pytest.mark.parametrize("name", [*SERVERS, "mcp"])
@pytest.mark.parametrize(
    ("value", "wrong"), [("7", "must be text"), ('"own.pem"', "absolute path"), ('"/a\\u0000b"', "")]
)
def test_a_file_of_certificates_is_an_absolute_path(env: Env, name: str, value: str, wrong: str) -> None:
    own = MCP_FILE.format(value) if name == "mcp" else f'[vault]\npath = "~/Notes"\n[{name}]\nca_file = {value}\n'
    (fault,) = faults(env, own)
    assert "ca_file: " in fault and wrong in fault


def test_no_file_is_needed(env: Env, tmp_path: Path) -> None:
    got = config.load(vault=tmp_path / "Notes", env=env)
    assert got.vault == tmp_path / "Notes"
    assert got.embedding == config.EmbeddingSettings()
    assert not Path(env["TARSD_HOME"]).exists(), "loading creates nothing"


def test_settings_cross_process_borders(env: Env, tmp_path: Path) -> None:
    got = config.load(vault=tmp_path, env={**env, "TARSD_HOME": "/tmp/elsewhere"})
    assert pickle.loads(pickle.dumps(got)) == got


def test_a_key_is_not_in_the_repr() -> None:
    assert "sk-1" not in repr(config.EmbeddingSettings(openai_key="sk-1"))


def test_the_environment_overrides_the_file(env: Env, tmp_path: Path) -> None:
    write(env, THE_DOCUMENTED_FILE)
    over = {"TARSD_EMBEDDING": "table", "TARSD_CHAT": "extractive", "TARSD_VAULT": "~/Other"}
    got = config.load(env={**env, **over})
    assert (got.embedding.model, got.chat.model, got.vault) == ("table", "extractive", tmp_path / "Other")
    assert config.load(vault=tmp_path / "Third", env={**env, **over}).vault == tmp_path / "Third"


def test_every_fault_at_once_with_line_and_key(env: Env) -> None:
    assert faults(
        env,
        """\
[vault]
path = "~/Notes"
exclud = ["a"]
[embedding]
model = "minilmm"
dimensions = "many"
[chunk]
tokens = 0
overlap = true
scores = { h1 = 5000, blnak = 1 }
[search]
fusion = "magic"
[watch]
debounce_s = -1
[nonsense]
""",
    ) == [
        '3: unknown setting vault.exclud; did you mean "exclude"?',
        '5: embedding.model: "minilmm" is not a model; did you mean "minilm"?',
        "6: embedding.dimensions: must be a whole number",
        "8: chunk.tokens: must be from 16 to 4096, not 0",
        "9: chunk.overlap: must be a number",
        '10: unknown setting chunk.scores.blnak; did you mean "blank"?',
        "10: chunk.scores.h1: must be from 0 to 1000, not 5000",
        "12: search.fusion: must be one of weighted, rrf",
        "14: watch.debounce_s: must be from 0.0 to 60.0, not -1",
        "15: unknown setting nonsense; the settings here are vault, collection, embedding, chunk, search, watch, "
        "ollama, openai, anthropic, chat, usage, memory, tools, privacy, dates, files, skills, http, performance, mcp",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[vault]\npath = ", "2: not valid TOML: put text in quotes"),
        ('[vault]\npath = "a"\npath = "b"\n', "3: not valid TOML: cannot overwrite a value"),
        ('[vault]\nx = """\n', "2: not valid TOML: unterminated string"),
        ("vault = 3", "1: vault: must be a table: write [vault] on its own line"),
        ("[mcp]\nname = 1", "1: mcp: must be an array of tables: write [[mcp]] on its own line"),
        ('[openai]\napi_key = "sk-1"', "2: unknown setting openai.api_key; keys do not belong in the "
         "config: use tarsd key set"),
        ('[ollama]\nhost = "ftp://x"', '2: ollama.host: "ftp://x" "ftp" is neither http nor https'),
        ('[embedding]\nmodel = "ollama"', '2: embedding.model: has no model: write "ollama:MODEL"'),
        ('[embedding]\nmodel = "ollama:"', '2: embedding.model: has no model after "ollama:"'),
        ('[vault]\nmemory_folder = "../x"', '2: vault.memory_folder: "../x" must be a folder in the vault, not hidden'),
        ('[vault]\nexclude = ["/etc"]',
         '2: vault.exclude: "/etc" cannot match anything: rules are relative to the vault'),
        ('[vault]\nexclude = "x"', '2: vault.exclude: must be a list of strings: ["…", "…"]'),
        ('[http]\nenabled = 1', "2: http.enabled: must be true or false"),
        ('[[mcp]]\nname = "a"\nurl = "nowhere"',
         '3: mcp[1].url: "nowhere" must be a full URL such as "https://api.openai.com/v1"'),
        ('[[mcp]]\nname = "a"\nurl = "http://h/mcp"\nenv = { A = 1 }',
         '4: mcp[1].env: must be a table of strings: { NAME = "value" }'),
        ('[chat]\nfallback = "gtp"',
         '2: chat.fallback: "gtp" is not a model; use one of auto, extractive, anthropic:MODEL, ollama:MODEL, '
         'openai:MODEL'),
        ('[tools]\nweather_url = "x"',
         '2: tools.weather_url: "x" must be a full URL such as "https://api.openai.com/v1"'),
        ('[[mcp]]\nname = "a"', '1: mcp[1].command: a server needs either command = ["program", "argument"] or a url'),
    ],
)  # fmt: skip
def test_a_fault_says_where_and_what(env: Env, text: str, fault: str) -> None:
    assert faults(env, text) == [fault]


def test_collections_must_be_told_apart(env: Env) -> None:
    text = '[[collection]]\nname = "a"\npath = "~/A"\n[[collection]]\nname = "a"\npath = "~/Notes/sub"\n'
    assert faults(env, text) == [
        '5: collection[2].name: "a" is already used by another collection',
        f"6: collection[2].path: {env['HOME']}/Notes/sub overlaps with the vault; its notes would be found twice",
    ]


def test_a_line_is_found_past_strings_of_many_lines_and_dotted_keys(env: Env) -> None:
    text = 'chat.model = """\\\n[vault]\nmodel = 1\\\n"""\n[vault]\n"path" = "relative"\n'
    assert faults(env, text, vault="")[1].startswith('6: vault.path: "relative" must be an absolute path')


def test_a_vault_must_be_named(env: Env) -> None:
    assert faults(env, "", vault="") == [" vault.path: no vault is set; run: tarsd init --vault PATH"]


def test_a_vault_that_is_a_file_is_refused(env: Env, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert faults(env, "", vault=str(tmp_path / "file")) == [f"--vault: {tmp_path / 'file'} is a file, not a folder"]


def test_a_vault_that_is_missing_is_no_fault(env: Env, tmp_path: Path) -> None:
    assert config.load(vault=tmp_path / "not mounted", env=env).vault == tmp_path / "not mounted"


def test_the_index_may_not_lie_in_the_vault(env: Env, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the cache is inside the vault .*set TARSD_HOME"):
        config.load(vault=tmp_path, env=env)


def test_a_named_file_that_is_missing_or_no_text_is_a_fault(env: Env, tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    with pytest.raises(ConfigError, match=r"does not exist \(set by TARSD_CONFIG\)"):
        config.load(vault=tmp_path / "V", env={**env, "TARSD_CONFIG": str(file)})
    file.write_bytes(b'[vault]\npath = "\xff"')
    with pytest.raises(ConfigError, match=":2: not UTF-8 text"):
        config.load(vault=tmp_path / "V", env={**env, "TARSD_CONFIG": str(file)})


def test_a_byte_order_mark_is_read_over(env: Env, tmp_path: Path) -> None:
    write(env, '\ufeff[vault]\npath = "~/Notes"\n')
    assert config.load(env=env).vault == tmp_path / "Notes"


@pytest.mark.parametrize(
    ("spelling", "url"),
    [
        ("localhost:11434", "http://localhost:11434"),
        ("0.0.0.0:11434", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("http://localhost:11434/", "http://localhost:11434"),
        ("http://localhost:11434/v1", "http://localhost:11434"),
        ("http://localhost", "http://localhost:11434"),
        ("https://ollama.example", "https://ollama.example:443"),
        (":8080", "http://127.0.0.1:8080"),
        ("::1", "http://[::1]:11434"),
        ("[::]:1234", "http://[::1]:1234"),
        (' "1.2.3.4" ', "http://1.2.3.4:11434"),
    ],
)
@pytest.mark.report("https://github.com/AsyncFuncAI/deepwiki-open/issues/248")
def test_ollama_hosts_as_people_spell_them(spelling: str, url: str, env: Env, tmp_path: Path) -> None:
    assert config.ollama_host(spelling) == url
    assert config.load(vault=tmp_path / "V", env={**env, "OLLAMA_HOST": spelling}).embedding.ollama_host == url


@pytest.mark.parametrize("spelling", ["auto", "minilm", "e5", "table", "fake", "fake:8", "ollama:a:1", "openai:b"])
def test_embedding_models(spelling: str) -> None:
    assert config.check_model("embedding", spelling) is None


@pytest.mark.parametrize("spelling", ["", "MiniLM", "fake:x", "ollama: x", "anthropic:claude", "auto:e5"])
def test_no_embedding_models(spelling: str) -> None:
    assert config.check_model("embedding", spelling)


def test_the_vault_id_is_that_of_the_real_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert config.vault_id(tmp_path / "link") == hashlib.sha256(bytes(tmp_path / "real")).hexdigest()[:12]


@pytest.mark.parametrize("length", [60, 80, 81, 100, 120])
@pytest.mark.parametrize("letter", ["h", "é"])
@pytest.mark.report("https://github.com/cocoindex-io/cocoindex-code/issues/267")
def test_socket_paths_fit_in_bytes(length: int, letter: str) -> None:
    home = "/" + letter * ((length - 1) // len(letter.encode()))
    path = config.socket_path("0123456789ab", {"HOME": home})
    assert len(bytes(path)) <= 103
    fits = len(f"{home}/.tarsd/0123456789ab.sock".encode()) <= 103
    assert path == Path(f"{home}/.tarsd/0123456789ab.sock" if fits else f"/tmp/tars-{os.getuid()}/0123456789ab.sock")


def test_clients_find_the_socket_by_vault_then_config_then_any(env: Env, tmp_path: Path) -> None:
    home = Path(env["TARSD_HOME"])
    assert config.find_sockets(env=env) == []
    write(env, "")
    for name in ("b.sock", "a.sock"):
        (home / name).touch()
    assert config.find_sockets(env=env) == [home / "a.sock", home / "b.sock"]
    write(env, '[vault]\npath = "~/Notes"\n[chunk]\ntokens = "a fault that is none of a client\'s business"\n')
    (by_config,) = config.find_sockets(env=env)
    assert by_config == home / f"{config.vault_id(tmp_path / 'Notes')}.sock"
    (by_option,) = config.find_sockets(tmp_path / "Other", env)
    assert by_option == home / f"{config.vault_id(tmp_path / 'Other')}.sock"
    write(env, "[vault")
    with pytest.raises(ConfigError):
        config.find_sockets(env=env)


def test_effective_settings_can_be_written_back(env: Env, tmp_path: Path) -> None:
    write(env, THE_DOCUMENTED_FILE)
    tables = config.as_tables(config.load(env=env))
    assert tables["vault"]["path"] == str(tmp_path / "Notes")
    assert tables["embedding"]["dimensions"] is None
    assert tables["ollama"] == {"host": "http://localhost:11434", "ca_file": ""}
    assert tables["mcp"] == [{"name": "fetch", "command": ["uvx", "mcp-server-fetch"], "timeout_s": 30.0, "allow": []}]


LONG = "a" * 5000


def test_paths_that_no_file_can_have_are_faults(env: Env) -> None:
    assert faults(env, "", vault=f"/{LONG}") == [
        f"--vault: /{LONG[:59]}… (5001 characters) cannot be a folder: {os.strerror(errno.ENAMETOOLONG)}"
    ]
    (long,) = faults(env, f'[vault]\npath = "~/{LONG}"\n', vault="")
    assert long.startswith("2: vault.path: ~/aaa") and len(long) < 200
    nul = "contains a NUL character"
    assert faults(env, '[vault]\npath = "~/nope\\u0000x"\n', vault="") == [f"2: vault.path: {nul}"]
    with pytest.raises(ConfigError, match=r"vault\.path: contains a NUL"):
        config.find_sockets(env=env)
    assert faults(env, '[[collection]]\nname = "a"\npath = "/a\\u0000"\n') == [f"3: collection[1].path: {nul}"]
    assert faults(env, '[vault]\nmemory_folder = "a\\u0000"\n') == [f"2: vault.memory_folder: {nul}"]
    write(env, "")
    with pytest.raises(ConfigError, match="TARSD_VAULT: /a"):
        config.load(env={**env, "TARSD_VAULT": f"/{LONG}"})


def test_an_empty_path_is_no_folder(env: Env, tmp_path: Path) -> None:
    assert faults(env, '[vault]\npath = ""\n', vault="") == [
        "2: vault.path: is empty; run: tarsd init --force --vault PATH"
    ]
    write(env, '[vault]\npath = "~/Notes"\n')
    assert config.load(env={**env, "TARSD_VAULT": ""}).vault == tmp_path / "Notes"


@pytest.mark.parametrize("text", ["[vault]\npath = 3\n", "vault = 3\n"])
def test_a_vault_of_another_type_is_one_fault(env: Env, text: str) -> None:
    assert len(faults(env, text, vault="")) == 1


def test_all_that_an_entry_lacks_is_told_together(env: Env) -> None:
    assert faults(env, '[[collection]]\nname = "a/b"\n[[mcp]]\nname = 1\n') == [
        "1: collection[1].path: must be a folder",
        "2: collection[1].name: must be a name without / or :",
        '3: mcp[1].command: a server needs either command = ["program", "argument"] or a url',
        "4: mcp[1].name: must be a name that no other server uses",
    ]


def test_a_config_that_is_a_pipe_is_not_waited_for(env: Env, tmp_path: Path) -> None:
    Path(env["TARSD_HOME"]).mkdir()
    os.mkfifo(Path(env["TARSD_HOME"]) / "config.toml")
    with pytest.raises(ConfigError, match=r"config\.toml is not a regular file"):
        config.load(env=env)
    with pytest.raises(ConfigError, match="is not a regular file"):
        config.find_sockets(env=env)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ('["pfd"]', 'there is no "pfd"; did you mean "pdf"?'),
        ('["pdf", "pictures"]', 'there is no "pictures"; did you mean "picture"?'),
        ('["audio"]', 'there is no "audio"; it may list pdf, office, book, web, picture'),
    ],
)
def test_a_kind_of_file_that_does_not_exist_is_named(env: Env, named: str, said: str) -> None:
    write(env, f"[files]\nkinds = {named}\n")
    with pytest.raises(ConfigError) as wrong:
        config.load(env=env)
    assert f"2: files.kinds: {said}" in str(wrong.value.message) + "".join(map(str, wrong.value.args))
