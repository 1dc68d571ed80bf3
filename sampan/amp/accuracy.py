"""compare_accuracy: two runs' tensor-checker lines side by side, as a spreadsheet."""

from __future__ import annotations

import csv
import re
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from ..base.errors import ArgumentError, message

_LINE = re.compile(r"\[PRECISION\].*op=(?P<op>[^,]*), tensor=(?P<tensor>[^,]*), dtype=(?P<dtype>\w+)\], (?P<values>.*)")
_VALUES = ("numel", "num_nan", "num_inf", "num_zero", "max", "min", "mean")


def compare_accuracy(
    dump_path: str, another_dump_path: str, output_filename: str, loss_scale: float = 1, dump_all_tensors: bool = False
) -> None:
    """Write a table of the results of two runs, such as one in float32 and one in float16, in the order they were computed.

    Args:
        dump_path: the folder that a TensorCheckerConfig's ``output_dir`` named, of the first run.
        another_dump_path: that of the second run.
        output_filename: the table: ``.xlsx``, or ``.csv``.
        loss_scale: the second run's gradients are divided by it.
        dump_all_tensors: must be False.

    Raises:
        ArgumentError: a folder without lines, or another ending.
    """
    if dump_all_tensors:
        raise ArgumentError(message("compare_accuracy(): dump_all_tensors=True", "only what the checker wrote can be compared"))
    first, second = _lines("dump_path", dump_path), _lines("another_dump_path", another_dump_path)
    rows = [_header(), *_rows(first, second, float(loss_scale))]
    ending = Path(output_filename).suffix.lower()
    if ending == ".csv":
        with open(output_filename, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
    elif ending == ".xlsx":
        _write_xlsx(output_filename, rows)
    else:
        raise ArgumentError(message(f"compare_accuracy(): output_filename={output_filename!r}", "it must end in .xlsx or .csv"))


def _lines(parameter: str, folder: str) -> list[dict[str, Any]]:
    files = sorted(p for p in Path(folder).glob("*") if p.is_file()) if Path(folder).is_dir() else []
    found = []
    for file in files:
        for match in map(_LINE.match, file.read_text(encoding="utf-8").splitlines()):
            if match:
                values = dict(part.split("=") for part in match["values"].split(", "))
                found.append({**match.groupdict(), **{k: float(values[k]) for k in _VALUES}})
    if not found:
        raise ArgumentError(
            message(
                f"compare_accuracy(): {parameter}={folder!r} holds no lines of a tensor checker",
                "",
                "run with TensorCheckerConfig(enable=True, debug_mode=DebugMode.CHECK_ALL, output_dir=...)",
            )
        )
    return found


def _header() -> list[str]:
    sides = [f"{name} {side}" for side in ("1", "2") for name in ("dtype", *_VALUES)]
    return ["op", "tensor", *sides, "remark"]


def _rows(first: list[dict[str, Any]], second: list[dict[str, Any]], scale: float) -> Iterable[list[Any]]:
    """Each operator's n-th result of the first run beside its n-th of the second."""
    waiting: dict[str, list[dict[str, Any]]] = {}
    for line in second:
        waiting.setdefault(line["op"], []).append(line)
    for line in first:
        same = waiting.get(line["op"])
        yield _row(line, same.pop(0) if same else None, scale)
    for rest in waiting.values():
        for line in rest:
            yield _row(None, line, scale)


def _row(one: dict[str, Any] | None, two: dict[str, Any] | None, scale: float) -> list[Any]:
    if two is not None and "gradient" in two["op"]:
        two = {**two, **{k: two[k] / scale for k in ("max", "min", "mean")}}
    known = one or two or {}
    sides = [("" if side is None else side[name]) for side in (one, two) for name in ("dtype", *_VALUES)]
    return [known["op"], known["tensor"], *sides, _remark(one, two)]


def _remark(one: dict[str, Any] | None, two: dict[str, Any] | None) -> str:
    if one is None or two is None:
        return f"only in run {2 if one is None else 1}"
    bad = [k for k, side in (("1", one), ("2", two)) if side["num_nan"] or side["num_inf"]]
    if bad:
        return f"not finite in run {' and '.join(bad)}"
    size = max(abs(one["mean"]), 1e-6)
    return "means differ" if abs(one["mean"] - two["mean"]) > 0.01 * size else ""


def _cell(value: Any) -> str:
    if isinstance(value, float) and value == value and abs(value) != float("inf"):
        return f"<c><v>{value!r}</v></c>"
    return f'<c t="inlineStr"><is><t>{escape(str(value))}</t></is></c>'


def _write_xlsx(path: str, rows: Sequence[Sequence[Any]]) -> None:
    """A workbook of one sheet: the parts that ECMA-376 requires."""
    space = "http://schemas.openxmlformats.org"
    sheet = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
    main, office = f"{space}/spreadsheetml/2006/main", f"{space}/officeDocument/2006/relationships"
    types = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    relation = f'<Relationships xmlns="{space}/package/2006/relationships"><Relationship Id="rId1" Type="{office}/%s" Target="%s"/></Relationships>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{space}/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{types}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{types}.worksheet+xml"/></Types>',
        "_rels/.rels": relation % ("officeDocument", "xl/workbook.xml"),
        "xl/_rels/workbook.xml.rels": relation % ("worksheet", "worksheets/sheet1.xml"),
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="accuracy" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{sheet}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>{text}')
