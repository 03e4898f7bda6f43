"""Things by what they have in common."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def grouped(things: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Those of each key; groups and what is in them are in the order of the things."""
    found: dict[K, list[T]] = {}
    for each in things:
        found.setdefault(key(each), []).append(each)
    return found
