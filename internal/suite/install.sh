#!/usr/bin/env bash
# Installs what tests need beside Go: npm packages that lock files name, and Debian's
# packages where apt-get and root are here. What cannot be installed is named and
# passed over; a test that needs it then says so.
set -uo pipefail
cd "$(dirname "$0")/../.."

skip() { echo "not installed: $1"; }

# apt_install NAME PACKAGE... installs Debian's packages.
apt_install() {
	local name=$1
	shift
	if ! command -v apt-get >/dev/null; then
		skip "$name: no apt-get here"
	elif [ "$(id -u)" -ne 0 ]; then
		skip "$name: apt-get needs root (apt-get install $*)"
	elif ! (timeout 120 apt-get update && DEBIAN_FRONTEND=noninteractive timeout 240 \
		apt-get install -y --no-install-recommends "$@") >/dev/null 2>&1; then
		skip "$name: apt-get could not install $*"
	fi
}

# An independent FIX client.
[ -e /usr/include/quickfix/Application.h ] && command -v g++ >/dev/null ||
	apt_install "QuickFIX C++" g++ libquickfix-dev
# What runs the acceptance scripts that the quickfix module ships.
command -v ruby >/dev/null || apt_install "FIX acceptance scripts" ruby
# What holds the alerts and the dashboard to Prometheus' own language.
command -v promtool >/dev/null || apt_install "promtool" prometheus
# Shells whose completion is tested.
command -v zsh >/dev/null || apt_install "zsh completion" zsh
command -v fish >/dev/null || apt_install "fish completion" fish

# What holds the Python SDK's exchange to ccxt's own checks.
if command -v python3 >/dev/null; then
	python3 -c 'import ccxt' 2>/dev/null || timeout 240 python3 -m pip install --quiet --disable-pip-version-check \
		--root-user-action ignore ccxt==4.5.90 2>/dev/null || skip "ccxt: python3 -m pip install ccxt failed"
fi

# What the Python SDK's extra "fast" takes.
if command -v python3 >/dev/null; then
	python3 -c 'import cryptography, websockets' 2>/dev/null || timeout 240 python3 -m pip install --quiet --disable-pip-version-check \
		--root-user-action ignore 'cryptography>=40' websockets==17.4 2>/dev/null || skip "extra fast: python3 -m pip install cryptography websockets failed"
fi

# What makes clients of the OpenAPI document, and what invents requests of it.
if command -v python3 >/dev/null; then
	for package in openapi-python-client==0.29.1 schemathesis==4.32.5; do
		command -v "${package%%==*}" >/dev/null || timeout 240 python3 -m pip install --quiet --disable-pip-version-check \
			--root-user-action ignore "$package" 2>/dev/null || skip "${package%%==*}: python3 -m pip install $package failed"
	done
fi
timeout 240 go -C internal/clients/oapi mod download 2>/dev/null || skip "oapi-codegen: go mod download failed"

# The local chain, the pages' builds, and independent clients from npm.
if command -v npm >/dev/null; then
	find . -name package-lock.json -not -path '*/node_modules/*' | while read -r lock; do
		dir=$(dirname "$lock")
		[ -e "$dir/node_modules/.package-lock.json" ] && [ "$dir/node_modules/.package-lock.json" -nt "$lock" ] ||
			timeout 180 npm --prefix "$dir" ci --no-audit --no-fund --loglevel=error ||
			skip "$dir: npm ci failed"
	done
else
	skip "local chain and npm clients: no npm here"
fi
exit 0
