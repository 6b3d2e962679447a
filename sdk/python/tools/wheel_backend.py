"""Builds the package for pip without anything but Python (PEP 517, PEP 660 left out):
the wheel is the folder, so that ``pip install`` needs no network."""

from __future__ import annotations

import base64
import hashlib
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Optional

HERE = Path(__file__).resolve().parent.parent
#: All files in a wheel carry this time, so that equal sources are equal wheels.
TIME = (2026, 1, 1, 0, 0, 0)

Config = Optional[dict[str, Any]]


def _field(name: str) -> str:
    """A text of pyproject.toml's [project]."""
    found = re.search(rf'^{name} = "([^"]*)"$', (HERE / "pyproject.toml").read_text("utf-8"), re.M)
    if not found:
        raise ValueError(f"pyproject.toml has no {name}")
    return found[1]


def _stem() -> str:
    return f"{_field('name')}-{_field('version')}"


def _metadata() -> str:
    return (
        "Metadata-Version: 2.1\n"
        f"Name: {_field('name')}\nVersion: {_field('version')}\nSummary: {_field('description')}\n"
        f"Requires-Python: {_field('requires-python')}\n{_extras()}Description-Content-Type: text/markdown\n\n"
        + (HERE / "README.md").read_text("utf-8")
    )


def _extras() -> str:
    """The fields of [project.optional-dependencies]."""
    _, _, table = (HERE / "pyproject.toml").read_text("utf-8").partition("\n[project.optional-dependencies]\n")
    lines = ""
    for name, needs in re.findall(r'^(\w+) = \[(.*)\]$', table.partition("\n[")[0], re.M):
        lines += f"Provides-Extra: {name}\n"
        lines += "".join(f'Requires-Dist: {need}; extra == "{name}"\n' for need in re.findall(r'"([^"]+)"', needs))
    return lines


def build_wheel(wheel_directory: str, config_settings: Config = None, metadata_directory: Optional[str] = None) -> str:
    """Writes the wheel into a folder and returns its name."""
    files = {f"blockdesk/{p.name}": p.read_bytes() for p in sorted((HERE / "blockdesk").glob("*.py"))}
    files["blockdesk/py.typed"] = b""
    info = f"{_stem()}.dist-info"
    files[f"{info}/METADATA"] = _metadata().encode("utf-8")
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: blockdesk\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode("ascii")
    name = f"{_stem()}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for at, data in files.items():
            wheel.writestr(zipfile.ZipInfo(at, TIME), data)
    return name


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode("ascii")


def build_sdist(sdist_directory: str, config_settings: Config = None) -> str:
    """Writes the sources into a folder and returns the archive's name."""
    name = f"{_stem()}.tar.gz"
    with tarfile.open(Path(sdist_directory) / name, "w:gz") as archive:
        for pattern in ("*.toml", "*.md", "*/*.py", "*/py.typed"):
            for path in sorted(HERE.glob(pattern)):
                archive.add(path, f"{_stem()}/{path.relative_to(HERE)}")
    return name


def get_requires_for_build_wheel(config_settings: Config = None) -> list[str]:
    """Nothing is needed."""
    return []
