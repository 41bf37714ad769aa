"""The files of a report: tables and figures in every format, and the source of a paper that includes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from consilience.core.canonical import sha256_hex
from consilience.experiments.storage import write_whole
from consilience.reports.exhibits import Exhibit, Exhibits
from consilience.reports.pictures.canvas import Picture, inline, rendered
from consilience.reports.tables import Table, latex

CONTENTS: Final = "files.json"
PAPER: Final = "paper.tex"
LONG: Final = ("exploration", "strata")
"""Tables that are longer than a page of a paper."""
FLOATS: Final = 8
"""So many figures may wait for a place; LaTeX gives up at 18."""


@dataclass(frozen=True)
class Drawn:
    """One picture as a page shows it.

    Attributes:
        picture: With its title and caption.
        svg: Escaped, with ids of its own.
    """

    picture: Picture
    svg: str


def write_report(made: Exhibits, folder: Path, *, title: str) -> tuple[Drawn, ...]:
    """Write ``tables/``, ``figures/``, ``paper.tex`` and the hash of each in ``files.json``; return the pictures.

    What an earlier report wrote there and this one does not is removed. Without matplotlib there are no pictures.

    Raises:
        DataError: The folder cannot be written.
    """
    files: dict[str, bytes] = {}
    for one in made.tables:
        files[f"tables/{one.name}.csv"] = one.table.to_csv().encode()
        files[f"tables/{one.name}.md"] = one.table.to_markdown().encode()
        files[f"tables/{one.name}.tex"] = one.table.to_latex(label=f"tab:{one.name}").encode()
    drawn = []
    for picture in made.pictures if find_spec("matplotlib") else ():
        images = rendered(picture)
        files |= {f"figures/{picture.name}.{kind}": data for kind, data in images.items()}
        files[f"figures/{picture.name}.csv"] = Table("", (), picture.records).to_csv().encode()
        files[f"figures/{picture.name}.txt"] = f"{picture.alt}\n\n{picture.caption}\n".encode()
        drawn.append(Drawn(picture, inline(images["svg"], name=picture.name, alt=picture.alt)))
    files[PAPER] = paper(made.tables, [one.picture for one in drawn], title=title).encode()
    _write(folder, files)
    return tuple(drawn)


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    contents = folder / CONTENTS
    before = json.loads(contents.read_bytes()) if contents.is_file() else {}
    for name in sorted(before.keys() - files.keys()):
        path = folder / name
        if path.resolve().is_relative_to(folder.resolve()):
            path.unlink(missing_ok=True)
    hashes = {name: sha256_hex(data) for name, data in sorted(files.items())}
    listed = f"{json.dumps(hashes, indent=2)}\n".encode()
    for name, data in {**files, CONTENTS: listed}.items():
        write_whole(folder / name, lambda target, data=data: target.write_bytes(data))  # type: ignore[misc]


def paper(tables: Sequence[Exhibit], pictures: Sequence[Picture], *, title: str) -> str:
    r"""Return the LaTeX source of a paper that includes the tables and figures beside it.

    Example:
        >>> print(paper((), (), title="A & B").splitlines()[6])
        \title{A \& B}
    """
    lines = [
        r"\documentclass{article}",
        r"\usepackage[utf8]{inputenc}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage{booktabs,graphicx}",
        r"\usepackage[landscape,margin=15mm]{geometry}",  # tables are wide
        r"\sloppy",
        f"\\title{{{latex(title)}}}",
        r"\author{}",
        r"\date{}",
        r"\begin{document}",
        r"\maketitle",
        *(rf"\input{{tables/{one.name}}}" for one in tables if one.name not in LONG),
        r"\clearpage",
    ]
    for number, one in enumerate(pictures, start=1):
        lines += [
            r"\begin{figure}[htbp]",
            r"\centering",
            rf"\includegraphics[width=0.8\linewidth,height=0.7\textheight,keepaspectratio]{{figures/{one.name}.pdf}}",
            rf"\caption{{{latex(one.title)}. {latex(one.caption)}}}",
            rf"\label{{fig:{one.name}}}",
            r"\end{figure}",
            *([r"\clearpage"] if number % FLOATS == 0 else []),
        ]
    return "\n".join([*lines, r"\end{document}", ""])
