"""Symbol strings to finite automata with calibrated risks, a glossary and a picture."""

from prefixguard.errors import missing_extra

try:
    import aalpy  # noqa: F401
except ImportError as exc:
    raise missing_extra("learning an automaton", "automata", exc) from exc

from prefixguard.automata.alphabets import ALPHABETS
from prefixguard.automata.exporting import AUTOMATA, FORMATS, ExportResult, export
from prefixguard.automata.learners import LEARNERS
from prefixguard.automata.strings import Strings, Transitions

__all__ = ["ALPHABETS", "AUTOMATA", "FORMATS", "LEARNERS", "ExportResult", "Strings", "Transitions", "export"]
