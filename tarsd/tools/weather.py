"""The weather at the place of the settings, from Open-Meteo; no key, and the model cannot choose the place."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from tarsd import foreign
from tarsd.config.settings import ToolSettings
from tarsd.errors import ToolError
from tarsd.tools.base import Result, Tool, ToolProposal, tool
from tarsd.tools.outer import client, text_of, unreachable

SERVICE = "The weather service"
MOST_DAYS = 14
CURRENT = "temperature_2m,apparent_temperature,weather_code,precipitation,wind_speed_10m,relative_humidity_2m"
DAILY = (
    "weather_code,temperature_2m_max,temperature_2m_min,precipitation_sum,precipitation_probability_max,"
    "wind_speed_10m_max,sunrise,sunset"
)

_COORDINATES = re.compile(r"\s*(-?\d{1,2}(?:\.\d+)?)\s*[,;]\s*(-?\d{1,3}(?:\.\d+)?)\s*")

_SKY = {
    0: "clear", 1: "mainly clear", 2: "partly cloudy", 3: "overcast", 45: "fog", 48: "freezing fog",
    51: "light drizzle", 53: "drizzle", 55: "heavy drizzle", 56: "light freezing drizzle", 57: "freezing drizzle",
    61: "light rain", 63: "rain", 65: "heavy rain", 66: "light freezing rain", 67: "freezing rain",
    71: "light snow", 73: "snow", 75: "heavy snow", 77: "snow grains", 80: "light showers", 81: "showers",
    82: "violent showers", 85: "light snow showers", 86: "heavy snow showers", 95: "thunderstorm",
    96: "thunderstorm with hail", 99: "thunderstorm with heavy hail",
}  # fmt: skip


@dataclass(frozen=True)
class Coordinates:
    """A place on the map, in degrees."""

    name: str
    latitude: float
    longitude: float


class WeatherTools:
    """The tool for the weather; the place is looked up once."""

    def __init__(self, settings: ToolSettings) -> None:
        self._settings = settings
        self._place: Coordinates | None = None
        self._looking = asyncio.Lock()

    def tools(self) -> list[Tool]:
        """The one tool."""
        return [tool(self.weather, group="weather")]

    async def weather(self, days: Annotated[int, "How many days, today included, at most 14"] = 3) -> ToolProposal:
        """The weather now and in the next days at the person's own place."""
        count = max(1, min(days, MOST_DAYS))

        async def apply() -> Result:
            place = await self._find()
            query = {
                "latitude": place.latitude, "longitude": place.longitude, "current": CURRENT, "daily": DAILY,
                "timezone": "auto", "forecast_days": count,
            }  # fmt: skip
            report = await _get(self._settings.weather_url, query, self._settings.ca_file)
            return Result(_written(place, report))

        return ToolProposal(f"Ask Open-Meteo for the weather in {self._settings.weather_place}", apply)

    async def _find(self) -> Coordinates:
        wanted = self._settings.weather_place.strip()
        match = _COORDINATES.fullmatch(wanted)
        if match:
            return Coordinates(wanted, float(match[1]), float(match[2]))
        async with self._looking:
            if self._place is None:
                query = {"name": wanted, "count": 1, "language": "en", "format": "json"}
                places = (await _get(self._settings.geocoding_url, query, self._settings.ca_file)).get("results")
                if not isinstance(places, list) or not places:
                    raise ToolError(
                        f"The weather service does not know “{wanted}”.",
                        'Set tools.weather_place to a town, or to "latitude, longitude".',
                    )
                self._place = _place(places[0])
            return self._place


async def _get(url: str, query: Mapping[str, Any], ca_file: str) -> dict[str, Any]:
    import httpx

    try:
        async with client(SERVICE, url, ca_file) as connection:
            response = await connection.get(url, params=query)
            body = response.json() if response.status_code in (200, 400) else None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise unreachable(SERVICE, url, error) from None
    except (ValueError, RecursionError):
        body = None
    if response.status_code == 429:
        raise ToolError(f"{SERVICE} accepts no more requests for now. Try again later.")
    if response.status_code == 200 and isinstance(body, dict):
        return body
    said = foreign.told(str(body.get("reason") or ""), longest=200) if isinstance(body, dict) else ""
    raise ToolError(f"{SERVICE} sent an error ({response.status_code}{f': {said}' if said else ''}).")


def _place(raw: Any) -> Coordinates:
    try:
        name = ", ".join(text_of(raw[key], 80) for key in ("name", "country") if raw.get(key))
        return Coordinates(name, float(raw["latitude"]), float(raw["longitude"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ToolError(f"{SERVICE} did not say where the place is.") from None


def _written(place: Coordinates, report: Mapping[str, Any]) -> str:
    """The report in words, without missing values."""
    now = _table(report.get("current"))
    lines = [f"Weather for {place.name}, from Open-Meteo."]
    parts = [
        _sky(now.get("weather_code")),
        _value(now.get("temperature_2m"), "{} °C"),
        _value(now.get("apparent_temperature"), "feels like {} °C"),
        _value(now.get("wind_speed_10m"), "wind {} km/h"),
        _value(now.get("relative_humidity_2m"), "humidity {} %"),
    ]
    if any(parts):
        at = text_of(now.get("time", ""), 20).replace("T", " ")
        lines.append(f"Now{f' ({at})' if at else ''}: {_joined(parts)}.")
    daily = _table(report.get("daily"))
    days = daily.get("time")
    for index, day in enumerate(days[:MOST_DAYS] if isinstance(days, list) else []):
        columns = {key: values for key, values in daily.items() if isinstance(values, list) and index < len(values)}
        forecast = {key: values[index] for key, values in columns.items()}
        low, high = forecast.get("temperature_2m_min"), forecast.get("temperature_2m_max")
        parts = [
            _sky(forecast.get("weather_code")),
            f"{low} to {high} °C" if _is_number(low) and _is_number(high) else "",
            _value(forecast.get("precipitation_sum"), "{} mm"),
            _value(forecast.get("precipitation_probability_max"), "chance of rain {} %"),
            _value(forecast.get("wind_speed_10m_max"), "wind up to {} km/h"),
            _clock(forecast.get("sunrise"), "sunrise"),
            _clock(forecast.get("sunset"), "sunset"),
        ]
        if any(parts):
            lines.append(f"{text_of(day, 20)}: {_joined(parts)}.")
    if len(lines) == 1:
        raise ToolError(f"{SERVICE} sent no weather.")
    return "\n".join(lines)


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sky(code: object) -> str:
    return _SKY.get(code, "") if isinstance(code, int) else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _value(value: object, form: str) -> str:
    return form.format(value) if _is_number(value) else ""


def _clock(value: object, name: str) -> str:
    return f"{name} {value[11:16]}" if isinstance(value, str) and len(value) >= 16 else ""


def _joined(parts: list[str]) -> str:
    return ", ".join(part for part in parts if part)
