"""Custom classes loaded from Python files, and digests of their sources."""

from __future__ import annotations

import builtins
import functools
import hashlib
import importlib.machinery
import importlib.util
import inspect
import linecache
import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aqumen.custom.classes import CustomClass, Param, as_custom, is_aqm, name_of
from aqumen.errors import CustomError, ScenarioError


def from_file(spec: str, *, traffic: bool = False) -> CustomClass:
    """Load a custom AQM or traffic source from a file.

    Args:
        spec: File and class: `my_aqm.py:MyPi`. The class is optional if the file has only one. A file name without .py
            needs its folder: `./my_aqm:MyPi`.
        traffic: Load a traffic source instead of an AQM.

    Raises:
        ScenarioError: There is no such file or class.
        CustomError: The file raises an exception.
    """
    file, wanted = _parts(spec)
    path = Path(file)
    if path.suffix != ".py" and "/" not in file and os.sep not in file:
        example = "my_source.py:MySource" if traffic else "my_aqm.py:MyAqm"
        raise ScenarioError(f"{spec}: name a Python file and a class in it: {example}")
    if not path.is_file():
        raise ScenarioError(f"{path}: {'a folder' if path.is_dir() else 'no such file'}")
    module = _module(path.resolve(), path.stat().st_mtime_ns)
    every = {
        name: custom
        for name, value in vars(module).items()
        if (custom := as_custom(value)) and (value.__module__ == module.__name__ or "_definition" in vars(value))
    }
    here = {name: custom for name, custom in every.items() if is_aqm(custom) is not traffic}
    if wanted in here:
        return here[wanted]
    known = ", ".join(here) or "none"
    what, bases = ("source", "TrafficSource") if traffic else ("AQM", "SampledLaw, PacketAqm or from_control")
    if wanted in every:
        other = "--aqm-from" if traffic else "--traffic-from"
        raise ScenarioError(f"{path}: {wanted} is not a {what}, use {other}; choose from: {known}")
    if wanted:
        raise ScenarioError(f"{path}: no {what} class {wanted} (of {bases}); choose from: {known}")
    if len(here) != 1:
        raise ScenarioError(f"{path}: several classes or none; write {path}:CLASS; choose from: {known}")
    return next(iter(here.values()))


def _parts(spec: str) -> tuple[str, str]:
    """Split FILE:CLASS, where the file name may contain colons."""
    file, _, wanted = spec.rpartition(":")
    if not file or not wanted.isidentifier() or (Path(spec).is_file() and not Path(file).is_file()):
        return spec.removesuffix(":"), ""
    return file, wanted


@functools.lru_cache
def _module(path: Path, _changed_ns: int) -> Any:
    """Import a file as a module, once for each version of the file."""
    name = f"aqumen_own_{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}"
    loader = importlib.machinery.SourceFileLoader(name, os.fspath(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # The file may import modules of its folder, like a script.
    beside = str(path.parent)
    sys.path.insert(0, beside)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise CustomError(f"{path.name}: cannot be read: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(beside)
    return module


def source_of(custom: CustomClass) -> tuple[str, str, str]:
    """Return file name, class name and text of the file of a custom class, by which it travels to other processes.

    Args:
        custom: Class from a Python file of its own.

    Raises:
        ScenarioError: Its source is not available, as in a Python prompt.
    """
    try:
        file = inspect.getfile(custom)
        text = "".join(linecache.getlines(file)) or Path(file).read_text(encoding="utf-8")
    except (TypeError, OSError):
        raise ScenarioError(f"{custom.__name__}: its source is not available; put the class into a file") from None
    return Path(file).name, custom.__qualname__, text


def from_source(file: str, name: str, text: str) -> CustomClass:
    """Return the class that `source_of` took apart; the file is executed once for each text.

    Args:
        file: File name for messages.
        name: Name of the class.
        text: Contents of the file.

    Raises:
        CustomError: The file raises an exception.
    """
    home = f"aqumen_sent_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    module = sys.modules.get(home)
    if module is None:
        module = types.ModuleType(home)
        shown = f"<{file} {home}>"
        # For tracebacks and `inspect`.
        linecache.cache[shown] = (len(text), None, text.splitlines(keepends=True), shown)
        module.__file__ = shown
        sys.modules[home] = module
        try:
            exec(compile(text, shown, "exec"), vars(module))
        except Exception as error:
            del sys.modules[home]
            raise CustomError(f"{file}: cannot be read: {type(error).__name__}: {error}") from error
    found = as_custom(getattr(module, name, None))
    if found is None:
        raise ScenarioError(f"{file}: no class {name}")
    return found


def _without_state(source: Any) -> Any:
    """A class or a function that its source tells whole; `TypeError` of a callable object and of a closure."""
    if isinstance(source, type):
        return source
    if not inspect.isfunction(source) or source.__closure__ or source.__defaults__ or source.__kwdefaults__:
        raise TypeError(f"{source!r} has state")
    return source


def _compiled(custom: type) -> str:
    """Return a text that tells a class by its compiled code; by this process where it has state."""

    def names(code: types.CodeType) -> list[str]:
        inner = (name for each in code.co_consts if isinstance(each, types.CodeType) for name in names(each))
        return sorted({*code.co_names, *inner})

    def of(value: Any) -> str:
        if isinstance(value, types.CodeType):
            return f"{value.co_code!r} {value.co_names} {value.co_varnames} {[of(each) for each in value.co_consts]}"
        if inspect.isfunction(value) and not value.__closure__ and value.__qualname__.startswith(custom.__qualname__):
            given = {name: value.__globals__[name] for name in names(value.__code__) if name in value.__globals__}
            read = [(name, f"module {x.__name__}" if inspect.ismodule(x) else of(x)) for name, x in given.items()]
            return f"{of(value.__code__)} {of(value.__defaults__)} {of(value.__kwdefaults__)} {read}"
        if isinstance(value, Param):
            return f"{vars(value)}"
        if isinstance(value, (tuple, list)):
            return f"({', '.join(map(of, value))})"
        if value is None or isinstance(value, (bool, int, float, str, bytes)):
            return repr(value)
        return f"{id(value)} of process {os.getpid()}"

    own = {key: value for key, value in vars(custom).items() if key not in ("__dict__", "__weakref__", "__module__")}
    return f"{sys.version_info[:2]} {[(key, of(value)) for key, value in own.items()]}"


def digest(custom: Sequence[CustomClass]) -> str:
    """Return a digest of the sources of classes: their files, their bases' files, and loaded modules in these folders.

    Args:
        custom: Classes to digest.
    """
    parts = [f"{name_of(each)}\0{each.__qualname__}" for each in custom]
    files: set[Path] = set()
    for each in custom:
        for base in each.__mro__:
            # Classes from a bare `exec` claim to be in `builtins` too.
            if base.__module__ == "aqumen.custom.classes" or getattr(builtins, base.__name__, None) is base:
                continue
            # A class that `from_control` made is known by the numbers of a controller, or by a function.
            text, source = vars(base).get("_definition", ("", base))
            parts.append(text)
            if source is None:
                continue
            try:
                source = _without_state(source)
                file = Path(inspect.getfile(source))
                parts.append(inspect.getsource(source))
            except (TypeError, OSError):
                # No source is available, as in a Python prompt: its compiled code tells the class.
                parts.append(_compiled(base) if source is base else f"{id(base)} of process {os.getpid()}")
                continue
            files.add(file)
    folders = {file.parent.resolve() for file in files if file.is_file()}
    for module in list(sys.modules.values()):
        source = getattr(module, "__file__", None)
        if source and (path := Path(source)).suffix == ".py" and path.parent.resolve() in folders:
            files.add(path.resolve())
    parts += [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(files) if file.is_file()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
