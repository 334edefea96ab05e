"""Run the native code under the address and undefined-behaviour sanitizers: tests/cpp, then the array tests; and what
threads share under the thread sanitizer.

    python tools/sanitize.py

Works on a copy of the sources under build/sanitize, so that the modules in place stay the fast ones.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from build_native import jobs, this_python
from setup_environment import ROOT, find_cmake, find_compiler

COPY = ROOT / "build" / "sanitize" / "tree"
BUILD = ROOT / "build" / "sanitize" / "cmake"
ARRAY_TESTS = ("ndarray", "native")  # in the names of test files
THREADED = [f"tests/cpp/{name}.cc" for name in ("main", "test_parallel", "test_memory")]
THREADED += [f"src/kernels/{name}.cc" for name in ("parallel", "isa", "buffer", "memory", "memory_guard")]
THREADED += ["src/kernels/caching_allocator.cc"]


def main() -> int:
    copy_sources()
    cmake = str(find_cmake(sysconfig.get_paths()["scripts"]))
    options = [
        "-DNEEDLE_SANITIZE=ON",
        "-DNEEDLE_TESTS=ON",
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        "-DCMAKE_RULE_MESSAGES=OFF",
    ]
    run([cmake, "--log-level=WARNING", "-S", COPY, "-B", BUILD, *this_python(), *options])
    run([cmake, "--build", BUILD, "--parallel", str(jobs()), "--", "--quiet"])
    run([Path(cmake).with_name("ctest"), "--test-dir", BUILD, "--output-on-failure"])
    if is_clang():
        print("sanitizers: the array tests are left out: Clang's sanitizers cannot be loaded into a Python", flush=True)
    else:
        run([sys.executable, "-m", "pytest", "-q", "-n", "2", *array_tests()], under_sanitizers())
    check_threads()
    print("sanitizers: clean", flush=True)
    return 0


def check_threads() -> None:
    program = BUILD / "threaded_tests"
    options = ["-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=thread", "-pthread", "-Isrc"]
    options += ["-DNEEDLE_THREAD_SANITIZER"]
    run([*find_compiler(), *options, *THREADED, "-o", program])
    run([program])


def copy_sources() -> None:
    """Copy what is compiled and tested, without the modules that were built in place."""
    shutil.rmtree(COPY, ignore_errors=True)
    for name in ("src", "python", "tests", "apps", "hw"):
        shutil.copytree(ROOT / name, COPY / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for name in ("CMakeLists.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, COPY)


def array_tests() -> list[str]:
    files = sorted((COPY / "tests" / "unit").rglob("test_*.py"))
    return [str(path) for path in files if any(word in path.stem for word in ARRAY_TESTS)]


def is_clang() -> bool:
    done = subprocess.run([*find_compiler(), "--version"], stdout=subprocess.PIPE, text=True)
    return "clang" in done.stdout.lower()


def under_sanitizers() -> dict[str, str]:
    """Python itself is not instrumented, so the sanitizers must be loaded first; and its own leaks are not ours."""
    compiler = find_compiler()
    libraries = [library_of(compiler, name) for name in ("libasan.so", "libubsan.so", "libstdc++.so")]
    return {
        "LD_PRELOAD": " ".join(path for path in libraries if path),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def library_of(compiler: list[str], name: str) -> str:
    """The path of a library that the compiler links; empty where it has none of that name."""
    done = subprocess.run([*compiler, f"-print-file-name={name}"], stdout=subprocess.PIPE, text=True)
    path = os.path.realpath(done.stdout.strip())
    return path if os.path.isabs(done.stdout.strip()) else ""


def run(command: list[object], variables: dict[str, str] | None = None) -> None:
    words = [str(word) for word in command]
    print("sanitizers:", Path(words[0]).name, flush=True)
    status = subprocess.run(
        words, cwd=COPY, env={**os.environ, **(variables or {})}, stdin=subprocess.DEVNULL
    ).returncode
    if status:
        sys.exit(f"sanitizers: {Path(words[0]).name} failed with status {status}")


if __name__ == "__main__":
    sys.exit(main())
