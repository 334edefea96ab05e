"""Experiments of the notebooks: programs that are built and run apart, and the drawings beside them."""

from __future__ import annotations

import itertools
import shutil
import xml.etree.ElementTree as ET

import pytest
from needle_course import experiments
from needle_course.errors import UserError
from needle_course.experiments import best_of, run_cpp, run_cuda
from needle_course.figures import arrays, networks
from needle_course.figures.drawing import COLOURS, Sheet

SVG = "{http://www.w3.org/2000/svg}"

DOUBLING = """
#include <cuda_runtime.h>
#include <cstdio>

__global__ void DoubleKernel(const float* in, float* out, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) out[i] = 2 * in[i];
}

void Experiment() {
  float numbers[10], *in, *out;
  for (int i = 0; i < 10; i++) numbers[i] = i;
  cudaMalloc(&in, sizeof numbers);
  cudaMalloc(&out, sizeof numbers);
  cudaMemcpy(in, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  DoubleKernel<<<3, 4>>>(in, out, 10);
  cudaMemcpy(numbers, out, sizeof numbers, cudaMemcpyDeviceToHost);
  for (float number : numbers) std::printf("%g ", number);
}
"""


def test_best_of_is_the_fastest_run(monkeypatch):
    ticks = iter([0.0, 3.0, 10.0, 11.0, 20.0, 22.0])  # three runs, of 3, 1 and 2 seconds
    monkeypatch.setattr(experiments.time, "perf_counter", lambda: next(ticks))
    assert best_of(lambda: None, repeats=3) == 1.0


def test_a_program_is_compiled_with_its_flags_and_its_words_are_printed(capsys):
    run_cpp('#include <cstdio>\nint main() { std::printf("N is %d\\n", N); }\n', "-DN=7")
    assert capsys.readouterr().out == "N is 7\n"


def test_a_program_that_cannot_be_compiled_is_the_user_s_mistake():
    with pytest.raises(UserError, match=r"(?s)compiling failed: experiment.cc.*\nexperiment.cc:1:"):
        run_cpp("int main() { return missing; }\n")


def test_a_program_that_fails_or_hangs_is_told(capsys):
    with pytest.raises(UserError, match="running failed"):
        run_cpp("int main() { return 3; }\n")
    with pytest.raises(UserError, match="was stopped"):
        run_cpp("int main() { for (volatile bool on = true; on;) {} }\n", seconds=5)
    assert capsys.readouterr().out == ""


def test_without_a_compiler_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_args, **_named: None)
    with pytest.raises(UserError, match="install"):
        run_cpp("int main() {}\n")


@pytest.mark.slow
def test_a_cuda_source_runs_on_the_emulator_and_is_watched_if_wanted(capsys):
    run_cuda(DOUBLING)
    assert capsys.readouterr().out.split() == [str(2 * i) for i in range(10)]
    run_cuda(DOUBLING.replace("if (i < size) ", ""), check=True)
    said = capsys.readouterr().out
    assert "DoubleKernel" in said and "experiment.cu:6" in said and "(2, 0, 0)" in said  # the kernel, line and thread
    run_cuda(DOUBLING, profile=True)
    assert "experiment.cu:6" in capsys.readouterr().out


# ---- drawings -------------------------------------------------------------------------------------------------------

DRAWINGS = {
    "memory": lambda: arrays.memory((3, 4), (1, 0)),
    "memory, reversed": lambda: arrays.memory((4,), (-2,), offset=6, size=8),
    "blocks": lambda: arrays.blocks(4, 5, 4, tile=8, at=(1, 2)),
    "grid": lambda: arrays.grid(10, 4),
    "tree": lambda: arrays.tree([3, 1, 7, 0]),
    "windows": lambda: networks.windows(4, 5, 3, stride=2),
    "chain": lambda: networks.chain([("a", "(1,)"), ("b", "(2,)")], [(0, 1)], alt="A < chain."),
    "unrolled": lambda: networks.unrolled(3),
    "lstm": networks.lstm,
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_whole_and_has_words(name, tmp_path):
    sheet = DRAWINGS[name]()
    root = ET.fromstring(sheet.save(tmp_path / "sheet.svg").read_text(encoding="utf-8"))
    assert len(root.get("aria-label")) > 20 and root.find(f"{SVG}title").text == sheet.alt
    width, height = sheet.size
    for box in root.iter(f"{SVG}rect"):
        if "%" not in box.get("width"):
            right, low = float(box.get("x")) + float(box.get("width")), float(box.get("y")) + float(box.get("height"))
            assert min(float(box.get("x")), float(box.get("y"))) >= 0 and right <= width and low <= height


def words_of(sheet: Sheet) -> list[str]:
    return [text.text for text in ET.fromstring(sheet.svg()).iter(f"{SVG}text")]


def test_the_memory_of_a_view_counts_what_is_shown_twice():
    words = words_of(arrays.memory((3, 4), (1, 0)))
    assert words.count("× 4") == 3  # each of three places is seen four times
    assert [words.count(str(place)) for place in range(3)] == [5, 5, 5]  # and drawn once in the memory


def test_the_windows_of_an_image_hold_its_pixels():
    words = words_of(networks.windows(3, 3, 2))
    seen = sum(word.isdigit() for word in words)
    assert seen == 9 + 4 * 4 and words.count("4") == 5  # the middle pixel: once in the image, once in each window


def test_a_sum_by_halves_ends_in_the_sum():
    assert words_of(arrays.tree([3, 1, 7, 0, 4, 1, 6, 3]))[-1] == "25"


def test_words_can_be_read_on_every_colour():
    sheet = Sheet(10, 10, "nothing but colours")
    for colour in COLOURS:
        sheet.box(0, 0, 5, 5, "x", colour)
    inks = [text.get("fill") for text in ET.fromstring(sheet.svg()).iter(f"{SVG}text")]
    for colour, ink in zip(COLOURS, inks, strict=True):
        light, dark = sorted((_luminance(colour), _luminance(ink)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) > 3, (colour, ink)  # WCAG 2.1, 1.4.11: contrast of what must be seen


def _luminance(colour: str) -> float:
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_neighbouring_colours_differ_in_brightness():
    assert all(abs(_luminance(a) - _luminance(b)) > 0.03 for a, b in itertools.pairwise(COLOURS))
