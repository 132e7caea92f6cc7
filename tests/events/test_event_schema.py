"""The JSON Schema of events: valid, complete, published as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from semflux.events import EVENT_CLASSES, ChatEvent, ChatEventType, schema
from semflux.response import ChatResponse
from tests.events.samples import SAMPLES

PUBLISHED = Path(__file__).parents[2] / "docs" / "chat-event.schema.json"


def test_the_published_schema_is_that_of_the_classes() -> None:
    """After a change of the classes it is written anew, by the command in the message."""
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == schema(), (
        "run: python -c 'import json; from semflux.events import schema; "
        "print(json.dumps(schema(), indent=2))' > docs/chat-event.schema.json"
    )


def test_the_schema_is_a_schema() -> None:
    """Of draft 2020-12; all its references lead somewhere."""
    whole = schema()
    jsonschema.Draft202012Validator.check_schema(whole)
    assert whole["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    text = json.dumps(whole)
    targets = {part.split('"')[0] for part in text.split('"#/$defs/')[1:]}
    assert targets == set(whole["$defs"])


def test_each_type_has_a_definition_with_a_description() -> None:
    """31 of them, told apart by "type", all with the same version."""
    whole = schema()
    assert len(whole["oneOf"]) == len(whole["discriminator"]["mapping"]) == 31
    for type_, cls in EVENT_CLASSES.items():
        definition = whole["$defs"][cls.__name__]
        assert definition["properties"]["type"] == {"const": type_.value}
        assert definition["description"]
    assert whole["$defs"]["ChatEvent"]["properties"]["v"] == {"const": 1}


@pytest.mark.parametrize("event", SAMPLES.values())
def test_a_full_event_fits_and_fits_no_other_type(event: ChatEvent) -> None:
    """`oneOf` means one."""
    validator: Any = jsonschema.Draft202012Validator(schema())
    fields = json.loads(json.dumps(event.to_dict()))
    validator.validate(fields)
    assert not validator.is_valid({**fields, "type": "SOMETHING"})
    assert not validator.is_valid({**fields, "v": 2})
    assert not validator.is_valid({**fields, "seq": -1})


def test_the_schema_tells_what_a_response_says_over_its_fields() -> None:
    """`text`, `message` and the like are written for readers in other languages."""
    assert set(schema()["$defs"]["ChatResponse"]["properties"]) == set(ChatResponse().to_dict())


def test_types_in_the_schema_are_those_of_the_enum() -> None:
    """In the table's order."""
    assert schema()["$defs"]["ChatEvent"]["properties"]["type"] == {
        "enum": [type_.value for type_ in ChatEventType]
    }


def test_a_caller_may_change_the_schema_it_got() -> None:
    """Each call makes a new one."""
    schema()["$defs"].clear()
    assert schema()["$defs"]
