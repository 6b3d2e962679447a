"""Downloads this package from a running service, and checks every file's hash.

    python3 fetch.py http://127.0.0.1:8080 blockdesk-python
"""

from __future__ import annotations

import hashlib
import json
import sys
import urllib.request
from pathlib import Path, PurePosixPath

ROOT = "/public-sdk/python/"
#: Largest file, and most files.
MAX_FILE, MAX_FILES = 4 << 20, 256


def get(url: str) -> bytes:
    """A file of the service."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        body: bytes = answer.read(MAX_FILE + 1)
    if len(body) > MAX_FILE:
        raise SystemExit(f"{url}: more than {MAX_FILE} bytes")
    return body


def fetch(base: str, folder: Path) -> int:
    """Downloads all files into a folder; how many."""
    folders, count = [ROOT], 0
    while folders:
        index = json.loads(get(base + folders.pop()))
        folders += [at for at in index["folders"] if at.startswith(ROOT)]
        for file in index["files"]:
            name = PurePosixPath(file["path"]).relative_to(ROOT)
            if ".." in name.parts or count >= MAX_FILES:
                raise SystemExit(f"not a file of this package: {file['path']}")
            body = get(base + file["path"])
            if hashlib.sha256(body).hexdigest() != file["sha256"]:
                raise SystemExit(f"{file['path']}: its hash is not what the index says")
            at = folder / name
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_bytes(body)
            count += 1
    return count


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    print(f"{fetch(sys.argv[1].rstrip('/'), Path(sys.argv[2]))} files in {sys.argv[2]}: pip install ./{sys.argv[2]}")
