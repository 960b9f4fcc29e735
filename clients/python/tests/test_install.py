"""The package as users install it, and the example with it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import weft

CLIENT = Path(__file__).parents[1]


def test_it_installs_without_a_compiler_and_the_example_runs(lab: weft.Laboratory, tmp_path: Path) -> None:
    source, installed = tmp_path / "source", tmp_path / "installed"
    # What setuptools leaves behind is not for the checkout.
    shutil.copytree(CLIENT, source, ignore=shutil.ignore_patterns("*.egg-info", "build"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index"]
    subprocess.run([*pip, "--no-build-isolation", "--target", installed, source], check=True)
    assert (installed / "weft" / "py.typed").exists() and not list(installed.rglob("*.so"))
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, source / "examples" / "victim.py", "S1:3", "--cut", "S3:2", "--seconds", "3"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0].split() == ["s", "bytes/s", "XmitWait", "events"]
    assert len(lines) >= 4 and all(float(line.split()[1]) >= 0 for line in lines[1:])
    for event in ("link-down S3:2", "link-up S3:2", "routed"):
        assert event in ran.stdout, ran.stdout
    command = [sys.executable, source / "examples" / "victim.py", "S9:1", "--cut", "S3:2"]
    assert "no port S9:1 answers" in subprocess.run(command, env=environment, capture_output=True, text=True).stderr


def test_routings_need_no_laboratory(tmp_path: Path) -> None:
    topology = CLIENT.parents[1] / "topologies" / "ring-4.topo"
    assert weft.compute_routes(topology, "updn", dump=tmp_path)["engine"] == "updn"
    assert weft.verify_routes(topology, tmp_path)["deadlock_free"]
    assert weft.compare_routes(topology, ["updn", "minhop"], runs=10)["rows"]
