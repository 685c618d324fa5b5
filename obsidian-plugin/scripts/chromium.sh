#!/usr/bin/env bash
# Finds the Chromium of the browser tests and prints its path; installs Debian's package where it is missing and may be.
set -euo pipefail

find_it() {
  local name
  for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
    if [ -n "$name" ] && command -v "$name"; then return 0; fi
  done
  return 1
}

if [ -n "${CHROMIUM:-}" ] && ! command -v "$CHROMIUM" >/dev/null; then
  echo "CHROMIUM names \"$CHROMIUM\", and that is no program." >&2
  exit 1
fi
find_it && exit 0

if ! command -v apt-get >/dev/null; then
  echo "There is no Chromium, and no apt-get to install it with. Install one, or name one in CHROMIUM." >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  echo "There is no Chromium, and only root may install it: sudo apt-get install --no-install-recommends chromium" >&2
  exit 1
fi
echo "Installing Chromium (about 120 MB)…" >&2
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update -q && apt-get install -y -q --no-install-recommends chromium; } >&2; then
  echo "Chromium could not be installed; see above. Install one, or name one in CHROMIUM." >&2
  exit 1
fi
find_it
