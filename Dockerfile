# Proofstone in a container: docker build --tag proofstone .
# Checks need namespaces of their own, which most engines refuse by default:
#   docker run --rm --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
#     --security-opt systempaths=unconfined --user "$(id -u):$(id -g)" --volume "$PWD:/work" proofstone check
FROM python:3.12-slim-bookworm
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap git make \
    && rm -rf /var/lib/apt/lists/*
COPY requirements/runtime.txt /build/requirements/runtime.txt
RUN python -m pip install --no-cache-dir --require-hashes --no-deps --only-binary=:all: -r /build/requirements/runtime.txt
COPY pyproject.toml README.md LICENSE /build/
COPY src /build/src
COPY docs /build/docs
RUN python -m pip install --no-cache-dir --no-deps /build && rm -rf /build
# The repository belongs to whoever runs the container, not to the user of the image.
RUN git config --system --add safe.directory '*'
ENV HOME=/var/lib/proofstone PROOFSTONE_HOME=/var/lib/proofstone/state
RUN mkdir -p /var/lib/proofstone/state && chmod -R 1777 /var/lib/proofstone
WORKDIR /work
ENTRYPOINT ["proofstone"]
