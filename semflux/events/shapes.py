"""The JSON shape of a value type, from its annotations: how it is written, read back and described.

Reading checks everything, since events come back from files and networks: it gives a value of the
type, deeply immutable, or raises `MisfitError`, which learns on its way up where in the event it was.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import attrs

from semflux.errors import ERROR_CLASSES, ErrorPhase, SemfluxError
from semflux.frozen import FrozenDict, clip, freeze, thaw
from semflux.messages import part_tag
from semflux.response import ChatResponse

DEFINITIONS: dict[str, dict[str, Any]] = {}
"""The schema of each object type met so far, by its name: what "#/$defs/" refers to."""


class MisfitError(Exception):
    """A JSON value does not fit; *path* grows on the way up. Never leaves the codec."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.path: list[str | int] = []

    def at(self, place: str | int) -> MisfitError:
        """The same, seen from one level further out."""
        self.path.insert(0, place)
        return self

    @property
    def where(self) -> str:
        """The path as one writes it, such as `response.steps[0].text`."""
        parts = [f"[{place}]" if isinstance(place, int) else f".{place}" for place in self.path]
        return "".join(parts).removeprefix(".")


@attrs.frozen
class Shape:
    """How values of one type look in JSON."""

    schema: dict[str, Any]
    """Its JSON Schema."""
    read: Callable[[Any], Any]
    """JSON value to value; raises `MisfitError`."""
    write: Callable[[Any], Any] | None = None
    """Value, not None, to JSON value; None where it is the same."""


@attrs.frozen
class Field:
    """A field of an object."""

    name: str
    shape: Shape
    required: bool


_JSON_KINDS: tuple[tuple[type[Any], str], ...] = (
    (NoneType, "null"),
    (bool, "a boolean"),
    (str, "a string"),
    (int, "a number"),
    (float, "a number"),
    (dict, "an object"),
    (list, "an array"),
)


def kind_of(value: object) -> str:
    """What *value* is in JSON's words; values themselves are not shown, they may be private."""
    for kind, word in _JSON_KINDS:
        if isinstance(value, kind):
            return word
    return f"a Python {type(value).__name__}"


def must_be(what: str, value: object) -> MisfitError:
    """The misfit of *value* where *what* has to stand."""
    return MisfitError(f"must be {what}, not {kind_of(value)}")


def _read_str(value: Any) -> Any:
    if isinstance(value, str):
        return value
    raise must_be("a string", value)


def _read_bool(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    raise must_be("a boolean", value)


def _read_int(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():  # 5.0 is an integer in JSON
        return int(value)
    raise MisfitError("must be an integer") if isinstance(value, float) else must_be("an integer", value)


def _read_float(value: Any) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise must_be("a number", value)


def _read_json(value: Any) -> Any:
    try:
        return freeze(value)
    except RecursionError:
        raise MisfitError("is nested too deep") from None


def _read_whole(value: Any) -> Any:
    number = _read_int(value)
    if number < 0:
        raise MisfitError("must not be negative")
    return number


JSON = Shape({}, _read_json, thaw)
"""Any JSON value."""
WHOLE = Shape({"type": "integer", "minimum": 0}, _read_whole)
"""An integer from 0."""

_SIMPLE: dict[Any, Shape] = {
    Any: JSON,
    str: Shape({"type": "string"}, _read_str),
    bool: Shape({"type": "boolean"}, _read_bool),
    int: Shape({"type": "integer"}, _read_int),
    float: Shape({"type": "number"}, _read_float),
}


def shape_of(hint: Any) -> Shape:
    """The shape of values that are annotated with *hint*."""
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _word(args)
    if origin is tuple:
        return _array(shape_of(args[0]))
    if origin is FrozenDict:
        return _mapping(shape_of(args[1]))
    if origin is Union or origin is UnionType:
        options = [option for option in args if option is not NoneType]
        shape = _tagged(options) if len(options) > 1 else shape_of(options[0])
        return _optional(shape) if NoneType in args else shape
    return _error() if hint is SemfluxError else _object(hint)


def _word(words: tuple[str, ...]) -> Shape:
    expected = f"must be one of {', '.join(words)}"

    def read(value: Any) -> Any:
        if isinstance(value, str) and value in words:
            return value
        raise MisfitError(expected)

    return Shape({"enum": list(words)}, read)


def _optional(shape: Shape) -> Shape:
    reader = shape.read

    def read(value: Any) -> Any:
        return None if value is None else reader(value)

    return Shape({"anyOf": [shape.schema, {"type": "null"}]}, read, shape.write)


def _array(shape: Shape) -> Shape:
    reader, writer = shape.read, shape.write

    def read(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise must_be("an array", value)
        items: list[Any] = []
        for place, item in enumerate(cast("Iterable[Any]", value)):
            try:
                items.append(reader(item))
            except MisfitError as misfit:
                raise misfit.at(place) from None
        return tuple(items)

    def write(value: Any) -> Any:
        return value if writer is None else [writer(item) for item in value]

    return Shape({"type": "array", "items": shape.schema}, read, write)


def _mapping(shape: Shape) -> Shape:
    reader = shape.read

    def read(value: Any) -> Any:
        values: dict[str, Any] = {}
        for key, item in as_object(value).items():
            try:
                values[key] = reader(item)
            except MisfitError as misfit:
                raise misfit.at(clip(key)) from None
        return FrozenDict(values)

    return Shape({"type": "object", "additionalProperties": shape.schema}, read, thaw)


def _tagged(classes: list[Any]) -> Shape:
    """One of several object types, told apart by "type"."""
    shapes = {part_tag(cls): _object(cls) for cls in classes}
    word = _word(tuple(shapes))

    def read(value: Any) -> Any:
        if "type" not in as_object(value):
            raise MisfitError("is missing").at("type")
        try:
            tag = word.read(value["type"])
        except MisfitError as misfit:
            raise misfit.at("type") from None
        return shapes[tag].read(value)

    options: list[Any] = []
    for tag, shape in shapes.items():
        own = {"properties": {"type": {"const": tag}}, "required": ["type"]}
        options.append({"allOf": [shape.schema, own]})
    return Shape({"oneOf": options}, read)


def as_object(value: Any) -> Mapping[str, Any]:
    """*value*, which must be an object."""
    if isinstance(value, dict):
        return cast("Mapping[str, Any]", value)
    raise must_be("an object", value)


def read_fields(value: Any, fields: Iterable[Field]) -> dict[str, Any]:
    """Those of *fields* that are in the object *value*; keys that are no field are left alone."""
    source = as_object(value)
    values: dict[str, Any] = {}
    for field in fields:
        name = field.name
        if name in source:
            try:
                values[name] = field.shape.read(source[name])
            except MisfitError as misfit:
                raise misfit.at(name) from None
        elif field.required:
            raise MisfitError("is missing").at(name)
    return values


def fields_of(cls: type[Any], but: Container[str] = ()) -> tuple[Field, ...]:
    """The fields of an attrs class, those named in *but* left out."""
    hints = get_type_hints(cls)
    fields = [field for field in attrs.fields(cls) if field.name not in but]
    return tuple([Field(f.name, shape_of(hints[f.name]), f.default is attrs.NOTHING) for f in fields])


def object_schema(cls: type[Any], fields: Iterable[Field]) -> dict[str, Any]:
    """The schema of an object with *fields*, described by the first line of *cls*'s docstring."""
    fields = list(fields)
    schema: dict[str, Any] = {
        "description": (cls.__doc__ or "").partition("\n")[0],
        "type": "object",
        "properties": {field.name: field.shape.schema for field in fields},
    }
    required = [field.name for field in fields if field.required]
    return {**schema, "required": required} if required else schema


def _define(cls: type[Any], schema: dict[str, Any]) -> dict[str, Any]:
    DEFINITIONS[cls.__name__] = schema
    return {"$ref": f"#/$defs/{cls.__name__}"}


@cache
def _object(cls: type[Any]) -> Shape:
    fields = fields_of(cls)

    def read(value: Any) -> Any:
        return cls(**read_fields(value, fields))

    schema = object_schema(cls, fields)
    if cls is ChatResponse:
        schema["properties"].update(_derived(schema["properties"]))
    return Shape(_define(cls, schema), read, getattr(cls, "to_dict", None))


def _derived(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a response's JSON says over its fields, for readers in other languages; not read back."""
    getters = {name: vars(ChatResponse)[name].fget for name in ChatResponse().to_dict() if name not in fields}
    return {name: shape_of(get_type_hints(getter)["return"]).schema for name, getter in getters.items()}


@cache
def _error() -> Shape:
    hints: dict[str, tuple[Any, bool]] = {
        "class": (str, True),
        "message": (str, True),
        "kind": (str, False),
        "phase": (ErrorPhase, False),
        "provider": (str | None, False),
        "status": (int | None, False),
        "code": (str | None, False),
        "request_id": (str | None, False),
        "retryable": (bool, False),
        "retry_after": (float | None, False),
        "attempts": (int, False),
    }
    fields = [Field(name, shape_of(hint), required) for name, (hint, required) in hints.items()]

    def read(value: Any) -> Any:
        values = read_fields(value, fields)
        cls = ERROR_CLASSES.get(values.pop("class"), SemfluxError)
        return cls(values.pop("message"), **values)

    return Shape(_define(SemfluxError, object_schema(SemfluxError, fields)), read, SemfluxError.describe)


__all__ = (
    "DEFINITIONS",
    "JSON",
    "WHOLE",
    "Field",
    "MisfitError",
    "Shape",
    "as_object",
    "fields_of",
    "kind_of",
    "must_be",
    "object_schema",
    "read_fields",
    "shape_of",
)
