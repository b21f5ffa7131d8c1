"""What can go wrong, as exceptions. Every message is one line that says what to do about it."""

__all__ = ["Cancelled", "EngineError", "Error", "MissingExtra", "OutputError", "OwnError", "ScenarioError"]


class Error(Exception):
    """The base of all errors that Aqumen raises on purpose."""


class ScenarioError(Error, ValueError):
    """A scenario, an AQM, a setting or another argument that cannot be used."""


class EngineError(Error, RuntimeError):
    """An engine that is absent or could not finish."""


class Cancelled(Error):
    """A run that its `on_progress` stopped."""


class OwnError(Error):
    """Code of your own (an AQM) raised, or answered what is no answer. Its cause is what was raised."""


class OutputError(Error, OSError):
    """A result that could not be written, or one on disk that could not be read."""


class MissingExtra(Error, ImportError):
    """An optional package that this call needs and that is not installed."""
