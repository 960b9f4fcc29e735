"""Events as an iterator."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Self

from ._stream import Conversation, refused
from ._types import Event
from .errors import NoAnswer

# How long the hub may take to take and to begin a subscription.
PATIENCE_S = 10.0

Since = str | datetime.datetime | Event


class Events(Iterator[Event]):
    """A stream of events, on a connection of its own. It is subscribed when the constructor returns.

    ``next`` waits up to ``timeout`` seconds, then raises :class:`weft.NoAnswer`; the stream goes on.
    It is a context manager.
    """

    def __init__(
        self,
        open_one: Callable[[], Conversation],
        kinds: Iterable[str] | None,
        sources: Iterable[str] | None,
        since: Since,
        past_only: bool,
        timeout: float | None,
    ) -> None:
        if isinstance(kinds, str) or isinstance(sources, str):
            raise TypeError("kinds and sources are lists of texts")
        self._timeout = timeout
        self._earliest = None
        request: dict[str, Any] = {"type": "events", "past_only": past_only}
        if kinds is not None:
            request["kinds"] = list(kinds)
        if sources is not None:
            request["sources"] = list(sources)
        match since:
            case Event():
                if not since.hub or "place" not in since.raw:
                    raise ValueError("a stream can be resumed behind an event of a hub's stream alone")
                request["from"] = {"after": {"incarnation": since.hub, "sequence": since.raw["place"]}}
            case datetime.datetime():
                if since.tzinfo is None:
                    raise ValueError("a time needs a zone, such as datetime.UTC")
                self._earliest, request["from"] = since, "start"
            case _:
                request["from"] = since
        self._conversation = open_one()
        try:
            number = self._conversation.send(request, PATIENCE_S)
            self._hub = str(self._conversation.answer(number, PATIENCE_S)["incarnation"])
        except BaseException:
            self._conversation.close()
            raise

    def __next__(self) -> Event:
        while True:
            if self._conversation.closed:
                raise StopIteration
            try:
                reply = self._conversation.receive(self._timeout)
            except NoAnswer:
                raise NoAnswer(f"no event within {self._timeout:g} s") from None
            if "error" in reply:
                self.close()
                raise refused(reply["error"])
            if "event" not in reply:
                # `events-ended`, after the past.
                self.close()
                raise StopIteration
            event = Event.of(reply["event"], self._hub)
            if self._earliest is None or event.time >= self._earliest:
                return event

    def close(self) -> None:
        """End the stream."""
        self._conversation.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
