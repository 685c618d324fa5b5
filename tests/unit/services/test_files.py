"""The files of a service, for launchd and systemd."""

from __future__ import annotations

import plistlib
from pathlib import Path

import pytest

from tarsd import services
from tarsd.services import Launch, ServiceError
from tests.unit.services.conftest import PLATFORMS, ROOT, Start, launch_of, sample

AWKWARD = """/Users/ada & söhne/<No "tes"> 100% $HOME ${X} %h {a;b} \\x 'q' 👩‍🚀\u00a0z"""


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_samples_are_what_would_be_written(platform: str) -> None:
    file, text = sample(platform)
    assert file.read_text(encoding="utf-8") == text
    assert [one.name for one in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_any_path_comes_back_out_of_the_file(platform: str, on: Start) -> None:
    service = services.service("0123456789ab", on(platform).machine)
    launch = launch_of(f"{AWKWARD}/bin/python3", "run", "--vault", AWKWARD, PATH=f"{AWKWARD}:/bin", TARSD_HOME=AWKWARD)
    service.file.parent.mkdir(parents=True)
    service.file.write_text(service.text(launch), encoding="utf-8")
    assert tuple(service.arguments()) == launch.arguments
    assert services.vault_of(service) == Path(AWKWARD)
    assert services.installed(on(platform).machine) == []


def test_a_property_list_says_what_launchd_must_know(on: Start) -> None:
    service = services.service("0123456789ab", on("darwin").machine)
    launch = launch_of("/v/bin/python3", "run", PATH="/a & b:/<c>")
    agent = plistlib.loads(service.text(launch).encode())
    assert agent == {
        "Label": "md.tarsd.0123456789ab",
        "ProgramArguments": ["/v/bin/python3", "run"],
        "EnvironmentVariables": {"HOME": "/Users/ada", "PATH": "/a & b:/<c>"},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},  # a second daemon exits with 0, and must not come again and again
        "ThrottleInterval": 30,
        "ExitTimeOut": 20,
        "StandardOutPath": "/dev/null",
        "StandardErrorPath": "/dev/null",
        "ProcessType": "Standard",
        "LowPriorityIO": True,
    }


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
def test_a_property_list_keeps_other_ends_of_lines(on: Start, sign: str) -> None:
    service = services.service("0123456789ab", on("darwin").machine)
    launch = launch_of("/v/bin/python3", "--vault", f"/a{sign}b", TARSD_HOME=f"/c{sign} d")
    agent = plistlib.loads(service.text(launch).encode())
    assert agent["ProgramArguments"] == list(launch.arguments)
    assert agent["EnvironmentVariables"] == launch.environment


@pytest.mark.parametrize("sign", ["\ufffe", "\uffff"])
def test_a_property_list_cannot_hold_everything(on: Start, sign: str) -> None:
    service = services.service("0123456789ab", on("darwin").machine)
    for launch in (launch_of("/v/bin/python3", f"/a{sign}"), launch_of("/v/bin/python3", TARSD_HOME=f"/a{sign}")):
        with pytest.raises(ServiceError, match=rf"U\+{ord(sign):X}") as caught:
            service.text(launch)
        assert caught.value.hint


def test_a_unit_says_what_systemd_must_know(on: Start) -> None:
    service = services.service("0123456789ab", on("linux").machine)
    launch = Launch("0123456789ab", "100 % \\", ("/v/bin/python3", "run", "--vault", "/a b"), {"PATH": "/a $b:/100%"})
    lines = service.text(launch).splitlines()
    for line in (
        "Description=tars: 100 %% \\, indexed and watched",
        'ExecStart=:/v/bin/python3 run --vault "/a b"',
        'Environment="PATH=/a $b:/100%%"',
        "Type=notify",
        "NotifyAccess=main",
        "WatchdogSec=60",
        "Restart=on-failure",
        "RestartPreventExitStatus=0 2 78",  # systemd calls an end before READY=1 a failure, even with 0
        "StandardOutput=null",
        "StandardError=null",
        "NoNewPrivileges=yes",
        "WantedBy=default.target",
    ):
        assert line in lines
    assert not [line for line in lines if line.startswith(("ProtectHome", "PrivateTmp", "MemoryDenyWriteExecute"))]


def test_the_templates_are_part_of_the_package() -> None:
    from tarsd.services.base import TEMPLATES

    assert TEMPLATES.relative_to(Path(services.__file__).parent.parent) == Path("data/services")
    assert '"data/**/*"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


if __name__ == "__main__":
    for platform in PLATFORMS:
        target, content = sample(platform)
        target.write_text(content, encoding="utf-8")
