"""How the tests of request builders make requests and look into them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from semflux.dialects.vendors import Vendor
from semflux.errors import ConfigurationError
from semflux.http import HttpRequest
from semflux.messages import Message
from semflux.request import ChatRequest, Options, ToolSpec
from semflux.secret import Secret

HI = Message.user("hi")
TOOL = ToolSpec(name="add", description="Adds.", parameters={"type": "object"}, strict=True)
OTHER = ToolSpec(name="now")


@attrs.frozen
class Built:
    """A builder of requests with what it is given where a test does not say."""

    builder: Callable[..., HttpRequest]
    vendor: Vendor
    model: str

    def request(
        self,
        messages: Any = "hi",
        *,
        vendor: Vendor | None = None,
        model: str | None = None,
        base_url: str | None = None,
        tools: tuple[ToolSpec, ...] = (),
        stream: bool = True,
        **options: Any,
    ) -> HttpRequest:
        """The request for *messages* with *options*, with a key."""
        vendor = vendor or self.vendor
        request = ChatRequest(
            model=self.model if model is None else model,
            messages=messages,
            tools=tools,
            options=Options(**options),
            stream=stream,
        )
        url = base_url or vendor.base_url or "http://127.0.0.1:9"
        return self.builder(request, base_url=url, api_key=Secret("k"), vendor=vendor)

    def body(self, *args: Any, **kwargs: Any) -> Any:
        """The body of the same."""
        return json.loads(self.request(*args, **kwargs).body)

    def sent(self, *messages: Message, **kwargs: Any) -> Any:
        """How *messages* are written."""
        return self.body(list(messages), **kwargs)["messages"]

    def refusal(self, *args: Any, **kwargs: Any) -> str:
        """Why it is refused."""
        with pytest.raises(ConfigurationError) as caught:
            self.request(*args, **kwargs)
        return str(caught.value)
