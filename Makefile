# Two commands do everything: `make demo` and `make test`. Both set up `.venv` on first use.
PYTHON ?= python3
BIN := .venv/bin
DEMO := $(if $(REPLAY),--replay,)

# One more than there are cores: some tests wait for others' clocks.
WORKERS = $(shell $(PYTHON) -c 'import os; print(min(8, 1 + (os.cpu_count() or 1)))')

.PHONY: demo test test-slow fuzz attack audit check browser bench results problems lock clean

demo: .venv/installed
	@$(BIN)/kace demo $(DEMO)

test: .venv/installed check browser
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not (model and slow or long)"

# Long runs: of the real embedded model, and of the paper's whole table against a fake endpoint.
test-slow: .venv/installed
	@$(BIN)/python -m pytest -m "model and slow or long"

# Readers of traces, calls, cards, trees, request bodies, blocks and answers against 10,000 odd inputs each.
fuzz: .venv/installed
	@$(BIN)/python -m pytest -n auto --maxprocesses 8 tests/attacks/test_fuzz.py --hypothesis-profile fuzz

# Kills, faults and payloads with counts, into results/attacks.md.
attack: .venv/installed
	@$(BIN)/python benchmarks/attack.py

# Known vulnerabilities of what is installed; fails where there are some, and where no database can be reached.
audit: .venv/installed
	@test -x .venv/audit/bin/pip-audit || { $(PYTHON) -m venv .venv/audit && .venv/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit; } \
	  || { echo "PIP-AUDIT CANNOT BE INSTALLED HERE: nothing was audited"; exit 1; }
	@.venv/audit/bin/pip-audit --disable-pip --require-hashes --progress-spinner off -r requirements.lock >.venv/audit.txt 2>&1; status=$$?; \
	  missed=$$(grep -c "could not be audited" .venv/audit.txt); \
	  if [ $$missed != 0 ] || ! grep -q "known vulnerabilit" .venv/audit.txt; then \
	    echo "NO DATABASE OF VULNERABILITIES CAN BE REACHED: packages not audited: $$missed (.venv/audit.txt)"; exit 1; fi; \
	  cat .venv/audit.txt; exit $$status

# The viewer is tested in a real browser. Where it cannot be had, those tests are skipped and say so.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && echo "Installing Chromium for the browser tests ..." && apt-get -qq update >/dev/null \
	  && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium >/dev/null 2>&1; } \
	  || echo "CHROMIUM CANNOT BE INSTALLED HERE: the browser tests will be skipped (apt-get install chromium)"

check: .venv/installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: .venv/installed
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

# The tables and the plot of the published runs, from results/outcomes.csv.xz.
results: .venv/installed
	@$(BIN)/python results/draw.py

# The problems that ship with the package, from their generators.
problems: .venv/installed
	@$(BIN)/python -m problems

PACKAGES = $(shell grep -o '^[a-z0-9][^ ]*==' requirements.lock)

# Installed from hashes; the project itself is linked so that an edit needs no reinstall.
.venv/installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "kace needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing kace into .venv: $(words $(PACKAGES)) packages at most, a few minutes ..."
	@rm -f .venv/failed
	@{ $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check --require-hashes -r requirements.lock \
	  || touch .venv/failed; } | awk '/^Collecting/ { printf "\r  %d packages found", ++n; fflush() } \
	  /^Installing/ { printf "\r  %d packages being unpacked ...", n; fflush() } END { print "" }'
	@test ! -e .venv/failed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# Rewrites requirements.lock from pyproject.toml; needs uv on PATH. Emits hashes and no index addresses. Extras stay named:
# for one that is not, pip looks for the newest release, and has no hash of it.
lock:
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-strip-extras \
	  --extra local --extra data --extra mcp --extra gepa --extra meaning --extra dev \
	  pyproject.toml requirements-build.in --output-file requirements.lock

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
