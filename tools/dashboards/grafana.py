"""Boards as Grafana's library builds them; sole importer of grafana_foundation_sdk beside `build`."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from tools.dashboards.model import OF_NAMESPACE, Board, Kind, Meaning, Panel, Query, Variable

SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
TAG = "statewarden"
_GREEN, _AMBER, _RED, _BLUE, _GREY, _INK = "green", "orange", "red", "blue", "#7b838c", "text"

_WORDS: dict[Meaning, dict[str, tuple[str, str]]] = {
    Meaning.SEVERITY: {"0": ("none", _GREEN), "1": ("info", _BLUE), "2": ("warning", _AMBER), "3": ("critical", _RED)},
    Meaning.HELD: {"0": ("free", _GREY), "1": ("held", _GREEN)},
    Meaning.YES_NO: {"0": ("no", _GREY), "1": ("yes", _BLUE)},
    Meaning.RESTART: {
        "0": ("yes, orderly", _GREEN), "1": ("orderly only, never SIGKILL", _AMBER), "2": ("read the runbook first", _RED),
        "3": ("unknown: blind", _RED),
    },
}  # fmt: skip
"""Numbers -> word and colour: no meaning rests on the colour alone."""

_STEPS: dict[Meaning, tuple[tuple[float | None, str], ...]] = {
    Meaning.PLAIN: ((None, _INK),),
    Meaning.LIFE: ((None, _BLUE),),
    Meaning.BAD_FROM_1: ((None, _GREEN), (1, _RED)),
    Meaning.WARN_FROM_1: ((None, _GREEN), (1, _AMBER)),
    Meaning.SEVERITY: ((None, _GREEN), (1, _BLUE), (2, _AMBER), (3, _RED)),
    Meaning.HELD: ((None, _GREY), (1, _GREEN)),
    Meaning.YES_NO: ((None, _GREY), (1, _BLUE)),
    Meaning.RESTART: ((None, _GREEN), (1, _AMBER), (2, _RED)),
    Meaning.SHARE: ((None, _RED), (0.9, _AMBER), (0.99, _GREEN)),
    Meaning.AGE: ((None, _GREEN), (3_600, _AMBER), (10_800, _RED)),
}

_BUILDERS: dict[Kind, Any] = {
    Kind.STAT: stat.Panel, Kind.SERIES: timeseries.Panel, Kind.TABLE: table.Panel, Kind.TIMELINE: statetimeline.Panel,
}  # fmt: skip


def dashboard(board: Board) -> builders.Dashboard:
    """Build one board."""
    made = (
        builders.Dashboard(board.title)
        .uid(board.uid)
        .description(board.text)
        .tags([TAG])
        .timezone("browser")
        .refresh("30s")
        .time(board.since, "now")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .readonly()
        .with_variable(_source())
        .link(_boards_link())
        .annotation(_alerts())
    )
    for variable in board.variables:
        made = made.with_variable(_variable(variable))
    for row in board.rows:
        made = made.with_row(builders.Row(row.title))
        for panel in row.panels:
            made = made.with_panel(_panel(panel))
    return made


def _source() -> builders.DatasourceVariable:
    return builders.DatasourceVariable("datasource").label("Prometheus").type("prometheus")


def _variable(variable: Variable) -> builders.QueryVariable:
    return (
        builders.QueryVariable(variable.name)
        .label(variable.label)
        .query(variable.query)
        .datasource(SOURCE)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.NATURAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(models.VariableOption(text="All", value="$__all"))
    )


def _boards_link() -> builders.DashboardLink:
    return (
        builders.DashboardLink("statewarden")
        .type(models.DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(True)
        .include_vars(True)
        .keep_time(True)
    )


def _alerts() -> builders.AnnotationQuery:
    """Alerts on the time axis, so that a step in a curve and its alert are side by side."""
    return (
        builders.AnnotationQuery()
        .name("Alerts")
        .datasource(SOURCE)
        .enable(True)
        .icon_color(_RED)
        .expr(
            'ALERTS{alertname=~"Statewarden.+",alertstate="firing",severity=~"critical|warning",'
            f"{OF_NAMESPACE}}}"
        )
    )


def _panel(panel: Panel) -> Any:
    made = (
        _BUILDERS[panel.kind]()
        .title(panel.title)
        .description(panel.text)
        .datasource(SOURCE)
        .unit(panel.unit)
        .span(panel.width)
        .height(panel.height)
        .no_value(panel.empty)
        .thresholds(_thresholds(panel.meaning))
    )
    if words := _WORDS.get(panel.meaning):
        made = made.mappings([_mapping(words)])
    for index, query in enumerate(panel.queries):
        made = made.with_target(_query(panel.kind, query, chr(ord("A") + index)))
    return _SHAPES[panel.kind](made, panel)


def _thresholds(meaning: Meaning) -> builders.ThresholdsConfig:
    steps = [models.Threshold(value=value, color=color) for value, color in _STEPS[meaning]]
    return builders.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


def _mapping(words: dict[str, tuple[str, str]]) -> models.ValueMap:
    return models.ValueMap(
        options={
            value: models.ValueMappingResult(text=text, color=color, index=index)
            for index, (value, (text, color)) in enumerate(words.items())
        }
    )


def _query(kind: Kind, query: Query, ref_id: str) -> prometheus.Dataquery:
    made = prometheus.Dataquery().expr(query.expr).ref_id(ref_id).datasource(SOURCE)
    if kind is Kind.TABLE:
        return made.instant().format(PromQueryFormat.TABLE)
    if kind is Kind.STAT:
        return made.instant().legend_format(query.legend or "__auto")
    return made.range().legend_format(query.legend or "__auto")


def _stat(made: stat.Panel, panel: Panel) -> stat.Panel:
    return made.color_mode(common.BigValueColorMode.VALUE).graph_mode(common.BigValueGraphMode.NONE).reduce_options(
        common_builders.ReduceDataOptions().calcs(["lastNotNull"])
    )  # fmt: skip


def _series(made: timeseries.Panel, panel: Panel) -> timeseries.Panel:
    return (
        made.line_width(1)
        .fill_opacity(8)
        .axis_soft_min(0)
        .show_points(common.VisibilityMode.AUTO)
        .legend(
            common_builders.VizLegendOptions()
            .show_legend(True)
            .display_mode(common.LegendDisplayMode.LIST)
            .placement(common.LegendPlacement.BOTTOM)
        )
    )


def _table(made: table.Panel, panel: Panel) -> table.Panel:
    hidden = dict.fromkeys(("Time", "__name__", "job", "instance"), True)
    tidy = models.DataTransformerConfig(
        id_val="organize",
        options={
            "excludeByName": hidden,
            "renameByName": {"Value": "worst" if panel.meaning is Meaning.SEVERITY else "count"},
        },
    )
    made = made.with_transformation(tidy)
    for field, uid, title in (
        ("application_id", "statewarden-application", "Open the application"),
        ("task_id", "statewarden-task", "Open the task"),
        ("pod", "statewarden-pod", "Open the pod"),
    ):
        made = made.override_by_name(
            field, [models.DynamicConfigValue(id_val="links", value=[_link(uid, title)])]
        )
    color = models.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"})
    return made.override_by_name("worst", [color])


def _link(uid: str, title: str) -> dict[str, str]:
    labels = {"namespace": "namespace", "application": "application_id", "task": "task_id", "pod": "pod"}
    variables = "&".join(f"var-{name}=${{__data.fields.{label}}}" for name, label in labels.items())
    return {"title": title, "url": f"/d/{uid}?${{cluster:queryparam}}&{variables}&${{__url_time_range}}"}


def _timeline(made: statetimeline.Panel, panel: Panel) -> statetimeline.Panel:
    return (
        made.merge_values(True)
        .show_value(common.VisibilityMode.AUTO)
        .row_height(0.8)
        .fill_opacity(75)
        .legend(common_builders.VizLegendOptions().show_legend(True).placement(common.LegendPlacement.BOTTOM)
                .display_mode(common.LegendDisplayMode.LIST))
    )  # fmt: skip


_SHAPES: dict[Kind, Any] = {
    Kind.STAT: _stat,
    Kind.SERIES: _series,
    Kind.TABLE: _table,
    Kind.TIMELINE: _timeline,
}
