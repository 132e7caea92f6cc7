"""Whether a tool call may be run: it is whole, its tool was offered, and its arguments keep to the tool's schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from semflux.errors import ConfigurationError, ToolArgumentsError, ToolError, ToolNotFoundError
from semflux.frozen import clip, freeze, thaw
from semflux.messages import ToolCall
from semflux.request import ToolSpec

Check: TypeAlias = Callable[[ToolCall], ToolError | None]
"""What is wrong with a call; None if nothing is."""

_Validator: TypeAlias = Callable[[object], str | None]
"""Which rule of a schema a value breaks; None for none."""


def check_of(tools: Iterable[ToolSpec]) -> Check:
    """The check of calls of *tools*; without any, only that calls are whole.

    Raises:
        ConfigurationError: if a schema is none, two tools have one name, or `jsonschema` is not installed.
    """
    validators: dict[str, _Validator] = {}
    for tool in tools:
        if tool.name in validators:
            raise ConfigurationError(f"two tools are called {clip(tool.name)}")
        validators[tool.name] = _validator(tool)

    def check(call: ToolCall) -> ToolError | None:
        if validators and call.name not in validators:
            return ToolNotFoundError(f"the model called {clip(call.name)}, which is none of the tools")
        if call.kind == "custom":
            return None
        if not call.is_complete:
            why = call.arguments_error or "they are no JSON object"
            return ToolArgumentsError(f"the arguments of {clip(call.name)} cannot be used: {why}")
        validator = validators.get(call.name)
        rule = None if validator is None else validator(thaw(call.arguments))
        if rule is None:
            return None
        return ToolArgumentsError(f"the arguments of {clip(call.name)} break its schema: {rule}")

    return check


def _validator(tool: ToolSpec) -> _Validator:
    try:
        import jsonschema.exceptions  # large, and only needed where schemas are to be held: the extra `schema`
        import jsonschema.validators  # as above
        import referencing  # comes with it
    except ImportError:
        raise ConfigurationError(
            "holding calls to their tools' schemas needs jsonschema: pip install 'semflux[schema]'"
        ) from None
    schema = thaw(tool.parameters)
    # Its types say little.
    validators: Any = jsonschema.validators
    exceptions: Any = jsonschema.exceptions
    registry: Any = referencing.Registry
    cls = validators.validator_for(schema, default=validators.Draft202012Validator)
    try:
        cls.check_schema(schema)
    except jsonschema.exceptions.SchemaError as error:
        raise ConfigurationError(
            f"the parameters of {clip(tool.name)} are no JSON Schema: {error.json_path} breaks {error.validator!r}"
        ) from None
    # With a registry of its own: a schema must not make anybody fetch what it refers to.
    validator = cls(schema, registry=registry())

    def broken(arguments: object) -> str | None:
        try:
            found = exceptions.best_match(validator.iter_errors(arguments))
        except Exception as error:  # noqa: BLE001  # a reference that leads nowhere raises errors of other packages
            raise ConfigurationError(
                f"the parameters of {clip(tool.name)} cannot be applied: {type(error).__name__}"
            ) from None
        if found is None:
            return None
        # Not the validator's own text: it quotes the arguments.
        return f"{found.json_path[:80]} is against {found.validator!r}: {clip(freeze(found.validator_value))}"

    return broken


__all__ = ("Check", "check_of")
