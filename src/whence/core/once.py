"""A property that is computed once for each object, without a lock.

``functools.cached_property`` of Python 3.11 holds one lock for all objects of a class while it
computes. Two threads then wait for each other over unrelated objects, and a process that forks
while a thread computes leaves its child with a lock that nobody will ever open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801 - it is used as a decorator
    """Compute a property when it is first asked for, and keep it in the object.

    Two threads that ask at the same moment may both compute it, and get equal values.

    >>> class Circle:
    ...     radius = 2
    ...
    ...     @once
    ...     def area(self) -> float:
    ...         print("computed")
    ...         return 3 * self.radius**2
    >>> circle = Circle()
    >>> circle.area, circle.area
    computed
    (12, 12)
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> once[T]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> once[T] | T:
        if instance is None:
            return self
        value = self.compute(instance)
        # found before this descriptor from now on, as it has no __set__; a frozen dataclass
        # refuses setattr
        instance.__dict__[self.name] = value
        return value
