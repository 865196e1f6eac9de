"""Options that several commands share, declared once as fields of a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

KEYWORD = inspect.Parameter.KEYWORD_ONLY


def with_shared_options(command: Callable[..., int]) -> Callable[..., int]:
    """
    Return a command whose dataclass parameter is replaced by one option for each field of the dataclass.

    Parameters
    ----------
    command
        A function with typer's annotations. At most one parameter is a dataclass, whose fields have such annotations
        too; its options follow the command's own.

    Returns
    -------
    callable
        The command itself if it has no such parameter.
    """
    parameters = inspect.signature(command, eval_str=True).parameters
    shared = next((name for name, one in parameters.items() if is_dataclass(one.annotation)), None)
    if shared is None:
        return command
    group: Any = parameters[shared].annotation
    hints = get_type_hints(group, include_extras=True)
    names = [field.name for field in fields(group)]

    def run(**options: Any) -> int:
        return command(**{shared: group(**{name: options.pop(name) for name in names})}, **options)

    own = [one.replace(kind=KEYWORD) for name, one in parameters.items() if name != shared]
    defaults = [inspect.Parameter.empty if one.default is MISSING else one.default for one in fields(group)]
    added = [
        inspect.Parameter(name, KEYWORD, default=default, annotation=hints[name])
        for name, default in zip(names, defaults, strict=True)
    ]
    signature = inspect.Signature([*own, *added], return_annotation=int)
    run.__signature__ = signature  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {name: one.annotation for name, one in signature.parameters.items()}
    run.__doc__, run.__name__ = command.__doc__, command.__name__
    return run
