#!/usr/bin/env python3
"""cuda_emu_pp: turn a CUDA C++ source into plain C++ for cuda_emu, keeping every line number.

  k<T><<<grid, block, smem>>>(args)   ->  CUDA_EMU_LAUNCH((k<T>), grid, block, smem)(args)
  __shared__ float t[32][33];         ->  struct S { float t[32][33]; }; auto& t = cuda_emu::shared<S>(..).t;
  extern __shared__ float s[];        ->  float* s = (float*)cuda_emu::dynamic_shared();
  #pragma unroll [N]                  ->  #pragma GCC unroll N | (dropped)

Usage: cuda_emu_pp.py IN.cu OUT.cpp
"""

import os
import re
import sys


class CudaSyntaxError(Exception):
    pass


def mask(src):
    """A copy of src, same length, where comments and string contents are blanks."""
    out = list(src)
    i, n = 0, len(src)

    def blank(a, b):
        for k in range(a, b):
            if out[k] != "\n":
                out[k] = " "

    while i < n:
        c = src[i]
        two = src[i : i + 2]
        if two == "//":
            j = i
            while j < n and src[j] != "\n":
                j += 2 if src[j] == "\\" else 1
            blank(i, min(j, n))
            i = j
        elif two == "/*":
            j = src.find("*/", i + 2)
            j = n if j < 0 else j + 2
            blank(i, j)
            i = j
        elif c == '"' and re.search(r"(?:^|\W)(?:u8|[uUL])?R$", src[max(0, i - 4) : i]):
            m = re.match(r'"([^()\\\s]{0,16})\(', src[i:])
            end = src.find(")" + m.group(1) + '"', i) if m else -1
            j = n if end < 0 else end + len(m.group(1)) + 2
            blank(i + 1, j - 1)
            i = j
        elif c == '"' or (c == "'" and not (i and src[i - 1].isalnum())):  # 1'000 is a number
            j = i + 1
            while j < n and src[j] != c and src[j] != "\n":
                j += 2 if src[j] == "\\" else 1
            blank(i + 1, j)
            i = j + 1
        else:
            i += 1
    return "".join(out)


def match_close(m, i, opener, closer):
    """Index just past the bracket that closes m[i]."""
    depth = 0
    for j in range(i, len(m)):
        if m[j] == opener:
            depth += 1
        elif m[j] == closer:
            depth -= 1
            if depth == 0:
                return j + 1
    return -1


def kernel_start(m, i):
    """m[i:] is '<<<': where does the kernel's name begin?"""
    j = i
    while True:
        while j > 0 and (m[j - 1].isspace() or m[j - 1] == "\\"):
            j -= 1
        if j > 0 and m[j - 1] == ">":  # template arguments
            depth, par, k = 0, 0, j
            while k > 0:
                k -= 1
                par += (m[k] == ")") - (m[k] == "(")
                if par:
                    continue  # (a > b) inside template arguments
                if m[k] == ">":
                    depth += 1
                elif m[k] == "<":
                    depth -= 1
                    if depth == 0:
                        break
                elif m[k] in ";{}":
                    return None
            j = k
            continue
        if j > 0 and m[j - 1] == ")":  # (expr)<<<...>>>
            depth, k = 0, j
            while k > 0:
                k -= 1
                depth += m[k] == ")"
                depth -= m[k] == "("
                if depth == 0:
                    break
            return k
        k = j
        while k > 0 and (m[k - 1].isalnum() or m[k - 1] in "_#"):
            k -= 1
        if k == j:
            return None
        j = k
        p = j
        while p > 0 and m[p - 1].isspace():
            p -= 1
        if m[max(0, p - 2) : p] == "::":
            j = p - 2
            if j > 0 and (m[j - 1].isalnum() or m[j - 1] in "_>"):
                continue
            return j
        if m[max(0, p - 2) : p] == "->":
            j = p - 2
            continue
        if m[max(0, p - 1) : p] == ".":
            j = p - 1
            continue
        return j


def line_of(src, i):
    return src.count("\n", 0, i) + 1


def rewrite(src, name="<input>"):
    m = mask(src)
    edits = []  # (start, end, text)

    def err(i, msg):
        raise CudaSyntaxError(f"{name}:{line_of(src, i)}: error: {msg}")

    # ---- kernel launches
    i = m.find("<<<")
    while i >= 0:
        depth, j = 0, i + 3
        while j < len(m):
            c = m[j]
            if c in "([{":
                depth += 1
            elif c in ")]}":
                depth -= 1
                if depth < 0:
                    break
            elif (depth == 0 and m.startswith(">>>", j)) or (c == ";" and depth == 0):
                break
            j += 1
        if j >= len(m) or not m.startswith(">>>", j):
            err(i, "'<<<' without '>>>'")
        s = kernel_start(m, i)
        if s is None:
            err(i, "no kernel name before '<<<'")
        k = j + 3
        while k < len(m) and (m[k].isspace() or m[k] == "\\"):
            k += 1
        if k >= len(m) or m[k] != "(":
            err(j, "a kernel launch needs its arguments in parentheses: kernel<<<grid, block>>>(args)")
        e = i
        while m[e - 1].isspace():
            e -= 1
        edits.append((s, s, "CUDA_EMU_LAUNCH(("))
        edits.append((e, i + 3, ")," + src[e:i]))
        edits.append((j, j + 3, ")"))
        i = m.find("<<<", j + 3)

    # ---- shared memory
    for t in re.finditer(r"\b__shared__\b", m):
        a = t.start()
        b = a  # back to the start of the declaration
        while b > 0 and m[b - 1] not in ";{})":
            b -= 1
            if m[b] == "\n" and re.match(r"[ \t]*#", m[m.rfind("\n", 0, b) + 1 : b]) and m[b - 1] != "\\":
                b += 1  # a preprocessor line ended here
                break
        while m[b].isspace() or m[b] == "\\":
            b += 1
        e = m.find(";", a)
        if e < 0:
            err(a, "__shared__ declaration without ';'")
        decl = m[b:a] + m[t.end() : e]
        if re.search(r"#\s*define\b.*__shared__", m[m.rfind("\n", 0, a) + 1 : a + 10]) and not decl.strip():
            continue
        is_extern = re.search(r"\bextern\b", decl) is not None
        body = re.sub(r"\b(extern|static)\b", "", decl)
        nl = "\n" * src.count("\n", b, e)
        if m[b:e].count("\\\n") == m[b:e].count("\n"):
            nl = "\\\n" * m[b:e].count("\n")
        flat = " ".join(body.replace("\\\n", " ").split())
        if "=" in re.sub(r"\[[^\]]*\]", "", flat):
            err(a, "a __shared__ variable can't have an initialiser")
        if is_extern:
            d = re.match(r"(.*?)(\w+)\s*\[\s*\](.*)$", flat)
            if not d:
                err(a, "dynamic shared memory is declared as  extern __shared__ float name[];")
            ty = re.sub(r"\b(__align__|alignas)\s*\(\s*\w+\s*\)|__attribute__\s*\(\(.*?\)\)", "", d.group(1)).strip()
            if d.group(3).strip():
                new = f"{ty} (*{d.group(2)}){d.group(3)} = ({ty} (*){d.group(3)})::cuda_emu::dynamic_shared()"
            else:
                new = f"{ty}* {d.group(2)} = ({ty}*)::cuda_emu::dynamic_shared()"
            edits.append((b, e, new + nl))
            continue
        parts, depth, cur = [], 0, ""  # T a[4], b[5]  ->  one struct each
        for c in flat + ",":
            if c in "([{<":
                depth += 1
            elif c in ")]}>":
                depth -= 1
            if c == "," and depth == 0:
                parts.append(cur.strip())
                cur = ""
            else:
                cur += c
        new, base = "", None
        for k, part in enumerate(parts):
            w = re.search(r"(\w+)\s*((\[.*)?)$", part)
            if not w or (base is None and not part[: w.start(1)].strip()):
                err(a, f"can't read this __shared__ declaration: {flat}")
            if base is None:
                base = part[: w.start(1)].strip()
            else:
                part = f"{base} {part}"
            sid, n = f"cuda_emu_sh{len(edits)}_{k}", w.group(1)
            text = part.replace("\\", "\\\\").replace('"', '\\"')
            new += f'struct {sid} {{ {part}; }}; auto& {n} = ::cuda_emu::shared<{sid}>("{text}").{n}; '
        edits.append((b, e + 1, new + nl))

    # ---- pragmas, inline PTX
    for t in re.finditer(r"^[ \t]*#[ \t]*pragma[ \t]+unroll\b([^\n]*)", m, re.M):
        n = t.group(1).strip().strip("()").strip()
        if n == "":
            n = "8"
        edits.append((t.start(), t.end(), f"#pragma GCC unroll {n}" if n.isdigit() else ""))
    for t in re.finditer(r"\b(asm|__asm__)\b\s*(volatile|__volatile__)?\s*\(", m):
        before = m[: t.start()]
        if before.count("#ifndef __CUDA_EMU__") + before.count("#if !defined(__CUDA_EMU__)") == 0:
            err(
                t.start(),
                "inline PTX can't run on the CPU; put it between  #ifndef __CUDA_EMU__  and  #else ... #endif",
            )

    out = src
    for s, e, text in sorted(edits, key=lambda x: (x[0], x[1]), reverse=True):
        out = out[:s] + text + out[e:]
    return out


INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)".*$', re.M)


def expand(path, read):
    """The rewritten text of a file, headers that need rewriting put in their places."""
    read.append(path)
    with open(path, encoding="utf-8") as file:
        src = file.read()
    res = rewrite(src, path)
    if res.count("\n") != src.count("\n"):
        sys.exit(f"{path}: the rewriter lost a line; please report this file")
    here = os.path.dirname(path)

    def include(m):
        header = os.path.normpath(os.path.join(here, m.group(1)))
        if not os.path.exists(header):
            return m.group(0)
        if not needs_rewriting(header, set()):
            return f'#include "{header}"'
        if header in read:
            return ""
        line = res.count("\n", 0, m.start()) + 2
        return f'#line 1 "{header}"\n{expand(header, read)}\n#line {line} "{path}"'

    return INCLUDE.sub(include, res)


def needs_rewriting(path, seen):
    """Whether a header, or one that it includes, launches a kernel or has shared memory."""
    if path in seen or not os.path.exists(path):
        return False
    seen.add(path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if "__shared__" in mask(text) or "<<<" in mask(text):
        return True
    here = os.path.dirname(path)
    return any(needs_rewriting(os.path.normpath(os.path.join(here, name)), seen) for name in INCLUDE.findall(text))


def main():
    inp, outp = os.path.abspath(sys.argv[1]), sys.argv[2]
    read = []
    try:
        res = expand(inp, read)
    except CudaSyntaxError as e:
        sys.exit(str(e))
    os.makedirs(os.path.dirname(os.path.abspath(outp)), exist_ok=True)
    with open(outp, "w", encoding="utf-8") as f:
        f.write(f'#define CUDA_EMU_REWRITTEN 1\n#include "cuda_emu.h"\n#line 1 "{inp}"\n' + res)
    with open(outp + ".d", "w", encoding="utf-8") as f:
        f.write(f"{outp}: " + " ".join(name.replace(" ", "\\ ") for name in read) + "\n")


if __name__ == "__main__":
    main()
