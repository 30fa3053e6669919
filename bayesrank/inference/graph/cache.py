"""The process-wide store of compiled functions, shared by every model of one structure."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

# Each entry holds machine code and a graph, about a megabyte; the least recently used go first.
LARGEST_CACHE = 128


@dataclass(frozen=True)
class CacheInfo:
    """How the store has been used.

    Attributes
    ----------
    compilations : int
        Functions compiled since the process started or the store was cleared.
    hits : int
        Requests that found their function compiled.
    size : int
        Functions held.
    """

    compilations: int
    hits: int
    size: int


class FunctionCache:
    """A bounded map from structure to compiled function, safe to use from several threads.

    Parameters
    ----------
    largest : int, default 128
        Functions to hold; the least recently used one is dropped to make room.
    """

    def __init__(self, largest: int = LARGEST_CACHE) -> None:
        self._largest = largest
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.RLock()
        self._compilations = 0
        self._hits = 0

    def get[T](self, key: Hashable, compile_function: Callable[[], T]) -> T:
        """Return what is stored under a key, compiling it when it is missing.

        PyTensor's compilation is not safe under threads, so it happens under the lock.
        """
        with self._lock:
            if key in self._entries:
                self._hits += 1
                self._entries.move_to_end(key)
            else:
                self._entries[key] = compile_function()
                self._compilations += 1
                while len(self._entries) > self._largest:
                    self._entries.popitem(last=False)
            return self._entries[key]

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._entries

    def info(self) -> CacheInfo:
        """Return the counts of compilations and hits, and the size."""
        with self._lock:
            return CacheInfo(self._compilations, self._hits, len(self._entries))

    def clear(self) -> None:
        """Forget every function and set the counts to zero."""
        with self._lock:
            self._entries.clear()
            self._compilations = self._hits = 0


FUNCTIONS = FunctionCache()
