"""stub"""
from dataclasses import dataclass
@dataclass
class PageData:
    as_of_us: int
    version: str
    findings: list
    coverage: list
    pods: list
    timelines: list
    local: list
    quarantine: dict
def render(d): return "x"
