"""A stand-in for Open-Meteo: it knows one town, and its weather stays the same."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from tests.support.doubles.server import Call, Double, Reply

TOWN = "Kiel"


class WeatherDouble(Double):
    """`failure` answers every request for the forecast; `report` overrides parts of it."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.forecast_url = f"{self.url}/v1/forecast"
        self.geocoding_url = f"{self.url}/v1/search"
        self.failure: Reply | None = None
        self.report: dict[str, Any] = {}

    def config(self) -> str:
        """What config.toml has to say."""
        return (
            f'[tools]\nweather_place = "{TOWN}"\nweather_url = "{self.forecast_url}"\n'
            f'geocoding_url = "{self.geocoding_url}"\n'
        )

    def reply(self, call: Call) -> Reply:
        """As the API."""
        if call.path == "/v1/search":
            if call.query["name"] != TOWN:
                return Reply({"generationtime_ms": 0.5})
            place = {"id": 2891122, "name": TOWN, "latitude": 54.32133, "longitude": 10.13489, "country": "Germany"}
            return Reply({"results": [place], "generationtime_ms": 0.5})
        if self.failure is not None:
            return self.failure
        return Reply(self._forecast(int(call.query["forecast_days"])) | self.report)

    def _forecast(self, count: int) -> dict[str, Any]:
        days = [(date(2026, 11, 28) + timedelta(days=number)).isoformat() for number in range(count)]
        return {
            "latitude": 54.32, "longitude": 10.14, "timezone": "Europe/Berlin",
            "current": {
                "time": "2026-11-28T14:00", "interval": 900, "temperature_2m": 6.4, "apparent_temperature": 2.9,
                "weather_code": 61, "precipitation": 0.3, "wind_speed_10m": 24.1, "relative_humidity_2m": 91,
            },
            "daily": {
                "time": days, "weather_code": [61] * count, "temperature_2m_max": [7.1] * count,
                "temperature_2m_min": [3.0] * count, "precipitation_sum": [4.2] * count,
                "precipitation_probability_max": [83] * count, "wind_speed_10m_max": [38.5] * count,
                "sunrise": [f"{day}T08:17" for day in days], "sunset": [f"{day}T16:02" for day in days],
            },
        }  # fmt: skip
