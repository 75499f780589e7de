# The image of webhook and controller. See docs/development.md.
#   docker build -t NAME .          packages from pip's index, as locked
#   make image IMAGE=NAME BASE=...  packages collected beforehand: the build itself needs no network
# Nothing here depends on the architecture, so `docker buildx build --platform ...` makes any that the base image has.
# By the digest of all its architectures; docs/releasing.md says how to find a newer one.
ARG BASE=python:3.12-slim@sha256:7a8b475003c4fe15a2cd4e55e5cfc2f3560bdc9333d624f24cdd6d4340fd7a17

FROM ${BASE} AS builder
# A folder with all wheels, inside the build context; without it pip asks its index.
ARG WHEELS
ARG PIP_INDEX_URL
WORKDIR /src
COPY requirements/ ${WHEELS:-requirements}/ /locked/
# Two environments: what installs and builds stays here, the other one moves into the image.
RUN set -eu; \
    python3 -m venv /tools; \
    python3 -m venv --without-pip /opt/jobset-gate; \
    pip() { /tools/bin/python -m pip "$@"; }; \
    set -- install --no-compile --no-cache-dir --disable-pip-version-check --only-binary :all: --require-hashes ${WHEELS:+--no-index --find-links /locked}; \
    pip "$@" --requirement /locked/build.txt; \
    pip --python /opt/jobset-gate/bin/python "$@" --requirement /locked/image.txt
COPY pyproject.toml README.md LICENSE ./
COPY jobset_gate jobset_gate
COPY webhook webhook
COPY controllers controllers
# All is compiled here, since nothing can be written at run time; by hash and not by time, so that two builds are the same.
RUN set -eu; \
    pip() { /tools/bin/python -m pip "$@"; }; \
    pip wheel --no-cache-dir --disable-pip-version-check --no-index --no-deps --no-build-isolation --wheel-dir /wheel .; \
    pip --python /opt/jobset-gate/bin/python install --no-compile --no-cache-dir --disable-pip-version-check --no-index --no-deps /wheel/*.whl; \
    PYTHONHASHSEED=0 /tools/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/jobset-gate/lib; \
    find /opt/jobset-gate/bin -mindepth 1 ! -name 'python*' ! -name '*jobset*' -delete; \
    mkdir -p /image/opt /image/usr/local/bin; \
    mv /opt/jobset-gate /image/opt/; \
    ln -s /opt/jobset-gate/bin/jobset-gate /image/usr/local/bin/jobset-gate

FROM ${BASE}
COPY --from=builder /image/ /
# The root may be read-only: temporary files (the keys of `webhook --self-signed`) go to memory, and no bytecode is written.
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 TMPDIR=/dev/shm
WORKDIR /
USER 65532:65532
ENTRYPOINT ["jobset-gate"]
CMD ["--help"]
# Last, since they change with every commit.
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="jobset-gate" \
      org.opencontainers.image.description="A start barrier for Kubernetes JobSets: webhook and controller" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
