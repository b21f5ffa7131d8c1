"""The installed package: its version and its command."""

import re
import tomllib
from importlib.metadata import entry_points, version
from pathlib import Path

import aqumen

ROOT = Path(__file__).parents[2]


def test_one_version_everywhere():
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert aqumen.__version__ == version("aqumen") == workspace
    cited = dict(
        re.findall(r'^(version|date-released): "?([^"\n]+)', (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    )
    assert cited["version"] == workspace
    newest = re.search(r"^## (\d\S*) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest.groups() == (workspace, cited["date-released"])
    assert f"\nPKG_VERSION:={workspace}\n" in (ROOT / "packaging" / "openwrt" / "aqumend" / "Makefile").read_text()


def test_the_command_is_installed():
    (command,) = entry_points(group="console_scripts", name="aqumen")
    assert command.value == "aqumen.cli:main"
