"""A vault in a temporary folder that a test writes and deletes notes in."""

from __future__ import annotations

from pathlib import Path


class Vault:
    """Paths are inside the vault, with `/`; texts are written as UTF-8 with the line endings they have."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("memories", "articles"):
            (root / folder).mkdir(parents=True, exist_ok=True)

    def path(self, path: str) -> Path:
        return self.root / path

    def write(self, path: str, content: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))
        return file

    def read(self, path: str) -> str:
        return (self.root / path).read_bytes().decode("utf-8")

    def delete(self, path: str) -> None:
        (self.root / path).unlink()

    def files(self) -> list[str]:
        """Every file below the vault, hidden ones too."""
        return sorted(file.relative_to(self.root).as_posix() for file in self.root.rglob("*") if file.is_file())

    def notes(self) -> list[str]:
        """The files that are notes: not the trash, not a temporary file."""
        return [path for path in self.files() if not any(part.startswith(".") for part in path.split("/"))]
