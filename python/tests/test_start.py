"""Modules that the command line loads before it answers, and its end on a closed pipe."""

import errno
import os
import subprocess
import sys
from importlib import import_module

import pytest

from aqumen import cli
from aqumen.cli.verbs import VERBS

DEAR = {
    "numpy",
    "aqumen.aqms",
    "aqumen._store",
    "aqumen.view.report",
    "aqumen.engines.external.ns2",
    "aqumen.engines.external.ns3",
    "rich.progress",
}
LOADED = "import sys; from aqumen.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"


@pytest.mark.parametrize(
    ("args", "unneeded"),
    [
        (["--help"], {"rich", "aqumen.comparison", "aqumen.scenario"}),
        (["list", "aqms"], {"aqumen.comparison"}),
        (["run", "arm-pfc/exp1", "--until", "2s"], {"aqumen.theory"}),
        (["run", "arm-pfc/exp1", "--until", "2s", "--json"], {"rich", "aqumen.theory"}),
    ],
)
def test_a_short_run_loads_nothing_dear(args, unneeded):
    done = subprocess.run([sys.executable, "-c", LOADED, *args], capture_output=True, text=True, check=True)
    assert done.stdout
    assert not (DEAR | unneeded) & set(done.stderr.split())


def test_the_table_of_verbs_says_what_their_help_says():
    for module, function, summary in VERBS.values():
        command = getattr(import_module(f"aqumen.cli.{module}"), function)
        assert command.help.splitlines()[0] == summary


def test_the_help_lists_every_verb_and_each_has_its_own(aqumen_cli):
    code, out, err = aqumen_cli()
    assert (code, err) == (0, "")
    for verb in VERBS:
        assert f"\n  {verb} " in out
        code, own, err = aqumen_cli(verb, "--help")
        assert (code, err) == (0, "")
        assert own.startswith(f"Usage: aqumen {verb}")


def shell(command, **environment):
    run = f"set -o pipefail; {sys.executable} -m aqumen {command}"
    return subprocess.run(
        ["bash", "-c", run], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"} | environment
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("what", ["--help", "list aqms", "list aqms --json", "run arm-pfc/exp1 --until 2s"])
@pytest.mark.parametrize("reader", ["head -c 5", "true"])
def test_a_reader_that_leaves_is_no_failure(what, reader, unbuffered):
    done = shell(f"{what} | {reader}", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 0
    assert "aqumen:" not in done.stderr.replace("aqumen: every single-queue AQM", "").replace("aqumen: units", "")
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("what", ["--help", "list traffic --json", "run arm-pfc/exp1 --until 2s"])
def test_a_full_disk_under_the_output_is_told_in_one_line(what, unbuffered):
    done = shell(f"{what} > /dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 2
    assert done.stderr == "aqumen: cannot write to standard output: No space left on device\n"


def test_a_full_disk_under_a_file_is_told_with_its_name(capfd, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "runs/pi-1.json")

    monkeypatch.setattr(cli, "_answer", full)
    monkeypatch.setattr(cli, "_drop_output", lambda: None)
    assert cli.main(["list"]) == 2
    assert capfd.readouterr().err == "aqumen: runs/pi-1.json: No space left on device\n"


def test_a_closed_output_is_no_failure():
    done = shell("run arm-pfc/exp1 --until 2s >&-")
    assert (done.returncode, done.stderr) == (0, "")
