"""What a course publishes: a bundle of every stage's starter, checks and notebook, without a line of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import answers, files, pack, regions, starter, trees
from .console import track
from .errors import UserError

NAME = "needle-course"
# what stands at the bundle's own root, taken from the starter of its last stage
AT_ROOT = ("hw/", "python/needle_course/", "python/mugrade/", "tools/setup_environment.py", "pyproject.toml")


@dataclass(frozen=True)
class Released:
    """A bundle that was made, as a folder and as a zip of it."""

    path: Path
    archive: Path
    stages: list[str]
    files: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "path": str(self.path), "archive": str(self.archive)}


def run(course: Any, out: Path, through: str | None = None) -> Released:
    """Write `needle-course/` and `needle-course.zip` into the folder `out`, with all stages or those up to `through`.

    Every region is blank in it, those of earlier stages, too: learners bring their own answers along by `advance`.
    UserError if an answer would be in it, or if `out` has a bundle already.
    """
    if course.kind != "checkout":
        raise UserError(f"{course.root}: is a {course.kind}, and a bundle is made from a checkout: --course PATH")
    folder, archive = out.resolve() / NAME, out.resolve() / f"{NAME}.zip"
    for path in (folder, archive):
        if path.exists():
            raise UserError(f"{path}: is there already; name another folder, or remove it")
    names = course.present(through or course.order[-1])
    contents = bundle(course, names)
    refuse_answers(course, contents)
    trees.write(contents, folder)
    files.write_whole(archive, pack.archive({f"{NAME}/{path}": content for path, content in contents.items()}))
    return Released(folder, archive, names, sorted(contents))


def bundle(course: Any, names: list[str]) -> dict[str, bytes]:
    """{path: content} of a bundle with these stages."""
    contents: dict[str, bytes] = {}
    for name in track(names, "starters"):
        made = starter.given(course, name)
        blank = starter.all_blank(made, starter.blanks(course, name, made))
        contents.update({f"{starter.BUNDLED}/{name}/{path}": content for path, content in blank.items()})
    last = {path: content for path, content in blank.items() if path.startswith(AT_ROOT)}
    pages = {path.name: path.read_bytes() for path in sorted((course.root / "hw/bundle").glob("*"))}
    return {**contents, **last, **pages}


# ---- no answers -----------------------------------------------------------------------------------------------------


def refuse_answers(course: Any, contents: Mapping[str, bytes]) -> None:
    """UserError for a region that is filled, or a whole answer that stands somewhere else."""
    bodies = reference_bodies(course)
    for path, content in contents.items():
        for tag, region in answers.regions_of(path, content).items():
            if not regions.is_blank(region):
                raise UserError(f"{path}:{region.line}: {tag} is filled; a bundle holds no answers")
        text = squeezed(content.decode("utf-8", "replace"))
        leaked = [tag for tag, body in bodies.items() if body in text]
        if leaked:
            raise UserError(f"{path}: holds the answer to {leaked[0]}; keep it out by the manifest, or by a region")


def reference_bodies(course: Any) -> dict[str, str]:
    """{tag: answer} of the answers that are long enough to be no coincidence."""
    contents = {path: (course.root / path).read_bytes() for name in course.order for path in course.stage(name).files}
    bodies = {tag: squeezed(body) for tag, body in answers.bodies_in(contents).items()}
    return {tag: body for tag, body in bodies.items() if body.count("\n") >= 2}


def squeezed(text: str) -> str:
    """The text without indentation and empty lines, so that an answer is found wherever it stands."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())
