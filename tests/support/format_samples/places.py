"""What a writer hands back: files, and which story stands where in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from .stories import Story
from .truth import Told


@dataclass
class Written:
    """files: path to text. stands: (file, position of the run in it from 1, story as the format tells it)."""

    told: Told
    files: dict[str, str] = field(default_factory=dict)
    stands: list[tuple[str, int, Story]] = field(default_factory=list)

    def put(self, path: str, text: str, story: Story) -> None:
        """A file that is one run."""
        self.files[path] = text
        self.at(path, 1, story)

    def at(self, path: str, position: int, story: Story) -> None:
        self.stands.append((path, position, story))
