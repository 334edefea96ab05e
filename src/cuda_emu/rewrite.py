#!/usr/bin/env python3
"""Turn a CUDA C++ source into C++ for the emulator, keeping every line number.

    rewrite.py IN.cu OUT.cc [-I DIR]...

    k<T><<<grid, block, bytes>>>(a)    ->  CUDA_EMU_LAUNCH((k<T>), "a", grid, block, bytes)(a), or ..._LAUNCH_ONE(...)
    __shared__ float tile[32][33];     ->  struct S {...}; auto& tile = cuda_emu::Shared<S, ...>(...).tile;
    extern __shared__ float s[];       ->  float* s = (float*)cuda_emu::DynamicShared();
    #pragma unroll [N]                 ->  #pragma GCC unroll N

It works on the text, in which comments and the contents of strings are blanked first; it is no parser of C++. Headers
that hold any of this are rewritten too, into OUT.cc.headers/, and OUT.cc.d lists all files that were read (for make).
What cannot run on the CPU, inline PTX for example, is refused with its line.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path


class CudaError(Exception):
    """What stands in a source and cannot be run here: file, line, and why."""


# ---- the text, without what is not code


def code_of(source: str) -> str:
    """The source, same length, with blanks for comments, contents of strings, and what the emulator never compiles."""
    code = list(source)
    position = 0
    while position < len(source):
        position = _blank_next(source, code, position)
    _blank_excluded_lines(code)
    return "".join(code)


def _blank(code: list[str], start: int, end: int) -> None:
    for i in range(start, min(end, len(code))):
        if code[i] != "\n":
            code[i] = " "


def _blank_next(source: str, code: list[str], i: int) -> int:
    """Blank the comment or string that begins at i, if one does; return where to go on."""
    character, two = source[i], source[i : i + 2]
    if two == "//":
        end = _end_of_line(source, i)
        _blank(code, i, end)
    elif two == "/*":
        end = source.find("*/", i + 2) + 2
        end = len(source) if end == 1 else end
        _blank(code, i, end)
    elif character == '"' and re.search(r"(?:^|\W)(?:u8|[uUL])?R$", source[max(0, i - 4) : i]):
        end = _end_of_raw_string(source, i)
        _blank(code, i + 1, end - 1)
    elif character == '"' or (character == "'" and not (i and source[i - 1].isalnum())):  # 1'000 is a number
        end = i + 1
        while end < len(source) and source[end] not in (character, "\n"):
            end += 2 if source[end] == "\\" else 1
        _blank(code, i + 1, end)
        end += 1
    else:
        end = i + 1
    return end


def _end_of_line(source: str, i: int) -> int:
    while i < len(source) and source[i] != "\n":
        i += 2 if source[i] == "\\" else 1  # a backslash before the end of the line joins the next one to it
    return min(i, len(source))


def _end_of_raw_string(source: str, i: int) -> int:
    delimiter = re.match(r'"([^()\\\s]{0,16})\(', source[i:])
    if delimiter is None:
        return i + 1
    closing = ")" + delimiter.group(1) + '"'
    end = source.find(closing, i)
    return len(source) if end < 0 else end + len(closing)


NOT_HERE = {"ifndef __CUDA_EMU__", "if !defined__CUDA_EMU__", "if 0"}
ONLY_HERE = {"ifdef __CUDA_EMU__", "if defined__CUDA_EMU__", "if 1"}


def _blank_excluded_lines(code: list[str]) -> None:
    """Blank what stands under `#ifndef __CUDA_EMU__`, under the #else of `#ifdef __CUDA_EMU__`, and under `#if 0`."""
    open_ifs: list[tuple[bool, bool]] = []  # whether the lines here are excluded, and those of the #else
    offset = 0
    for line in "".join(code).splitlines(keepends=True):
        directive = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b[ \t]*(.*)", line)
        if directive is None:
            if any(excluded for excluded, _ in open_ifs):
                _blank(code, offset, offset + len(line))
        elif directive.group(1) in ("if", "ifdef", "ifndef"):
            condition = directive.group(1) + " " + re.sub(r"[\s()]", "", directive.group(2))
            open_ifs.append((condition in NOT_HERE, condition in ONLY_HERE))
        elif open_ifs and directive.group(1) == "endif":
            open_ifs.pop()
        elif open_ifs:
            open_ifs[-1] = (open_ifs[-1][1], open_ifs[-1][1])
        offset += len(line)


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def closing(code: str, i: int) -> int:
    """The index just past the bracket that closes code[i]; -1 if none does."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    opener, closer, depth = code[i], pairs[code[i]], 0
    for j in range(i, len(code)):
        depth += (code[j] == opener) - (code[j] == closer)
        if depth == 0:
            return j + 1
    return -1


def split_at_commas(text: str) -> list[str]:
    """The parts between the commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def escaped(text: str) -> str:
    """The text as it stands between the quotes of a string."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


# ---- one file

INCLUDE = re.compile(r'^([ \t]*#[ \t]*include[ \t]*)(["<])([^">\n]+)[">]', re.M)


class File:
    """One source file and the edits that make C++ of it."""

    def __init__(self, source: str, name: str) -> None:
        self.source, self.name, self.code = source, name, code_of(source)
        self.edits: list[tuple[int, int, str]] = []

    def fail(self, position: int, message: str) -> CudaError:
        return CudaError(f"{self.name}:{line_of(self.source, position)}: error: {message}")

    def edit(self, start: int, end: int, text: str) -> None:
        self.edits.append((start, end, text))

    def edited(self) -> str:
        text = self.source
        for start, end, new in sorted(self.edits, key=lambda edit: edit[:2], reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def newlines(self, start: int, end: int) -> str:
        """As many ends of lines as there are in this span, so that no line number changes."""
        joined = self.code[start:end].count("\\\n")
        return "\\\n" * joined + "\n" * (self.code.count("\n", start, end) - joined)

    def rewrite(self, parameters: dict[str, str], alone: Collection[str] = ()) -> None:
        """Collect the edits. `parameters` has, by the name of a kernel, the names of its parameters.

        alone: the names that stand for one kernel and for nothing else
        """
        refuse_what_cannot_run(self)
        rewrite_launches(self, parameters, alone)
        rewrite_shared(self)
        rewrite_pragmas(self)


def includes_in(file: File) -> Iterator[re.Match[str]]:
    """Each #include that is not in a comment, and is for the emulator."""
    for include in INCLUDE.finditer(file.source):
        if "include" in file.code[include.start() : include.end()]:
            yield include


# ---- what cannot run on a CPU

REFUSED = [
    (
        r"\b(?:asm|__asm__|__asm)\b\s*(?:(?:volatile|__volatile__|goto)\b\s*)*\(",
        "inline PTX cannot run on the CPU; put it between `#ifndef __CUDA_EMU__` and `#else`, and plain C++ behind",
    ),
    (r"\b(?:nvcuda\s*::\s*)?wmma\s*::", "tensor cores (wmma) are not emulated"),
    (r"\bcudaLaunchCooperativeKernel\b|\bthis_grid\s*\(", "barriers of a whole grid are not emulated; launch twice"),
    (r"\bcudaTextureObject_t\b|\btexture\s*<|\btex[123]D\w*\s*[(<]", "textures are not emulated; use a plain array"),
    (r"\bcudaGraph\w*|\bcudaStreamBeginCapture\b", "CUDA graphs are not emulated"),
    (r"\bcuLaunchKernel\b|\bcuModuleLoad\w*", "the driver API is not emulated; launch with <<< >>>"),
    (r"\bcuda\s*::\s*(?:pipeline|barrier|memcpy_async)\b|\b__pipeline_\w+", "asynchronous copies are not emulated"),
    (r"\b__cluster_dims__\b|\bthis_cluster\s*\(", "clusters of blocks are not emulated"),
    (r"\bcudaLaunchKernel(?:Ex\w*)?\b", "cudaLaunchKernel is not emulated; launch with <<< >>>"),
]
REFUSED_HEADERS = [
    (
        r"cublas|cusparse|cusolver|cufft|curand|cudnn|nccl|nvrtc|cutlass|thrust/|cub/",
        "NVIDIA's libraries are not there",
    ),
    (r"mma\.h", "tensor cores (wmma) are not emulated"),
    (r"cuda_bf16|cuda_fp8", "of the short floating-point types only half (cuda_fp16.h) is emulated"),
    (r"cuda/", "libcu++ (<cuda/...>) is not emulated"),
]


def refuse_what_cannot_run(file: File) -> None:
    for pattern, message in REFUSED:
        for found in re.finditer(pattern, file.code):
            raise file.fail(found.start(), message)
    for include in includes_in(file):
        for pattern, message in REFUSED_HEADERS:
            if re.match(pattern, include.group(3)):
                raise file.fail(include.start(), f"{message} (#include of {include.group(3)})")


# ---- kernels: the names of their parameters, for reports that say `a[1000]`

KERNEL = re.compile(
    r"\b__global__\b(?:\s*\\?\s*(?:static|inline|void|__launch_bounds__\s*\([^;{]*?\)))*\s*\\?\s*([\w#]+)\s*\("
)


def kernels_in(file: File) -> Iterator[tuple[str, int, int]]:
    """Name, and span of the parameter list, of each kernel that is declared or defined."""
    for found in KERNEL.finditer(file.code):
        end = closing(file.code, found.end() - 1)
        if end > 0:
            yield found.group(1), found.end(), end - 1


def parameters_of_kernels(file: File) -> dict[str, str]:
    names = {}
    for kernel, start, end in kernels_in(file):
        parameters = split_at_commas(re.sub(r"\\\n", " ", file.code[start:end]))
        for parameter in parameters:
            if "&" in parameter.split("=")[0]:
                raise file.fail(start, f"kernel {kernel}: a parameter cannot be a reference; pass a pointer or a value")
        names[kernel] = ",".join(_name_of_parameter(parameter) for parameter in parameters)
    return names


def kernels_alone(files: Collection[File]) -> set[str]:
    """The names of kernels of which the compiler can tell the parameters' types by the name.

    Such a kernel is defined once and is no template; nothing else has its name, so that it is never overloaded; and it
    gets all its arguments.
    """
    declared: Counter[str] = Counter()
    defined: Counter[str] = Counter()
    for file in files:
        for name, start, end in kernels_in(file):
            declared[name] += 1
            several = _is_template(file.code, start) or "=" in file.code[start:end]
            defined[name] += 2 if several else bool(_BODY.match(file.code, end))
    return {name for name in declared if defined[name] == 1 and _other_uses(name, files) == declared[name]}


def _is_template(code: str, parameters: int) -> bool:
    """Whether the kernel whose parameters begin there is a template."""
    start = code.rfind("__global__", 0, parameters)
    before = re.split(r"[;{}]", code[:start])[-1]
    return "template" in before or re.search(r">[\w\s\\\"]*$", before) is not None


def _other_uses(name: str, files: Collection[File]) -> int:
    """How often a name stands in the files, launches aside."""
    use = re.compile(rf"(?<![\w#]){re.escape(name)}(?![\w#])(?!\s*<<<)")
    return sum(len(use.findall(file.code)) for file in files)


def _name_of_parameter(parameter: str) -> str:
    declared = re.sub(r"\[[^\]]*\]", "", parameter.split("=")[0])
    words = re.findall(r"[A-Za-z_]\w*", declared)
    return words[-1] if len(words) > 1 else ""


_BODY = re.compile(r"\)\s*\\?\s*\{")


def bodies_of_kernels(file: File) -> list[tuple[int, int]]:
    bodies = []
    for _, _, end in kernels_in(file):
        rest = _BODY.match(file.code, end)
        if rest:
            bodies.append((rest.end() - 1, closing(file.code, rest.end() - 1)))
    return bodies


# ---- launches


def rewrite_launches(file: File, parameters: dict[str, str], alone: Collection[str]) -> None:
    bodies = bodies_of_kernels(file)
    start = file.code.find("<<<")
    while start >= 0:
        if any(begin < start < end for begin, end in bodies):
            raise file.fail(start, "a kernel that launches kernels (dynamic parallelism) is not emulated")
        end = _end_of_configuration(file, start)
        kernel = start_of_kernel_name(file.code, start)
        if kernel is None:
            raise file.fail(start, "no name of a kernel before <<<")
        after = re.compile(r"(?:\s|\\)*").match(file.code, end + 3)
        if after is None or file.code[after.end() : after.end() + 1] != "(":
            raise file.fail(start, "a launch needs its arguments in parentheses: kernel<<<grid, block>>>(arguments)")
        _edit_launch(file, kernel, start, end, parameters, alone)
        _edit_nulls(file, after.end())
        start = file.code.find("<<<", end + 3)


def _edit_launch(
    file: File, kernel: int, start: int, end: int, parameters: dict[str, str], alone: Collection[str]
) -> None:
    name_end = start
    while file.code[name_end - 1].isspace():
        name_end -= 1
    name = re.sub(r"<.*", "", file.code[kernel:name_end], flags=re.S).split("::")[-1].strip()
    if name not in parameters and _is_plain_function(file.code, name):
        raise file.fail(kernel, f"launch of {name}, which is no kernel: write __global__ before its void")
    names = parameters.get(name, "")
    file.edit(kernel, kernel, "CUDA_EMU_LAUNCH_ONE((" if name in alone else "CUDA_EMU_LAUNCH((")
    file.edit(name_end, start + 3, f'), "{names}", ' + file.source[name_end:start])
    file.edit(end, end + 3, ")")


def _is_plain_function(code: str, name: str) -> bool:
    """Whether a function of that name, with a body, has no word before its void that could stand for __global__."""
    for found in re.finditer(rf"\bvoid\s+{re.escape(name)}\s*\(", code):
        before = re.split(r"[;{}]|^[ \t]*#.*$", code[: found.start()], flags=re.M)[-1]
        if re.fullmatch(r"\s*(?:(?:static|inline|__device__|__host__|__forceinline__)\s+)*", before):
            return _BODY.match(code, closing(code, found.end() - 1) - 1) is not None
    return False


def _edit_nulls(file: File, opening: int) -> None:
    """Make nullptr of an argument NULL, which is a number to a launcher that does not know the parameters' types."""
    arguments = file.code[opening : max(opening, closing(file.code, opening))]
    for null in re.finditer(r"(?<=[(,])\s*(NULL)\s*(?=[,)])", arguments):
        file.edit(opening + null.start(1), opening + null.end(1), "nullptr")


def _end_of_configuration(file: File, start: int) -> int:
    """Where the >>> stands that closes the <<< at start."""
    depth = 0
    for i in range(start + 3, len(file.code)):
        character = file.code[i]
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and file.code.startswith(">>>", i):
            return i
        if depth < 0 or (character == ";" and depth == 0):
            break
    raise file.fail(start, "<<< without >>>")


def start_of_kernel_name(code: str, end: int) -> int | None:
    """Where the name begins that ends before `end`: k, ns::k, obj.k, k<T>, (expression), Prefix##Name."""
    while True:
        end = _skip_space_back(code, end)
        if code[end - 1 : end] == ">":
            opening = _start_of_template_arguments(code, end)
            if opening is None:
                return None
            end = opening
            continue
        if code[end - 1 : end] == ")":
            return _opening_parenthesis(code, end)
        if code[end - 1 : end] == "]":  # kernels[i], a table of pointers to kernels
            end = code.rfind("[", 0, end)
            continue
        start = end
        while start > 0 and (code[start - 1].isalnum() or code[start - 1] == "_"):
            start -= 1
        if start == end:
            return None
        before = _skip_space_back(code, start)
        joined = next((sign for sign in ("::", "->", "##", ".") if code[:before].endswith(sign)), None)
        if joined is None:
            return start
        end = before - len(joined)
        if joined == "::" and not (end > 0 and (code[end - 1].isalnum() or code[end - 1] in "_>")):
            return end  # ::k, at global scope


def _skip_space_back(code: str, i: int) -> int:
    while i > 0 and (code[i - 1].isspace() or code[i - 1] == "\\"):
        i -= 1
    return i


def _start_of_template_arguments(code: str, end: int) -> int | None:
    depth = parentheses = 0
    for i in range(end - 1, -1, -1):
        parentheses += (code[i] == ")") - (code[i] == "(")
        if parentheses:
            continue  # (a > b) may stand among template arguments
        if code[i] in ";{}":
            return None
        depth += (code[i] == ">") - (code[i] == "<")
        if depth == 0:
            return i
    return None


def _opening_parenthesis(code: str, end: int) -> int | None:
    depth = 0
    for i in range(end - 1, -1, -1):
        depth += (code[i] == ")") - (code[i] == "(")
        if depth == 0:
            return i
    return None


# ---- shared memory


def rewrite_shared(file: File) -> None:
    for found in re.finditer(r"\b__shared__\b", file.code):
        start, end = _declaration_around(file, found.start())
        text = file.code[start : found.start()] + file.code[found.end() : end]
        text = " ".join(text.replace("\\\n", " ").split())
        if re.search(r"\bextern\b", text):
            new = _dynamic(file, found.start(), text)
        else:
            new = _static(file, found.start(), text)
        file.edit(start, end + 1, new + file.newlines(start, end))


def _declaration_around(file: File, position: int) -> tuple[int, int]:
    """The span of the declaration, without its semicolon."""
    start = position
    while start > 0 and file.code[start - 1] not in ";{})":
        start -= 1
        line = file.code[file.code.rfind("\n", 0, start) + 1 : start]
        if file.code[start] == "\n" and re.match(r"[ \t]*#", line) and file.code[start - 1] != "\\":
            start += 1  # a line of the preprocessor ended here
            break
    while file.code[start].isspace() or file.code[start] == "\\":
        start += 1
    end = file.code.find(";", position)
    if end < 0:
        raise file.fail(position, "a __shared__ declaration without a semicolon")
    return start, end


def _dynamic(file: File, position: int, text: str) -> str:
    text = re.sub(r"\bextern\b", "", text)
    array = re.match(r"(.*?)(\w+)\s*\[\s*\](.*)$", text)
    if array is None:
        raise file.fail(position, "dynamic shared memory is declared as  extern __shared__ float name[];")
    alignment = r"\b(?:__align__|alignas)\s*\(\s*\w+\s*\)|__attribute__\s*\(\(.*?\)\)"
    kind, name, rest = re.sub(alignment, "", array.group(1)).strip(), array.group(2), array.group(3).strip()
    if rest:  # extern __shared__ float name[][32]
        return f"{kind} (*{name}){rest} = ({kind} (*){rest})::cuda_emu::DynamicShared();"
    return f"{kind}* {name} = ({kind}*)::cuda_emu::DynamicShared();"


def _static(file: File, position: int, text: str) -> str:
    text = re.sub(r"\bstatic\b", "", text).strip()
    if "=" in re.sub(r"\[[^\]]*\]|<[^>]*>", "", text):
        raise file.fail(position, "a __shared__ variable cannot have an initial value; let a thread write it")
    statements, base = [], None
    for i, part in enumerate(split_at_commas(text)):
        name = re.search(r"(\w+)\s*((?:\[.*)?)$", part)
        if name is None or (base is None and not part[: name.start(1)].strip()):
            raise file.fail(position, f"this __shared__ declaration cannot be read: {text}")
        if base is None:
            base = part[: name.start(1)].strip()
        else:
            part = f"{base} {part}"
        kind = f"CudaEmuShared{line_of(file.source, position)}_{position}_{i}"
        shown = escaped(part)
        variable = name.group(1)
        statements.append(
            f"struct {kind} {{ {part}; }}; auto& {variable} = "
            f'::cuda_emu::Shared<{kind}, decltype({kind}::{variable})>("{variable}", "{shown}").{variable};'
        )
    return " ".join(statements)


# ---- pragmas, and a word that cannot be a macro: the C++ library writes __attribute__((__noinline__))


def rewrite_pragmas(file: File) -> None:
    for word in re.finditer(r"(?<!\()\b__noinline__\b", file.code):
        file.edit(word.start(), word.end(), "__attribute__((noinline))")
    for pragma in re.finditer(r"^[ \t]*#[ \t]*pragma[ \t]+unroll\b([^\n]*)", file.code, re.M):
        count = pragma.group(1).strip().strip("()").strip() or "8"
        # a count that is an expression is left to the compiler's own judgement
        file.edit(pragma.start(), pragma.end(), f"#pragma GCC unroll {count}" if count.isdigit() else "")
    for pragma in re.finditer(r'_Pragma\s*\(\s*"unroll\b', file.source):
        if "_Pragma" in file.code[pragma.start() : pragma.end()]:
            file.edit(pragma.end() - len("unroll"), pragma.end(), "GCC unroll 8")


# ---- a program: the source and the headers that it includes


class Program:
    """A source and its headers; each header that needs it gets a rewritten copy beside the output."""

    def __init__(self, source: Path, output: Path, folders: list[Path]) -> None:
        self.source, self.output, self.folders = source, output, folders
        self.headers = Path(f"{output}.headers")
        self.files: dict[Path, File] = {}
        self.includes: dict[Path, list[tuple[re.Match[str], Path]]] = {}
        self.parameters: dict[str, str] = {}

    def write(self) -> None:
        self._read(self.source)
        for file in self.files.values():
            self.parameters.update(parameters_of_kernels(file))
        alone = kernels_alone(self.files.values())
        for file in self.files.values():
            file.rewrite(self.parameters, alone)
        changed = self._changed()
        for path in changed:
            self._redirect_includes(path, changed)
        for path in changed - {self.source}:
            write_if_different(self._copy(path), self._text(path))
        prelude = '#define CUDA_EMU_REWRITTEN 1\n#define __CUDACC__ 1\n#include "cuda_emu.h"\n'
        write_text(self.output, prelude + self._text(self.source))
        write_text(Path(f"{self.output}.d"), self._dependencies())

    def _read(self, path: Path) -> None:
        self.files[path] = file = File(path.read_text(encoding="utf-8"), str(path))
        self.includes[path] = []
        for include in includes_in(file):
            header = self._find(path, include.group(2), include.group(3))
            if header is not None:
                self.includes[path].append((include, header))
                if header not in self.files:
                    self._read(header)

    def _find(self, includer: Path, quote: str, name: str) -> Path | None:
        folders = [includer.parent, *self.folders] if quote == '"' else self.folders
        for folder in folders:
            if (folder / name).is_file():
                return Path(os.path.normpath(folder / name))
        return None

    def _changed(self) -> set[Path]:
        """Files with edits, and those that include one of them."""
        changed = {path for path, file in self.files.items() if file.edits} | {self.source}
        while True:
            more = {
                path for path, found in self.includes.items() if any(header in changed for _, header in found)
            } - changed
            if not more:
                return changed
            changed |= more

    def _redirect_includes(self, path: Path, changed: set[Path]) -> None:
        """A copy lies in another folder, so it names its headers in full."""
        for include, header in self.includes[path]:
            if header != self.source:
                target = self._copy(header) if header in changed else header
                self.files[path].edit(include.start(2), include.end(), f'"{target}"')

    def _copy(self, path: Path) -> Path:
        return self.headers / f"{hashlib.sha256(str(path).encode()).hexdigest()[:8]}_{path.name}"

    def _text(self, path: Path) -> str:
        file = self.files[path]
        text = file.edited()
        if text.count("\n") != file.source.count("\n"):
            raise CudaError(f"{path}:1: error: the rewriter has lost a line of this file; please report it")
        return f'#line 1 "{escaped(str(path))}"\n{text}'

    def _dependencies(self) -> str:
        def quoted(path: Path) -> str:
            return str(path).replace("#", "\\#").replace("$", "$$").replace(" ", "\\ ")

        return f"{quoted(self.output)}: " + " \\\n  ".join(quoted(path) for path in self.files) + "\n"


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_if_different(path: Path, text: str) -> None:
    """Leave a copy alone that is as it should be, so that nothing is compiled again for it."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def main(arguments: list[str]) -> int:
    paths, folders, words = [], [], iter(arguments)
    for word in words:
        if word.startswith("-I"):
            folders.append(Path(word[2:] or next(words)).absolute())
        else:
            paths.append(Path(word).absolute())
    if len(paths) != 2:
        print("usage: rewrite.py IN.cu OUT.cc [-I DIR]...", file=sys.stderr)
        return 2
    try:
        Program(paths[0], paths[1], folders).write()
    except (CudaError, OSError, UnicodeDecodeError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
