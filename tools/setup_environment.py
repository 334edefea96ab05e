"""Make ready the Python environment of this checkout, and print the path of its interpreter.

An environment that is active (VIRTUAL_ENV, CONDA_PREFIX, Colab) is used; otherwise `.venv` is made here. It gets the
dependencies that pyproject.toml names, never needle itself: an editable install wins over every other path, so that a
learner's tree would silently test this one. A `.pth` file names this tree's `python/` instead.

Needs the standard library only, and no syntax newer than Python 3.6: a Python that is too old must be able to say so.
"""

import ast
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 10)
OLDEST_CMAKE = (3, 24)
FACTS = """
import importlib.util, json, platform, sys, sysconfig
paths = sysconfig.get_paths()
print(json.dumps({
    "version": sys.version_info[:3], "prefix": sys.prefix, "site": paths["purelib"], "scripts": paths["scripts"],
    "headers": paths["include"], "machine": platform.machine(),
    "makes_venvs": all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")),
}))
"""


class Problem(Exception):
    """Something that the user has to mend; the message is one line with the next step."""


def main():
    try:
        print(prepare())
    except Problem as problem:
        print(f"setup: {problem}", file=sys.stderr)
        return 1
    except OSError as error:  # a disk that is full, an environment that belongs to somebody else
        what = f"cannot write {error.filename}: {error.strerror}"
        print(f"setup: {what}; use an environment of your own", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: stopped; the next make goes on", file=sys.stderr)
        return 130
    return 0


def prepare():
    """Return the interpreter to use, after making sure that it has what this checkout needs."""
    python = active_python() or own_python()
    facts = facts_of(python)
    stamp = Path(facts["prefix"], "needle-setup.stamp")
    before, now = read_stamp(stamp), made_from(facts)
    installed = before.get("installed", []) if all(before.get(name) == now[name] for name in now) else []
    if not set(wanted()) <= set(installed):
        refuse_what_cannot_work(facts)
        fill(python, facts)
        installed = wanted() + [package for package in installed if name_of(package) not in map(name_of, wanted())]
    now.update(installed=installed, tree=str(ROOT), course=has_course())
    if now != before:  # several trees may share an environment: a switch from one to the other installs nothing
        name_this_tree(python, facts)
        stamp.write_text(json.dumps(now), encoding="utf-8")
    return python


# ---- which interpreter ----------------------------------------------------------------------------------------------


def active_python():
    """The interpreter of the active environment, or None."""
    prefix = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    if prefix:
        python = Path(prefix, "bin", "python")
    elif "COLAB_RELEASE_TAG" in os.environ:
        python = Path(sys.executable)
    else:
        return None
    if not facts_of(python):
        raise Problem(f"the active environment has no working {python}; leave it (deactivate) and run make again")
    return python


def own_python():
    """The interpreter of .venv in this tree; makes .venv where it is missing, broken or moved."""
    home = ROOT / ".venv"
    python = home / "bin" / "python"
    facts = facts_of(python)
    if not facts or was_made_elsewhere(home):
        base = base_python()
        say(f"making .venv with Python {dotted(facts_of(base)['version'])}")
        run([base, "-m", "venv", "--clear", home], "python -m venv")
    return python


def was_made_elsewhere(home):
    """Scripts in a .venv hold its path: after a move of the checkout they start nothing."""
    made_in = read_stamp(home / "needle-setup.stamp").get("environment")
    return made_in not in (None, os.path.realpath(str(home)))


def read_stamp(stamp):
    """What an environment says of how it was made; empty if it says nothing."""
    try:
        return json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def base_python():
    """The first Python on PATH that is new enough and can make environments: the one running this, if it can."""
    names = ["python3"] + [f"python3.{minor}" for minor in range(20, OLDEST[1] - 1, -1)]
    found = [shutil.which(name) for name in names]
    candidates = [Path(sys.executable)] + [Path(path) for path in found if path]
    facts = {python: facts_of(python) for python in dict.fromkeys(candidates)}
    for python in facts:
        if facts[python] and not why_not(facts[python]):
            return python
    raise Problem(why_not(facts_of(sys.executable)))


def why_not(facts):
    """What stands against making an environment with this Python, or None."""
    version = dotted(facts["version"])
    if tuple(facts["version"]) < OLDEST:
        return (
            f"Python {version} is too old; install {dotted(OLDEST)} or newer, or name one: make PYTHON=/path/to/python3"
        )
    short = dotted(facts["version"][:2])
    if not facts["makes_venvs"]:
        return f"Python {version} lacks its venv module; install it (Debian, Ubuntu: apt install python{short}-venv)"
    if not Path(facts["headers"], "Python.h").exists():
        return f"Python {version} lacks its C headers; install them (Debian, Ubuntu: apt install python{short}-dev)"
    return None


def facts_of(python):
    """What the interpreter says about itself, as a dict; empty if it does not run."""
    try:
        answer = subprocess.run([str(python), "-I", "-c", FACTS], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return json.loads(answer.stdout.decode()) if answer.returncode == 0 else {}
    except (OSError, ValueError):
        return {}


def made_from(facts):
    """What the environment was made from; it is filled again when any of this changes."""
    program = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    return {"environment": os.path.realpath(facts["prefix"]), "python": facts["version"], "program": program}


# ---- what must be there before anything is downloaded ---------------------------------------------------------------


def refuse_what_cannot_work(facts):
    if tuple(facts["version"]) < OLDEST:
        raise Problem(
            f"the environment {facts['prefix']} has Python {dotted(facts['version'])}, needle needs {dotted(OLDEST)} "
            "or newer; leave it (deactivate), or remove it if it is .venv here, and run make again"
        )
    if facts["machine"] == "x86_64" and runs_translated():
        raise Problem("this Python is built for Intel but the machine is Apple silicon; install an arm64 Python")
    find_compiler()


def runs_translated():
    """Whether an Intel process runs on Apple silicon; its Python would load no native wheel."""
    return output_of(["sysctl", "-n", "hw.optional.arm64"]) == "1"


def find_compiler():
    """The C++ compiler as a command (list of words), tried on a line of C++17."""
    named = os.environ.get("CXX")
    candidates = [shlex.split(named)] if named else [["c++"], ["g++"], ["clang++"]]
    for command in candidates:
        if compiles(command):
            return command
    what = f"CXX={named} compiles no C++17" if named else "no C++17 compiler found"
    raise Problem(f"{what}; install one (Debian, Ubuntu: apt install g++; macOS: xcode-select --install)")


def compiles(command):
    try:
        process = subprocess.run(
            command + ["-std=c++17", "-fsyntax-only", "-x", "c++", "-"],
            input=b"#include <optional>\nint main() { return std::optional<int>(0).value(); }\n",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return False
    return process.returncode == 0


def find_cmake(scripts):
    """The path of a cmake that is new enough, from the environment or from PATH; None where there is none."""
    for candidate in [str(Path(scripts, "cmake")), shutil.which("cmake")]:
        version = re.search(r"version (\d+)\.(\d+)", output_of([candidate, "--version"]) if candidate else "")
        if version and tuple(int(part) for part in version.groups()) >= OLDEST_CMAKE:
            return candidate
    return None


# ---- filling it -----------------------------------------------------------------------------------------------------


def fill(python, facts):
    cmake = [] if find_cmake(facts["scripts"]) else [f"cmake>={dotted(OLDEST_CMAKE)}"]
    say("installing what pyproject.toml names (once; some minutes at most)")
    install(python, wanted() + cmake)


def wanted():
    return requirements("dependencies") + requirements("full") + requirements("course") + requirements("dev")


def requirements(name):
    """The list that pyproject.toml keeps under this name. Such a list is also Python; tomllib came only with 3.11."""
    text = project_file().read_text(encoding="utf-8")
    return ast.literal_eval(re.search(rf"^{name} = (\[.*?^\])", text, re.MULTILINE | re.DOTALL).group(1))


def project_file():
    """pyproject.toml; where it is lost, the copy in a learner's tree, so that `make restore` can bring it back."""
    for path in (ROOT / "pyproject.toml", ROOT / ".needle" / "starter" / "pyproject.toml"):
        if path.is_file():
            return path
    raise Problem(f"{ROOT / 'pyproject.toml'} is missing; bring it back (in a clone: git checkout pyproject.toml)")


def name_of(package):
    """numpy>=1.26 → numpy"""
    return re.match(r"[\w.-]+", package).group()


def install(python, packages):
    if not output_of([str(python), "-m", "pip", "--version"]):
        run([python, "-m", "ensurepip"], "python -m ensurepip")
    run(
        [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--retries", "2"] + packages,
        "pip",
    )


def name_this_tree(python, facts):
    """From now on the environment's `import needle` and its needle-course are this tree's."""
    path = Path(facts["site"], "needle-checkout.pth")
    path.write_bytes(os.fsencode(f"{ROOT / 'python'}\n"))  # bytes, since site.py reads it in the locale's encoding
    if has_course():
        write_course_script(python, facts)


def has_course():
    return (ROOT / "python" / "needle_course").is_dir()


def write_course_script(python, facts):
    script = Path(facts["scripts"], "needle-course")
    script.write_bytes(os.fsencode(f'#!/bin/sh\nexec {shlex.quote(str(python))} -m needle_course "$@"\n'))
    script.chmod(0o755)


# ---- small helpers --------------------------------------------------------------------------------------------------


def run(command, name):
    """Run a command quietly; where it fails, the last error that it printed becomes the message, all of it a log."""
    log = ROOT / "build" / "setup.log"
    log.parent.mkdir(exist_ok=True)
    with open(str(log), "wb") as stream:
        words = [str(word) for word in command]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT)
    if done.returncode:
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines or ["it printed nothing"]
        raise Problem(f"{name} failed: {errors[-1]} (is there a network, a proxy? all it said: build/setup.log)")


def output_of(command):
    """What the command prints, stripped; empty if it is missing or fails."""
    try:
        process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return ""
    return process.stdout.decode(errors="replace").strip() if process.returncode == 0 else ""


def dotted(version):
    return ".".join(str(part) for part in version)


def say(text):
    print(f"setup: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
