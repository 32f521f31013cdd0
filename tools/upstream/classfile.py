"""Read what a compiled class does, member by member: where a class was imported from and on which line is left out."""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping

MAGIC = b"\xca\xfe\xba\xbe"
_PACKAGE = re.compile(r"(?:[a-z_][\w]*/)+(?=[A-Z])")
_NUMBERED = re.compile(r"(lambda\$\w+|access)\$\d+")
_POOL_BYTES = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    7: 2,
    8: 2,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    15: 3,
    16: 2,
    17: 4,
    18: 4,
    19: 2,
    20: 2,
}
_LONG_OR_DOUBLE = (5, 6)
_OF_POOL = {18: 1, 19: 2, 20: 2, **dict.fromkeys((*range(178, 188), 189, 192, 193, 197), 2)}
"""Instruction -> bytes of the index into the constant pool that follows it."""
_OPERANDS = {
    **dict.fromkeys((16, 18, *range(21, 26), *range(54, 59), 169, 188), 1),
    **dict.fromkeys((17, 19, 20, 132, *range(153, 169), *range(178, 185), 187, 189, 192, 193, 198, 199), 2),
    197: 3,
    **dict.fromkeys((185, 186, 200, 201), 4),
}
_BRANCHES = (*range(153, 169), *range(198, 202))
_TABLESWITCH, _LOOKUPSWITCH, _WIDE, _IINC, _LDC, _LDC_W = 170, 171, 196, 132, 18, 19


class Class:
    """One compiled class."""

    def __init__(self, data: bytes) -> None:
        """Read it.

        Raises:
            ValueError: it is no compiled class.
        """
        if data[:4] != MAGIC:
            raise ValueError("not a compiled class")
        self._data, self._at = data, 8
        self._pool = self._read_pool()
        flags, _, above = self._take(">HHH")
        interfaces = self._take(f">{self._u2()}H")
        head = (flags, self._text(above), *map(self._text, interfaces))
        found: dict[str, list[object]] = defaultdict(list)
        found[""] = [head]
        self.constants: dict[str, str] = {}
        """Fields whose value is a constant."""
        bodies = [self._read_member(is_method) for is_method in (False, True) for _ in range(self._u2())]
        self._bootstraps = self._read_bootstraps()
        for name, *rest in bodies:
            found[_NUMBERED.sub(r"\1", name)].append(tuple(self._resolved(x) for x in rest))
        self.members: Mapping[str, list[object]] = found
        """Name of a field or method -> what all of that name are; empty: the class itself."""

    # ------------------------------------------------------------------------------ constant pool

    def _read_pool(self) -> dict[int, tuple[int, bytes]]:
        count, number, pool = self._u2(), 1, {}
        while number < count:
            (tag,) = self._take(">B")
            length = self._u2() if tag == 1 else _POOL_BYTES[tag]
            pool[number] = tag, self._bytes(length)
            number += 2 if tag in _LONG_OR_DOUBLE else 1
        return pool

    def _utf8(self, number: int) -> str:
        return self._pool[number][1].decode("utf-8", "replace")

    def _text(self, number: int) -> str:
        """Write a constant without its package, and without its place in the pool."""
        if not number:
            return ""
        tag, data = self._pool[number]
        if tag == 1:
            return _NUMBERED.sub(r"\1", _PACKAGE.sub("", self._utf8(number)))
        if tag == 8:
            return repr(self._utf8(struct.unpack(">H", data)[0]))
        if tag in (7, 16, 19, 20):
            return self._text(struct.unpack(">H", data)[0])
        if tag == 15:
            return self._text(struct.unpack(">BH", data)[1])
        if tag in (9, 10, 11, 12):
            return ".".join(map(self._text, struct.unpack(">HH", data)))
        if tag in (17, 18):
            bootstrap, name = struct.unpack(">HH", data)
            return f"{self._bootstraps[bootstrap]} {self._text(name)}"
        return data.hex()

    # ------------------------------------------------------------------------------ members

    def _read_member(self, is_method: bool) -> tuple[str, object, object, object]:
        flags, name, kind = self._take(">HHH")
        body: object = ""
        for attribute, data in self._attributes():
            if attribute == "ConstantValue":
                constant = self._pool[struct.unpack(">H", data)[0]]
                body = constant[1].hex() if constant[0] != 8 else ("pool", struct.unpack(">H", data)[0])
                if constant[0] == 8:
                    self.constants[self._utf8(name)] = self._utf8(struct.unpack(">H", constant[1])[0])
            elif attribute == "Code" and is_method:
                body = ("code", data)
        return self._utf8(name), flags, self._text(kind), body

    def _attributes(self) -> Iterator[tuple[str, bytes]]:
        for _ in range(self._u2()):
            name, length = self._take(">HI")
            yield self._utf8(name), self._bytes(length)

    def _read_bootstraps(self) -> list[str]:
        data = dict(self._attributes()).get("BootstrapMethods", b"\0\0")
        words = iter(struct.unpack(f">{len(data) // 2}H", data))
        rows = [[next(words), *(next(words) for _ in range(next(words)))] for _ in range(next(words))]
        return [" ".join(map(self._text, row)) for row in rows]

    def _resolved(self, part: object) -> object:
        if not isinstance(part, tuple):
            return part
        return self._text(part[1]) if part[0] == "pool" else list(self._instructions(part[1]))

    # ------------------------------------------------------------------------------ code

    def _instructions(self, code: bytes) -> Iterator[object]:
        """Yield instructions and handlers; places in the code are numbers of instructions."""
        length = struct.unpack(">I", code[4:8])[0]
        body, rest = code[8 : 8 + length], code[8 + length :]
        starts = list(_starts(body))
        number = {at: index for index, at in enumerate([*starts, length])}
        for at, end in zip(starts, [*starts[1:], length], strict=True):
            yield self._instruction(body, at, end, number)
        for row in range(struct.unpack(">H", rest[:2])[0]):
            begin, end, to, kind = struct.unpack(">HHHH", rest[2 + 8 * row : 10 + 8 * row])
            yield "catch", number[begin], number[end], number[to], self._text(kind)

    def _instruction(self, body: bytes, at: int, end: int, number: Mapping[int, int]) -> object:
        code = body[at]
        if code in _OF_POOL:
            width = _OF_POOL[code]
            index = int.from_bytes(body[at + 1 : at + 1 + width], "big")
            return _LDC if code == _LDC_W else code, self._text(index), body[at + 1 + width : end]
        if code in _BRANCHES:
            return code, number[at + int.from_bytes(body[at + 1 : end], "big", signed=True)]
        if code in (_TABLESWITCH, _LOOKUPSWITCH):
            aligned = at + 4 - at % 4
            values = struct.unpack(f">{(end - aligned) // 4}i", body[aligned:end])
            is_table = code == _TABLESWITCH
            fixed = values[1:3] if is_table else values[2::2]
            offsets = (values[0], *(values[3:] if is_table else values[3::2]))
            return code, fixed, tuple(number[at + offset] for offset in offsets)
        return body[at:end]

    # ------------------------------------------------------------------------------ bytes

    def _bytes(self, length: int) -> bytes:
        self._at += length
        return self._data[self._at - length : self._at]

    def _take(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))

    def _u2(self) -> int:
        return self._take(">H")[0]


def _starts(body: bytes) -> Iterator[int]:
    """Yield where each instruction begins."""
    at = 0
    while at < len(body):
        yield at
        code = body[at]
        aligned = at + 4 - at % 4
        if code == _TABLESWITCH:
            low, high = struct.unpack(">ii", body[aligned + 4 : aligned + 12])
            at = aligned + 12 + 4 * (high - low + 1)
        elif code == _LOOKUPSWITCH:
            at = aligned + 8 + 8 * struct.unpack(">i", body[aligned + 4 : aligned + 8])[0]
        elif code == _WIDE:
            at += 6 if body[at + 1] == _IINC else 4
        else:
            at += 1 + _OPERANDS.get(code, 0)


def changed_members(old: bytes, new: bytes) -> list[str]:
    """List the members that are not the same in two compilations of a class, sorted; `class` is its declaration.

    Raises:
        ValueError: one is no compiled class.
    """
    one, other = Class(old).members, Class(new).members
    return sorted(name or "class" for name in {*one, *other} if one.get(name) != other.get(name))
