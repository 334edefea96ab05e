"""The rewriter: what it makes of CUDA's own syntax, and what it refuses, with its line."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tests.cuda.emulator.building import CXX, EMULATOR, module_of, rewrite


@pytest.fixture(scope="module")
def rewriter() -> ModuleType:
    return module_of(EMULATOR / "rewrite.py")


def rewritten(rewriter: ModuleType, source: str) -> str:
    file = rewriter.File(source, "file.cu")
    file.rewrite(rewriter.parameters_of_kernels(file))
    text = file.edited()
    assert text.count("\n") == source.count("\n")
    return text


LAUNCHES = [
    ("k<<<1, 2>>>(a);", 'CUDA_EMU_LAUNCH((k), "", 1, 2)(a);'),
    ("ns::k<float, 32><<<g, b, n * 4, s>>>(a);", 'CUDA_EMU_LAUNCH((ns::k<float, 32>), "", g, b, n * 4, s)(a);'),
    ("::k<(3 > 2)><<<dim3(1, 2), 32>>>();", 'CUDA_EMU_LAUNCH((::k<(3 > 2)>), "", dim3(1, 2), 32)();'),
    ("(c ? k : l)<<<1, 2>>>(a);", 'CUDA_EMU_LAUNCH(((c ? k : l)), "", 1, 2)(a);'),
    ("this->table.k<<<1, 2>>>(a);", 'CUDA_EMU_LAUNCH((this->table.k), "", 1, 2)(a);'),
    ("if (n) k <<< 1,\n 2 >>> (a);", 'if (n) CUDA_EMU_LAUNCH((k), "",   1,\n 2 ) (a);'),
    ("#define L(N) N##Kernel<<<1, 2>>>(a)", '#define L(N) CUDA_EMU_LAUNCH((N##Kernel), "", 1, 2)(a)'),
    ("KERNEL void k(int* a) {} k<<<1, 2>>>(a);", 'KERNEL void k(int* a) {} CUDA_EMU_LAUNCH((k), "", 1, 2)(a);'),
    ("table[i + 1]<<<1, 2>>>(a);", 'CUDA_EMU_LAUNCH((table[i + 1]), "", 1, 2)(a);'),
    ("k<<<1, 2>>>(NULL, f(a), NULL);", 'CUDA_EMU_LAUNCH((k), "", 1, 2)(nullptr, f(a), nullptr);'),
    ("k<<<f(x[1], {1, 2}), 2>>>(a);", 'CUDA_EMU_LAUNCH((k), "", f(x[1], {1, 2}), 2)(a);'),
    ('s = "k<<<1, 2>>>(a)"; // k<<<1, 2>>>(a)', 's = "k<<<1, 2>>>(a)"; // k<<<1, 2>>>(a)'),
    ("int x = 1'000 << 2; /* <<< */", "int x = 1'000 << 2; /* <<< */"),
    ('R"x(k<<<)" )x";', 'R"x(k<<<)" )x";'),
]


@pytest.mark.parametrize(("source", "wanted"), LAUNCHES)
def test_launches(rewriter: ModuleType, source: str, wanted: str) -> None:
    assert rewritten(rewriter, source) == wanted


def test_a_launch_knows_the_names_of_the_parameters(rewriter: ModuleType) -> None:
    source = (
        "template <class T> __global__ static void __launch_bounds__(256)\n"
        "k(const T* __restrict__ a, float (out)[4], size_t n = f(1, 2), int) {}\n"
        "void f() { k<float><<<1, 2>>>(x, y, 3, 4); }\n"
    )
    assert '(k<float>), "a,out,n,", 1, 2)' in rewritten(rewriter, source)


@pytest.mark.parametrize(
    ("source", "alone"),
    [
        ("__global__ void k(int* a);\n__global__ void k(int* b) {}\nvoid f() { k<<<1, 2>>>(a); }", {"k"}),
        ("#define D(N) __global__ void N##K(int* a) {} void N() { N##K<<<1, 2>>>(a); }", {"N##K"}),
        ("__global__ void k(int* a) {} void k(Array* a) { k<<<1, 2>>>(a->p); }", set()),  # overloaded
        ("__global__ void k(int* a) {} __global__ void k(float* a) {}", set()),
        ("template <class T>\nstatic __global__ void k(T* a) {}", set()),
        ("__global__ void k(int* a, int n = 3) {}", set()),
        ("__global__ void k(int* a) {} void (*p)(int*) = k;", set()),
    ],
)
def test_kernels_whose_parameters_the_compiler_can_tell(rewriter: ModuleType, source: str, alone: set[str]) -> None:
    file = rewriter.File(source, "file.cu")
    assert rewriter.kernels_alone([file]) == alone
    file.rewrite(rewriter.parameters_of_kernels(file), alone)
    assert ("CUDA_EMU_LAUNCH_ONE" in file.edited()) == bool(alone)


SHARED = [
    ("__shared__ float s[4];", 'Shared<CudaEmuShared1_0_0, decltype(CudaEmuShared1_0_0::s)>("s", "float s[4]").s;'),
    ("static __shared__ int n;", "struct CudaEmuShared1_7_0 { int n; };"),
    ("__shared__ T a[N][N + 1], b[2];", "struct CudaEmuShared1_0_1 { T b[2]; };"),
    ("extern __shared__ float s[];", "float* s = (float*)::cuda_emu::DynamicShared();"),
    ("extern __shared__ __align__(16) unsigned char s[];", "unsigned char* s = (unsigned char*)"),
    ("extern __shared__ float s[][32];", "float (*s)[32] = (float (*)[32])::cuda_emu::DynamicShared();"),
]


@pytest.mark.parametrize(("source", "part"), SHARED)
def test_shared_memory(rewriter: ModuleType, source: str, part: str) -> None:
    assert part in rewritten(rewriter, source)


def test_pragmas(rewriter: ModuleType) -> None:
    source = "#pragma unroll\n  #pragma unroll 4\n#pragma unroll (2)\n#pragma unroll N\n#pragma omp\n"
    wanted = "#pragma GCC unroll 8\n#pragma GCC unroll 4\n#pragma GCC unroll 2\n\n#pragma omp\n"
    assert rewritten(rewriter, source) == wanted


REFUSED = [
    ('\n  asm volatile("membar.gl;");', 2, "inline PTX cannot run on the CPU"),
    ('int x;\n__asm__("");', 2, "inline PTX"),
    ("#include <mma.h>", 1, "tensor cores"),
    ("#include <cublas_v2.h>", 1, "NVIDIA's libraries"),
    ("#include <thrust/sort.h>", 1, "NVIDIA's libraries"),
    ("#include <cuda_bf16.h>", 1, "only half"),
    ("cudaLaunchCooperativeKernel(f);", 1, "barriers of a whole grid"),
    ("cudaTextureObject_t t;", 1, "textures"),
    ("\n\ncudaGraphLaunch(g, s);", 3, "CUDA graphs"),
    ("__global__ void k() { l<<<1, 1>>>(); }", 1, "dynamic parallelism"),
    ("__global__ void k(float& x) {}", 1, "a parameter cannot be a reference"),
    ("k<<<1, 2>>>;", 1, "needs its arguments in parentheses"),
    ("k<<<1, 2(a);", 1, "<<< without >>>"),
    ("= <<<1, 2>>>(a);", 1, "no name of a kernel"),
    ("static void k(int* a) {}\nvoid f() { k<<<1, 2>>>(a); }", 2, "launch of k, which is no kernel: write __global__"),
    ("__device__ void k(int* a) {}\nvoid f() { k<<<1, 2>>>(a); }", 2, "write __global__ before its void"),
    ("__shared__ float s[2] = {1, 2};", 1, "cannot have an initial value"),
    ("extern __shared__ float s;", 1, "dynamic shared memory is declared as"),
]


@pytest.mark.parametrize(("source", "line", "words"), REFUSED)
def test_what_cannot_run_is_refused_with_its_line(rewriter: ModuleType, source: str, line: int, words: str) -> None:
    with pytest.raises(rewriter.CudaError) as refused:
        rewritten(rewriter, source)
    assert str(refused.value).startswith(f"file.cu:{line}: error: ") and words in str(refused.value)


def test_what_is_not_for_the_emulator_is_left_alone(rewriter: ModuleType) -> None:
    source = (
        '#ifndef __CUDA_EMU__\nasm("");\n#else\nk<<<1, 2>>>(a);\n#endif\n#if defined(__CUDA_EMU__)\nint x;\n#else\n'
        'asm("");\n#endif\n#if 0\n#ifdef A\nasm("");\n#endif\n#endif\n'
    )
    assert rewritten(rewriter, source).count("CUDA_EMU_LAUNCH") == 1


def test_headers_with_kernels_are_rewritten_and_all_are_listed(tmp_path: Path) -> None:
    folder = tmp_path / "ein Ordner mit Ümläuten"
    (folder / "sub").mkdir(parents=True)
    (folder / "plain.h").write_text("#pragma once\nint plain();\n")
    (folder / "sub" / "tile.cuh").write_text(
        '#pragma once\n#include "../plain.h"\n__device__ void f() {\n__shared__ int t;\n}\n'
    )
    (folder / "main.cu").write_text('#include "sub/tile.cuh"\n#include "plain.h"\n#include <cstdio>\nint main() {}\n')
    made = tmp_path / "out put" / "main.cc"
    done = rewrite(folder / "main.cu", made)
    assert (done.returncode, done.stderr) == (0, "")
    (copy,) = (tmp_path / "out put" / "main.cc.headers").iterdir()
    text = copy.read_text(encoding="utf-8")
    assert text.startswith(f'#line 1 "{folder / "sub" / "tile.cuh"}"\n') and "Shared<" in text
    assert f'#include "{folder / "plain.h"}"' in text and f'#include "{copy}"' in made.read_text(encoding="utf-8")
    listed = Path(f"{made}.d").read_text(encoding="utf-8").replace("\\ ", " ")
    assert all(str(folder / name) in listed for name in ("main.cu", "plain.h", "sub/tile.cuh"))


def test_errors_go_to_the_terminal_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "x.cu").write_text("k<<<1;\n")
    done = rewrite(tmp_path / "x.cu", tmp_path / "x.cc")
    assert done.returncode == 1 and done.stderr == f"{tmp_path / 'x.cu'}:1: error: <<< without >>>\n"
    done = rewrite(tmp_path / "none.cu", tmp_path / "x.cc")
    assert done.returncode == 1 and done.stderr.count("\n") == 1


def test_the_compiler_says_what_a_kernel_cannot_be_given(tmp_path: Path) -> None:
    source = tmp_path / "vector.cu"
    source.write_text(
        "#include <vector>\n__global__ void k(std::vector<int> v) {}\n"
        "void f() {\n  k<<<1, 1>>>(std::vector<int>());\n}\n"
    )
    assert rewrite(source, tmp_path / "vector.cc").returncode == 0
    command = [CXX, "-std=c++17", "-fsyntax-only", f"-I{EMULATOR / 'include'}", str(tmp_path / "vector.cc")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "vector.cu:4" in done.stderr and "not std::vector" in done.stderr
