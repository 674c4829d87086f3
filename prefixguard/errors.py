"""Every error a user can meet.

    PrefixGuardError
    ├── TraceError            a raw run, or a file of runs, is not what its adapter reads
    ├── AdapterError          an adapter spec is wrong
    │   ├── UnknownAdapterError   no adapter of that name
    │   └── OtherAdapterError     a monitor is to read through another adapter than it was trained through
    ├── DataError             runs are well-formed but cannot be used for this (one class, too few, no outcome)
    ├── ConfigError           an option is outside its range
    ├── BundleError           a bundle cannot be used (missing, damaged)
    │   ├── BundleVersionError    written by a newer release
    │   └── UntrustedBundleError  not signed by one of the keys that are trusted
    ├── SavedSessionError     a saved session cannot be restored (damaged, of another monitor, by a newer release)
    ├── OutputError           a result cannot be written (disk full, no permission, already there)
    ├── ReplayError           an environment cannot play runs (not there, crashed, hangs, other task)
    │   ├── ReplayDrift           it answers otherwise than it did when a run was recorded
    │   └── UnreplayableRun       the run does not say how it was made, or was not made there
    ├── EndpointError         a language model's endpoint refuses, fails, or does not answer in time
    ├── MissingExtraError     an optional package is not installed
    ├── AgentStopped          a guard stops a run, as its host asked for (on_alarm="stop")
    └── UsageError            calls in the wrong order, such as observe after end

A message says what happened, where (file, line, run, step) and what to do. Errors of other libraries are turned into
these at the border, with their cause kept.
"""

from prefixguard.distribution import install_command


class PrefixGuardError(Exception):
    """Base of every error we raise."""


class TraceError(PrefixGuardError, ValueError):
    """A raw run, or a file of runs, is not what its adapter reads."""


class AdapterError(PrefixGuardError, ValueError):
    """An adapter spec is wrong."""


class UnknownAdapterError(AdapterError):
    """No adapter of that name."""


class OtherAdapterError(AdapterError):
    """A monitor is to read runs through another adapter than the one it was trained through."""


class DataError(PrefixGuardError, ValueError):
    """The runs are well-formed but cannot be used for what was asked."""


class ConfigError(PrefixGuardError, ValueError):
    """An option is outside its range."""


class BundleError(PrefixGuardError):
    """A bundle cannot be used."""


class BundleVersionError(BundleError):
    """The bundle was written by a newer release."""


class UntrustedBundleError(BundleError):
    """The bundle is not signed, or not by one of the keys that are trusted, or was changed since."""


class SavedSessionError(PrefixGuardError, ValueError):
    """A saved session cannot be restored."""


class OutputError(PrefixGuardError, OSError):
    """A result cannot be written."""


class ReplayError(PrefixGuardError):
    """An environment cannot play a run."""


class ReplayDrift(ReplayError):
    """An environment answers otherwise than it did when the run was recorded."""


class UnreplayableRun(ReplayError):
    """A run does not say how it was made, or was not made in this environment."""


class EndpointError(PrefixGuardError):
    """A language model's endpoint cannot be used."""


class MissingExtraError(PrefixGuardError, ImportError):
    """An optional package is not installed."""


class AgentStopped(PrefixGuardError):
    """A guard stops a run whose alarm has sounded, as its host asked for."""


class UsageError(PrefixGuardError, RuntimeError):
    """Calls in the wrong order."""


def missing_extra(what: str, extra: str, missing: ImportError, *, or_else: str = "") -> MissingExtraError:
    """The error for a package that is not installed, with the command that installs it.

    what : what needs the package, the subject of the sentence.
    extra : name of our extra that has it.
    missing : the import that failed.
    or_else : another way on, a clause; "" where there is none.
    """
    package = (missing.name or "a package").partition(".")[0]
    other = f". Or: {or_else}" if or_else else ""
    return MissingExtraError(f"{what} needs {package}. Install it with: {install_command(extra)}{other}", name=package)
